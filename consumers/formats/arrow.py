from __future__ import annotations
def decode_columns(headers, value): return None
