"""Names of priors: light, for command lines. `service.statistics.priors` has the code behind them."""

from __future__ import annotations

from typing import Literal

PriorName = Literal["learned", "informed", "informed_jeffreys", "uniform", "vague"]
