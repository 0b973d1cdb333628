"""Which columns of a sample are attributes worth a grouping, which are left out, and why."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from service.app.files.columns import ATTRIBUTE, PROBABILITY, VOTE, listed, plain_name
from service.app.files.prediction_columns import ALL_FIELDS
from service.app.proposal.column_tally import LONG_TEXT, ColumnProfile
from service.app.proposal.profile import Profile
from service.app.proposal.roles import Roles
from service.app.proposal.usual_names import field_of, last_field, normalised
from service.domain.errors import ConfigurationError
from service.domain.messages import MOST_ATTRIBUTES

MOST_NUMBERS: Final = 20
"""Different numbers of a column that is still an attribute; more are a quantity, not a kind."""

MOST_CODES: Final = 8
"""Different numbers of a column that gets labels of its own by default; more are rather a quantity."""

MOST_GROUPS: Final = 1_000
"""Values of an attribute that have groups of their own, by default (`bounds.attribute_values`)."""

_MOST_MISSING = 0.9
_MOST_LONG = 0.05
_MOST_ALONE = 0.5
"""Different values for each row, above which groups have one or two predictions."""

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_LONGEST_NAME = 64

CLASS_GROUPING: Final = "class"
"""The grouping by predicted class."""


@dataclass(frozen=True)
class Attribute:
    """A column that becomes a grouping.

    Attributes:
        name: of the attribute in messages.
        grouping: its name.
        column: of the file.
        groups: number of groups in the sample, that of missing values included.
        why: it is an attribute.
        is_quantity: whether its values are numbers, too many for codes, and nobody named the column.
    """

    name: str
    grouping: str
    column: str
    groups: int
    why: str
    is_quantity: bool


@dataclass(frozen=True)
class Attributes:
    """The attributes of a sample.

    Attributes:
        chosen: in the order of the file, or that the user named them in.
        left_out: why each other column is none, by its name.
    """

    chosen: Sequence[Attribute]
    left_out: Mapping[str, str]


def find_attributes(profile: Profile, roles: Roles, given: Sequence[str] | None) -> Attributes:
    """The attributes of a sample; `given` are the columns that the user names, and then no others are.

    Raises:
        ConfigurationError: a column that is named is missing or cannot be an attribute.
    """
    names = _Names()
    chosen, left_out = [], {}
    if twice := [column for column, count in Counter(given or ()).items() if count > 1]:
        repeated = f"{listed(twice)} is there twice; name each column once"
        raise ConfigurationError([("--attributes", repeated)], profile.source)
    for column in given or ():
        if (problem := _misuse(profile, roles, column)) is not None:
            raise ConfigurationError([("--attributes", problem)], profile.source)
        found = profile.columns[column]
        chosen.append(_attribute(found, names, "named by --attributes"))
    if len(chosen) > MOST_ATTRIBUTES:
        many = f"{len(chosen)} columns are named; a prediction has at most {MOST_ATTRIBUTES} attributes"
        raise ConfigurationError([("--attributes", many)], profile.source)
    for name, found in profile.columns.items():
        if name in roles.used or any(name == each.column for each in chosen):
            continue
        reason = "not among --attributes" if given is not None else next(_reasons_against(found), "")
        if not reason and len(chosen) == MOST_ATTRIBUTES:
            reason = f"a prediction has at most {MOST_ATTRIBUTES} attributes"
        if reason:
            left_out[name] = reason
        else:
            chosen.append(_attribute(found, names, ""))
    return Attributes(chosen, left_out)


def _misuse(profile: Profile, roles: Roles, name: str) -> str | None:
    """Why a column that the user names cannot be an attribute; None if it can."""
    if name not in profile.columns:
        return f"there is no column {plain_name(name)}; the columns are {listed(list(profile.columns))}"
    column = profile.columns[name]
    if name in roles.used:
        return f"column {plain_name(name)} has another role"
    if column.not_text:
        place = f"column {plain_name(name)}: {column.unit} {column.not_text:,}"
        return f"{place} is neither text nor an integer; write text"
    return None if column.filled else f"column {plain_name(name)} has no value in any row"


def _reasons_against(column: ColumnProfile) -> Iterator[str]:
    """Why a column is no attribute, the most telling reason first; none if it is one."""
    if reason := _reason_of_name(column.name):
        yield reason
    if not column.filled:
        yield "no row has a value"
    if column.is_nested:
        yield "its values are lists or objects"
    if column.numbers is None and column.times is not None:
        yield "its values are times, which differ from row to row; --time names the time of predictions"
    if column.not_text:
        place = f"{column.unit} {column.not_text:,}"
        yield f"{place} is neither text nor an integer; have the producer write text"
    if column.missing_share > _MOST_MISSING:
        yield f"{column.missing_share:.1%} of the rows have no value"
    yield from _reasons_of_values(column)


def _reasons_of_values(column: ColumnProfile) -> Iterator[str]:
    values = f"{'more than ' if column.counts is None else ''}{column.distinct:,} values"
    if column.distinct == 1 and column.filled == column.rows:
        (value,) = column.counts or ("",)
        yield f"constant: every row has {plain_name(value)}, so there would be one group"
    if column.is_unique:
        yield "every value is different, as of an id"
    if column.long_share > _MOST_LONG:
        share = f"{column.long_share:.0%}"
        yield f"{share} of its values are longer than {LONG_TEXT} characters, as of free text"
    if column.numbers is not None and column.distinct > MOST_NUMBERS:
        lowest, highest = column.numbers.lowest, column.numbers.highest
        yield f"a number with {values}, from {lowest:g} to {highest:g}; have the producer write ranges"
    if column.distinct > MOST_GROUPS:
        yield f"{values}; only {MOST_GROUPS:,} have groups of their own (bounds.attribute_values)"
    if column.distinct > max(_MOST_ALONE * column.filled, MOST_NUMBERS):
        yield f"{values} in {column.filled:,} rows, so groups would have one or two predictions"


def _reason_of_name(name: str) -> str:
    """Why a column of this name is no attribute; empty if it may be one."""
    own = name.removeprefix(ATTRIBUTE)
    reasons = {
        "the column has no name": not name,
        "a vote of another classifier (docs/challengers.md, docs/ensembles.md)": name.startswith(VOTE),
        "the configuration takes names of letters, digits, `.`, `_` and `-`; rename it in the producer": (
            own != name and not re.fullmatch(_NAME, own)
        ),
        "its name may mean the predicted or the true class: say --predicted, --truth or --attributes": (
            normalised(name) == "class"
        ),
        "what the labeller sees": name in ("payload", "payload_uri"),
        "a probability": name.startswith(PROBABILITY),
    }
    usual = field_of(name)
    reasons[f"its name is usual for {usual}, which is not an attribute"] = usual is not None
    return next((reason for reason, holds in reasons.items() if holds), "")


def _attribute(column: ColumnProfile, names: _Names, why: str) -> Attribute:
    groups = column.distinct + (column.filled < column.rows)
    described = f"{_described(column)}{'; ' if why else ''}{why}"
    name, grouping = names.of(column.name)
    is_quantity = column.numbers is not None and column.distinct > MOST_CODES and not why
    return Attribute(name, grouping, column.name, groups, described, is_quantity)


def _described(column: ColumnProfile) -> str:
    counts = column.counts
    if counts is None:
        text = f"more than {column.distinct:,} values"
    else:
        most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        value, count = most[0]
        many = "1 value" if len(most) == 1 else f"{len(most):,} values"
        text = f"{many}; the most frequent, {plain_name(value)}, has {count / column.rows:.1%} of the rows"
        if len(most) > 1:
            text += f", the rarest {most[-1][1] / column.rows:.1%}"
        if len(most) > MOST_GROUPS:
            alone = sum(count for _, count in most[:MOST_GROUPS]) / column.rows
            text += (
                f". The {MOST_GROUPS:,} most frequent have groups of their own and {alone:.1%} of the rows; "
                "all others share group __other__"
            )
    missing = f"; missing in {column.missing_share:.1%}, group __missing__" if column.missing_share else ""
    return f"{text}{missing}"


class _Names:
    """Names of attributes and groupings that the configuration accepts, each once."""

    def __init__(self) -> None:
        self._attributes = set[str]()
        self._groupings = {"all", "score_bin", CLASS_GROUPING}

    def of(self, column: str) -> tuple[str, str]:
        """Names of a column's attribute and of its grouping."""
        # Letters keep what is left of them without accents.
        own = unicodedata.normalize("NFKD", last_field(column).removeprefix(ATTRIBUTE))
        own = "".join(each for each in own if not unicodedata.combining(each))
        base = re.sub(r"[^A-Za-z0-9._-]+", "_", own).lstrip("._-")[:_LONGEST_NAME] or "attribute"
        return _first_free(base, self._attributes), _first_free(base, self._groupings)


def _first_free(base: str, taken: set[str]) -> str:
    name = next(each for each in _numbered(base) if each not in taken)
    taken.add(name)
    return name


def _numbered(base: str) -> Iterator[str]:
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1


def is_read_by_its_name(attribute: Attribute) -> bool:
    """Whether `credence predictions send` finds the column of an attribute by itself."""
    return attribute.column == ATTRIBUTE + attribute.name or (
        attribute.column == attribute.name and attribute.column not in ALL_FIELDS
    )
