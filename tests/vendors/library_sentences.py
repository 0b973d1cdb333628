"""Sentences of the library that checks settings and calls; none of them may be shown."""

from __future__ import annotations

import re

SENTENCES = re.compile(
    r"(?:Input|List|String|Keys|Dictionary|Value|Datetime) should|Field required|Extra inputs|Value error"
    r"|unable to|valid (?:integer|number|string|boolean|list|dictionary)|not permitted|cannot be used \("
)
"""Of pydantic; the last one is ours, of an error that has no words yet."""
