"""Names that stand for recordings, and for what is done with them."""

from __future__ import annotations

from typing import Final, Literal

DIGITS: Final = "digits"
"""Stands for recordings of handwritten digits where a file would be named."""

Binning = Literal["equal_width", "equal_size"]

CORRUPTION_NAMES: Final = ("noise", "blur", "shift")
"""What may be done to the images of the digits; `service.replay.corruption` does it."""
