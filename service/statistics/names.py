"""Names of priors, importable without scipy, for command lines."""

from __future__ import annotations

from typing import Literal

PriorName = Literal["learned", "informed", "informed_jeffreys", "uniform", "vague"]
