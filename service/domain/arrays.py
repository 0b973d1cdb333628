"""Types of arrays by their elements; the docstring of what uses one gives its shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
UInt64s = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

Indices = npt.NDArray[np.intp]
"""Positions in other arrays."""

Codes = npt.NDArray[np.signedinteger[Any]]
"""Positions that are kept in as few bytes as they need."""
