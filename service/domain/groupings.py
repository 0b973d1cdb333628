"""Groupings: partitions of one model's traffic, a class for each thing that they can be by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, Final, Literal

import numpy as np

from service.domain.arrays import Indices

ALL = "all"
"""Name of the grouping with a single group, and of that group."""

GroupingKind = Literal[
    "all",
    "score_bin",
    "positive_score",
    "predicted_class",
    "superclass",
    "attribute",
    "stratum",
    "votes",
    "challenge",
]

ClassGroups = tuple[list[str], Indices]
"""Names of groups, and the group of every predicted class and score bin [classes, bins]."""


@dataclass(frozen=True)
class Grouping:
    """A partition of one model's traffic.

    Attributes:
        name: name in configuration, metrics and pages.
        attribute: whose values the groups are; empty where predicted class and score tell them apart.
        kind: what the partition is by, in the API.
        has_threshold: whether the accuracy threshold applies: not where groups are expected to differ.
        is_by_votes: whether groups are by what other classifiers say. Where these differ, the model is right
            less often than its scores tell, and a change may be theirs.
        is_by_class: whether groups differ by predicted class.
        is_internal: whether labels are requested by it, and nothing is said of its groups.
    """

    name: str
    attribute: str = ""
    kind: ClassVar[GroupingKind]
    has_threshold: ClassVar[bool] = True
    is_by_votes: ClassVar[bool] = False
    is_by_class: ClassVar[bool] = False
    is_internal: ClassVar[bool] = False

    def value_of(self, group: str) -> str:
        """The group that people know: of a stratum, the value of the attribute that it is a part of."""
        return group

    def class_groups(self, classes: Sequence[str], score_edges: Sequence[float]) -> ClassGroups | None:  # noqa: ARG002
        """The groups by predicted class and score bin; None where they are values of an attribute."""
        return None

    def definition(self, score_edges: Sequence[float]) -> bytes:
        """Four bytes that differ where a grouping of this name is another partition.

        Empty where a name can mean but one thing, and of groupings by votes, which `CellSpace.voters_of`
        tells apart. What the grouping is called makes no difference, nor in which order a map names parts.
        """
        described = json.dumps([self.kind, self._parts(score_edges)])
        return hashlib.sha256(described.encode()).digest()[:4]

    def _parts(self, score_edges: Sequence[float]) -> object:  # noqa: ARG002
        """What differs between groupings of this kind."""
        return None


@dataclass(frozen=True)
class Everything(Grouping):
    """All traffic in one group."""

    kind = "all"

    def class_groups(self, classes: Sequence[str], score_edges: Sequence[float]) -> ClassGroups:
        """One group for every predicted class and score bin."""
        return [ALL], np.zeros((len(classes), len(score_edges) + 1), np.intp)

    def definition(self, score_edges: Sequence[float]) -> bytes:  # noqa: ARG002
        """Empty: there is but one."""
        return b""


@dataclass(frozen=True)
class ByScore(Grouping):
    """Groups by the score bin of the predicted class: how accurate each is follows from its score."""

    kind = "score_bin"
    has_threshold = False

    def class_groups(self, classes: Sequence[str], score_edges: Sequence[float]) -> ClassGroups:
        """The same bin for every predicted class."""
        names = bin_names(score_edges)
        return names, np.tile(np.arange(len(names)), (len(classes), 1))

    def _parts(self, score_edges: Sequence[float]) -> object:
        return score_edges


@dataclass(frozen=True)
class ByPositiveScore(Grouping):
    """Groups by the score of a binary classifier's positive class, whichever it predicts.

    Attributes:
        positive: the positive one of two classes; score bins are symmetric about 1/2.
    """

    positive: str = ""
    kind = "positive_score"
    has_threshold = False
    is_by_class = True

    def class_groups(self, classes: Sequence[str], score_edges: Sequence[float]) -> ClassGroups:
        """Where the other class is predicted with a score of s, that of the positive one is 1 - s."""
        names = bin_names(score_edges)
        ascending = np.arange(len(names))
        return names, np.stack([ascending if c == self.positive else ascending[::-1] for c in classes])

    def _parts(self, score_edges: Sequence[float]) -> object:
        # The bins of one class's scores are those of the other's in reverse order.
        return score_edges


@dataclass(frozen=True)
class ByClass(Grouping):
    """Groups by predicted class: alone in having a confusion matrix."""

    kind = "predicted_class"
    is_by_class = True

    def class_groups(self, classes: Sequence[str], score_edges: Sequence[float]) -> ClassGroups:
        """The same class for every score bin."""
        return list(classes), np.tile(np.arange(len(classes))[:, None], (1, len(score_edges) + 1))


@dataclass(frozen=True)
class BySuperclass(Grouping):
    """Groups of predicted classes.

    Attributes:
        superclasses: the superclass of every class.
    """

    superclasses: Mapping[str, str] = field(default_factory=dict)
    kind = "superclass"
    is_by_class = True

    def class_groups(self, classes: Sequence[str], score_edges: Sequence[float]) -> ClassGroups:
        """The same superclass for every score bin."""
        names = sorted(set(self.superclasses.values()))
        groups = np.array([names.index(self.superclasses[name]) for name in classes], np.intp)
        return names, np.tile(groups[:, None], (1, len(score_edges) + 1))

    def _parts(self, score_edges: Sequence[float]) -> object:  # noqa: ARG002
        members: dict[str, list[str]] = {}
        for name in sorted(self.superclasses):
            members.setdefault(self.superclasses[name], []).append(name)
        return sorted(members.values())


@dataclass(frozen=True)
class ByAttribute(Grouping):
    """Groups by the values of an attribute; those beyond its bounds are in one group together."""

    kind = "attribute"

    def _parts(self, score_edges: Sequence[float]) -> object:  # noqa: ARG002
        return self.attribute


MOST_SCORE_STRATA: Final = 10
"""Strata by score, of each prediction: neighbouring score bins are in one if there are more."""

_STRATUM_END: Final = ": "


@dataclass(frozen=True)
class ByStratum(Grouping):
    """Values of an attribute by whether the positive class is predicted, and by score.

    Labels for error rates are drawn within these parts of a group.

    Attributes:
        positive: the class that is held against all others.
    """

    positive: str = ""
    kind = "stratum"
    has_threshold = False
    is_internal = True

    def strata(self, classes: Sequence[str], score_edges: Sequence[float]) -> ClassGroups:
        """Strata of one value, those of other classes first, and that of every class and score bin."""
        of_bins = score_strata(len(score_edges) + 1)
        count, edges = int(of_bins[-1]) + 1, [0.0, *score_edges]
        starts = [edges[int(np.flatnonzero(of_bins == stratum)[0])] for stratum in range(1, count)]
        scores = bin_names(starts)
        names = [f"{said} {score}" for said in ("not selected", "selected") for score in scores]
        return names, np.stack([of_bins + count * (name == self.positive) for name in classes])

    def group_name(self, stratum: str, value: str) -> str:
        """Name of the stratum of a value."""
        return f"{stratum}{_STRATUM_END}{value}"

    def value_of(self, group: str) -> str:
        """The value of which this is a stratum."""
        return value_of_stratum(group)

    def _parts(self, score_edges: Sequence[float]) -> object:
        return [self.attribute, self.positive, score_edges]


def value_of_stratum(group: str) -> str:
    """The value of an attribute of which a group is a stratum."""
    return group.partition(_STRATUM_END)[2]


def with_value(group: str, value: str) -> str:
    """The same stratum of another value."""
    return f"{group.partition(_STRATUM_END)[0]}{_STRATUM_END}{value}"


def score_strata(bins: int, most: int = MOST_SCORE_STRATA) -> Indices:
    """Stratum of every score bin, ascending [bins]."""
    return np.arange(bins) * min(bins, most) // bins


@dataclass(frozen=True)
class ByVotes(Grouping):
    """Groups by the votes of an ensemble's members: a few votes are for what is hard, which is no fault."""

    kind: ClassVar[GroupingKind] = "votes"
    has_threshold = False
    is_by_votes = True

    def definition(self, score_edges: Sequence[float]) -> bytes:  # noqa: ARG002
        """Empty: by whose votes labels were drawn is remembered beside it."""
        return b""


@dataclass(frozen=True)
class ByChallenger(ByVotes):
    """Groups by whether a challenger agrees: what it sees otherwise is harder, which is no fault."""

    kind = "challenge"


def bin_names(score_edges: Sequence[float]) -> list[str]:
    """Names of the score bins between inner edges."""
    edges = [0.0, *score_edges, 1.0]
    last = len(edges) - 2
    return [f"[{low:g},{high:g}{']' if i == last else ')'}" for i, (low, high) in enumerate(pairwise(edges))]
