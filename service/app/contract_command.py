"""`credence contract`: the message contract, from the code."""

from __future__ import annotations

import argparse

from service.app.docgen.contract import contract_files
from service.app.docgen.files import write_or_check


def contract(options: argparse.Namespace) -> int:
    """Write the contract, or check that it is current."""
    return write_or_check(options.directory, contract_files(), check=options.check)
