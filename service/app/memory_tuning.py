"""How a process treats memory that it frees, where batches come and go all the time."""

from __future__ import annotations

import ctypes
import gc

_ALLOCATIONS = 100_000
"""Several batches of records: what a batch is made of is freed by counting references, without any search."""

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
"""Names of settings of the C library of GNU; see mallopt(3)."""

_KEPT_BYTES = 128 * 2**20
_GROWN_BYTES = 16 * 2**20
_OWN_MAPPING_BYTES = 32 * 2**20
"""The most that the C library takes."""


def collect_rarely() -> None:
    """Search for cycles once in many batches, and never again among what is there now.

    A batch of records is many objects that live for a moment. By default every few hundred of them start a
    search, which takes a fifth of a busy consumer's time and finds nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 20, 100)


def keep_freed_memory() -> None:
    """Have the C library keep freed memory for the next batch, instead of giving it back to the system.

    What a broker answers takes a megabyte several times over. By default that is fetched from the system page
    by page for every answer, which takes a tenth of a busy consumer's time. Kept are 128 MB at the most. A
    system whose C library has no such settings goes on as it does.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TOP_PAD, _GROWN_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _OWN_MAPPING_BYTES)
