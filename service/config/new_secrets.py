"""New secrets for vendors, of 256 random bits."""

from __future__ import annotations

import hashlib
import secrets

_SECRET_BYTES = 32


def new_token() -> tuple[str, str]:
    """A bearer token for the vendor, and its SHA-256 for the configuration."""
    token = secrets.token_urlsafe(_SECRET_BYTES)
    return token, hashlib.sha256(token.encode()).hexdigest()


def new_label_key() -> str:
    """A label key, hexadecimal: for the configuration, and vendors that write to Kafka."""
    return secrets.token_hex(_SECRET_BYTES)
