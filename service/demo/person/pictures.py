"""Handwritten digits as pictures that a browser shows."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from service.demo.world import BRIGHTEST
from service.domain.arrays import Floats

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EIGHT_BITS, _GREYSCALE = 8, 0
_WHITE = 255


def picture_uri(pixels: Floats) -> str:
    """One image [rows, columns] as a PNG in a data URI: ink of 0 is white, the brightest black."""
    shades = np.clip(_WHITE - pixels / BRIGHTEST * _WHITE, 0, _WHITE).astype(np.uint8)
    rows, columns = shades.shape
    # Each row follows the number of its filter; 0 is none (PNG specification, section 9).
    content = b"".join(b"\x00" + row.tobytes() for row in shades)
    header = struct.pack(">IIBBBBB", columns, rows, _EIGHT_BITS, _GREYSCALE, 0, 0, 0)
    png = _SIGNATURE + b"".join(
        (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(content)), _chunk(b"IEND", b""))
    )
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
