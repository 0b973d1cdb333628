"""How often Python looks for garbage that refers to itself."""

from __future__ import annotations

import gc

_ALLOCATIONS = 100_000
"""Several batches of records: what a batch is made of is freed by counting references, without any search."""


def collect_rarely() -> None:
    """Search for cycles once in many batches, and never again among what is there now.

    A batch of records is many objects that live for a moment. By default every few hundred of them start a
    search, which takes a fifth of a busy consumer's time and finds nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 20, 100)
