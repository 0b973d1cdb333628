"""`credence vendors`: secrets of labelling vendors."""

from __future__ import annotations

import argparse

from service.config.vendor_secrets import new_label_key, new_token


def vendors(options: argparse.Namespace) -> int:
    """Print a new secret."""
    if options.what == "key":
        print(new_label_key())
    else:
        token, digest = new_token()
        print(f"token: {token}\ntoken_sha256: {digest}")
    return 0
