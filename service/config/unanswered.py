"""Settings of requests that end without a label; frozen."""

from __future__ import annotations

from typing import Literal

from service.config.types import Frozen

Treatment = Literal["worst_case", "tested", "at_random"]


class Unanswered(Frozen):
    """What estimates take for the items of requests that end without a label.

    `worst_case`: the prediction may be correct or not, so intervals get wider by the share of such requests.
    `at_random`: they are like those with a label. `tested`: as `at_random` if labels show that it does not
    depend on the item how a request ends, else as `worst_case`.
    """

    skipped: Treatment = "worst_case"
    """the labeller could not determine the true class"""
    expired: Treatment = "tested"
    """nobody answered by the last deadline"""
