"""Groups, and the cells that traffic is counted in.

A grouping is a partition of a model's traffic. Its groups are defined by the predicted class and the score
bin, or by the value of one attribute. Traffic is counted in tables, one for each need, and never in the
product of all attributes (`service/domain/traffic_tables.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from service.domain.arrays import Floats, Indices
from service.domain.groupings import ClassGroups, Grouping

OTHER = "__other__"
"""Value that stands for all attribute values beyond the configured bounds."""

MISSING = "__missing__"
"""Value that stands for an attribute which a prediction does not have."""


RESERVED = frozenset({OTHER, MISSING})


def escape_reserved(value: str) -> str:
    r"""An attribute value that cannot be mistaken for `OTHER` or `MISSING`: these get a backslash prefix.

    So do those that have a prefix already, so that different values stay different.
    """
    return "\\" + value if value.lstrip("\\") in RESERVED else value


SCORE_BIN = "score_bin"
"""Name of the grouping by score bin."""

POSITIVE_SCORE = "positive_score"
"""Name of the grouping by the score of a binary classifier's positive class, whichever it predicts."""

VOTES = "__votes__"
"""Name of the grouping by the votes of an ensemble, and of the attribute that stands for them."""

CHALLENGE = "__challenge__"
"""Name of the grouping by whether a challenger agrees, and of the attribute that stands for it."""


def stratum_grouping(grouping: str) -> str:
    """Name of the grouping by the strata of another one's groups."""
    return f"__strata__:{grouping}"


AGREE, DISAGREE = "agree", "disagree"
"""Its groups; the third one is `MISSING`, where predictions do not have the challenger's vote."""

FORMER_GROUPING = "__former_grouping__"
"""Grouping of labels whose grouping was removed or redefined since they were requested."""

Combination = tuple[str, ...]


@dataclass(frozen=True)
class Ensemble:
    """A classifier that pools the votes of others (`members`), for or against the class `positive`."""

    members: tuple[str, ...]
    positive: str

    @property
    def pattern_count(self) -> int:
        """Number of possible patterns without `MISSING`: yes or no of the ensemble and of each member."""
        return 1 << (1 + len(self.members))

    @property
    def name(self) -> str:
        """Eight hexadecimal digits that differ between ensembles whose patterns mean something else."""
        return digits([self.positive, sorted(self.members)])

    def pattern(self, predicted_class: str, votes: Mapping[str, str]) -> str:
        """Votes for the positive class, a digit each, the ensemble's first; `MISSING` if one is missing."""
        if not votes.keys() >= set(self.members):
            return MISSING
        classes = (predicted_class, *(votes[member] for member in self.members))
        return "".join("1" if name == self.positive else "0" for name in classes)


@dataclass(frozen=True)
class Challenge:
    """Another classifier of the same items, which may replace the model; its name among the votes."""

    challenger: str

    @property
    def pattern_count(self) -> int:
        """Number of possible patterns without `MISSING`."""
        return 2

    @property
    def name(self) -> str:
        """Name that differs between challengers."""
        return self.challenger

    def pattern(self, predicted_class: str, votes: Mapping[str, str]) -> str:
        """`AGREE` or `DISAGREE` with the model, or `MISSING` if there is no vote."""
        vote = votes.get(self.challenger)
        if vote is None:
            return MISSING
        return AGREE if vote == predicted_class else DISAGREE


@dataclass(frozen=True)
class Selections:
    """What error rates are of: the positive class, and the attributes by whose values they are estimated."""

    positive: str
    attributes: frozenset[str]


@dataclass(frozen=True)
class CellBounds:
    """Bounds of one model's groups.

    Attributes:
        attribute_values: values of one attribute with groups of their own, those with most traffic.
        attribute_length: longest such value, in characters.
        further_attribute_bytes: of names and values of attributes that no grouping uses, stored with an item.
    """

    attribute_values: int = 1_000
    attribute_length: int = 64
    further_attribute_bytes: int = 512


@dataclass(frozen=True)
class CellSpace:
    """Classes, score bins, groupings and votes by which one model's predictions are counted.

    Attributes:
        classes: the model's label set, in configured order.
        score_edges: inner edges of the score bins, ascending, in (0, 1).
        groupings: all groupings by name; `all` and `score_bin` are always among them.
        ensemble: whose votes define groups, if any.
        challenge: whose agreement defines groups, if any; then there is no ensemble.
        selections: what error rates are of, if any are estimated.
    """

    classes: tuple[str, ...]
    score_edges: tuple[float, ...]
    groupings: Mapping[str, Grouping]
    bounds: CellBounds = CellBounds()
    ensemble: Ensemble | None = None
    challenge: Challenge | None = None
    selections: Selections | None = None

    @property
    def voters(self) -> tuple[str, Ensemble | Challenge] | None:
        """Whose votes define groups, if any, and the attribute that stands for them."""
        if self.ensemble is not None:
            return VOTES, self.ensemble
        return None if self.challenge is None else (CHALLENGE, self.challenge)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes that groupings use, sorted."""
        return tuple(sorted({g.attribute for g in self.groupings.values() if g.attribute}))

    @property
    def bin_count(self) -> int:
        """Number of score bins."""
        return len(self.score_edges) + 1

    @property
    def by_class(self) -> bool:
        """Whether a grouping tells predicted classes apart."""
        return any(g.is_by_class for g in self.groupings.values())

    def bins(self, scores: Floats) -> Indices:
        """Score bin of each score [n]; bins are closed on the left, the last one on both sides."""
        return np.searchsorted(np.asarray(self.score_edges), scores, side="right").astype(np.intp)

    def add_pattern(
        self, attributes: Mapping[str, str], predicted_class: str, votes: Mapping[str, str]
    ) -> Mapping[str, str]:
        """The attributes of a prediction, with the pattern of its votes as one where votes define groups."""
        if self.voters is None:
            return attributes
        name, voters = self.voters
        return {**attributes, name: voters.pattern(predicted_class, votes)}

    def voters_of(self, grouping: str) -> str:
        """Name of the voters whose votes define the groups of a grouping; empty if votes do not."""
        return self.voters[1].name if self.voters is not None and grouping == self.voters[0] else ""

    def raw_combination(self, attributes: Mapping[str, str]) -> Combination:
        """Values of `attributes`, in their order; a value that is too long is `OTHER`."""
        longest = self.bounds.attribute_length
        return tuple(
            value if len(value := attributes.get(name, MISSING)) <= longest else OTHER
            for name in self.attributes
        )

    def class_groups(self, grouping: str) -> ClassGroups | None:
        """The groups of a grouping by predicted class and score bin; None of one by an attribute's values."""
        return self.groupings[grouping].class_groups(self.classes, self.score_edges)

    def fingerprint(self, *parts: object) -> str:
        """Eight hexadecimal digits that differ when the offsets of stored shards would mean something else.

        Groupings, attributes and score bins are not part of it: a change of these starts tables and pools.
        `parts` are further facts that stored shards depend on, such as the half-life.
        """
        return digits([self.classes, parts])


def definitions(space: CellSpace) -> dict[str, bytes]:
    """`Grouping.definition` of every grouping by name.

    Under one name a later configuration may mean another partition. A label's weight, and what it proves of a
    group, is known only while it is known within which parts of the traffic it was drawn evenly. So labels
    keep the definition of the grouping that they were requested for.
    """
    return {name: grouping.definition(space.score_edges) for name, grouping in space.groupings.items()}


def grouping_key(name: str, definition: bytes) -> str:
    """Identity of a grouping, whatever it is called: its definition, or its name where it has none."""
    return definition.hex() or name


def digits(described: object) -> str:
    """Eight hexadecimal digits: a hash of a value's JSON."""
    return hashlib.blake2b(json.dumps(described).encode(), digest_size=4).hexdigest()
