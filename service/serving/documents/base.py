"""What the documents of the HTTP API are made of; the status page and `credence status` show the same.

Probabilities, shares and accuracies are ratios between 0 and 1. Times are seconds since the epoch.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

Seconds = float
Verdict = Literal["meets", "fails", "open", "none"]


class Document(BaseModel):
    """Part of an answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def of(cls, source: object, **others: Any) -> Self:
        """The fields that `source` has under the same names, and the others."""
        same = {name: getattr(source, name) for name in cls.model_fields if name not in others}
        return cls(**same, **others)

    @classmethod
    def at_index(cls, source: object, which: int | tuple[()] = (), **others: Any) -> Self:
        """The same, of fields that are arrays in `source`, at one position; () of arrays with one element."""
        same = {name: getattr(source, name)[which].item() for name in cls.model_fields if name not in others}
        return cls(**same, **others)

    @classmethod
    def if_any(cls, source: object, which: int | tuple[()] = ()) -> Self | None:
        """The same; None if its numbers do not exist."""
        found = cls.at_index(source, which)
        return found if all(math.isfinite(number) for _, number in found) else None


class Interval(Document):
    """A posterior, in short."""

    lower: float = Field(description="lower end of the credible interval")
    mean: float = Field(description="posterior mean")
    upper: float = Field(description="upper end of the credible interval")

    @property
    def point(self) -> float:
        """The point estimate."""
        return self.mean

    @classmethod
    def of_ends(cls, ends: tuple[float, float, float] | None) -> Self | None:
        """The interval of lower end, mean and upper end; None without them."""
        return None if ends is None else cls(lower=ends[0], mean=ends[1], upper=ends[2])


class Range(Document):
    """A posterior, in short, by its median."""

    lower: float = Field(description="lower end of the credible interval")
    median: float = Field(description="posterior median")
    upper: float = Field(description="upper end of the credible interval")

    @property
    def point(self) -> float:
        """The point estimate."""
        return self.median


def finite_or_none(value: float) -> float | None:
    """The number; None for NaN and infinities, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


class Problem(Document):
    """Why a request was not answered."""

    detail: str
