"""The classes of the model in a sample, their order and why; and what was predicted of its rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.app.files.cells import to_numbers, to_text
from service.app.files.columns import listed
from service.app.files.rows import BadCell
from service.app.proposal.profile import Profile
from service.app.proposal.roles import Roles, family_values
from service.domain.errors import ConfigurationError

_OPTION = "--classes"
_LONGEST_CLASS = 256  # characters, as in the contract


@dataclass(frozen=True)
class Classes:
    """The classes of the model.

    Attributes:
        names: in the order of the configuration.
        why: they are these, and in this order.
        columns: of the probability of every class, in the same order; empty if there are none.
        never_predicted: that occur only as true classes.
    """

    names: Sequence[str]
    why: str
    columns: Sequence[str]
    never_predicted: Sequence[str]


def find_classes(profile: Profile, roles: Roles, given: Sequence[str] | None) -> Classes:
    """The classes of a sample; `given` are those that the user names, in their order.

    Raises:
        ConfigurationError: their names or their order do not follow from the sample.
    """
    predicted, true = (_values(profile, roles, field) for field in ("predicted_class", "true_class"))
    observed = _in_order(predicted | true)
    never = _in_order(true - predicted) if predicted else []
    if predicted and true and not predicted & true:
        problem = (
            f"no true class ({listed(_in_order(true))}) is a predicted class "
            f"({listed(_in_order(predicted))}); "
            "name the column of true classes, or --truth '' for none"
        )
        raise _refused(profile, problem, "--truth")
    if given is not None:
        _check_given(profile, given, observed)
        names, why = _given(profile, roles, given), f"named by {_OPTION}, in this order"
    elif named := _named(profile, roles):
        names, why = named, "each has a probability of its name"
        if unknown := [name for name in observed if name not in named]:
            raise _refused(profile, f"{listed(unknown)} occur as classes, but have no probability")
    elif count := len(roles.family) or _width(profile, roles):
        names, why = _positional(profile, roles, observed, predicted, count)
    else:
        names, why = (
            observed,
            "all that the sample has, in order; a class that it lacks would be refused, so add it",
        )
    _check(profile, names)
    columns = _columns(profile, roles, names)
    return Classes(names, why, columns, [name for name in never if name in names])


def predictions(profile: Profile, roles: Roles, classes: Classes) -> Iterator[tuple[str, float, str | None]]:
    """Predicted class, score and, if known, true class of the sampled rows that have a prediction."""
    for cells in profile.sample:
        if (found := _prediction(cells, roles, classes)) is not None:
            yield *found, _text(cells, roles, "true_class")


def possible_truths(profile: Profile, roles: Roles, names: Sequence[str]) -> list[str]:
    """Columns without a role whose values are all names of the classes `names`, and at least two of them."""
    return [
        name
        for name, column in profile.columns.items()
        if name not in roles.used
        and column.counts is not None
        and len(column.counts) > 1
        and column.counts.keys() <= set(names)
    ]


def is_sendable(cells: Mapping[str, Any], roles: Roles, classes: Classes) -> bool:
    """Whether a row has what `credence predictions send` needs: an item, a predicted class and a score."""
    has_item = _text(cells, roles, "item_id") is not None
    return has_item and _prediction(cells, roles, classes) is not None


def _prediction(cells: Mapping[str, Any], roles: Roles, classes: Classes) -> tuple[str, float] | None:
    """Predicted class and score of a row; None if it has no prediction."""
    probabilities = _probabilities(cells, roles, classes.columns)
    predicted = _text(cells, roles, "predicted_class")
    if probabilities is not None and len(probabilities) != len(classes.names):
        return None
    if predicted is None and probabilities is not None:
        predicted = classes.names[probabilities.index(max(probabilities))]
    if predicted is None or predicted not in classes.names:
        return None
    score = _number(cells, roles.fields["score"].column)
    if score is None and probabilities is not None:
        score = probabilities[list(classes.names).index(predicted)]
    return None if score is None else (predicted, score)


def class_shares(profile: Profile, roles: Roles, classes: Classes) -> dict[str, float]:
    """Share of every predicted class: of all rows if they name it, else of the sampled rows."""
    role = roles.fields["predicted_class"]
    counts: Mapping[str, int] = Counter(name for name, _, _ in predictions(profile, roles, classes))
    if role:
        counts = profile.columns[role.column].counts or {}
    total = sum(counts.values()) or 1
    return {name: counts.get(name, 0) / total for name in classes.names}


def _values(profile: Profile, roles: Roles, field: str) -> set[str]:
    role = roles.fields[field]
    return set(profile.columns[role.column].counts or ()) if role else set()


def _in_order(names: set[str]) -> list[str]:
    """Numbers by their value, other names by the alphabet."""
    if all(name.isascii() and name.isdecimal() for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def _named(profile: Profile, roles: Roles) -> list[str]:
    """Classes by whose names there are probabilities; empty if these have places, or there are none."""
    if roles.family:
        return [] if _is_positional(roles.family) else list(roles.family)
    column = roles.fields["probabilities"].column
    return profile.records.names_of(column) if profile.records is not None else []


def _is_positional(names: Mapping[str, str]) -> bool:
    return set(names) == {str(place) for place in range(len(names))}


def _width(profile: Profile, roles: Roles) -> int:
    role = roles.fields["probabilities"]
    return (profile.columns[role.column].lists or 0) if role else 0


def _positional(
    profile: Profile, roles: Roles, observed: Sequence[str], predicted: set[str], count: int
) -> tuple[list[str], str]:
    """Names of classes whose probabilities have a place and no name."""
    numbers = [str(place) for place in range(count)]
    if not observed:
        return numbers, (
            "the sample names no class, so these are the places of their probabilities, from 0; "
            "rename them, in this order"
        )
    if set(observed) <= set(numbers):
        return numbers, "numbers, which are the places of their probabilities, from 0"
    order = _order_by_highest(profile, roles, count) if predicted else None
    if order is not None and set(observed) <= set(order):
        return order, (
            "in the order of the probabilities: in the sampled rows, the class that is predicted is always "
            "the one at the place of the highest probability"
        )
    raise _refused(
        profile,
        f"there are {count:,} probabilities, and it does not follow which class ({listed(observed)}) each is "
        f"of; name all classes in the order of the probabilities: {_OPTION} NAME,NAME",
    )


def _order_by_highest(profile: Profile, roles: Roles, count: int) -> list[str] | None:
    """Classes by the place of the highest probability; None unless every place has exactly one."""
    found: dict[int, set[str]] = defaultdict(set)
    for cells in profile.sample:
        columns = [roles.family[str(place)] for place in range(len(roles.family))]
        values = _probabilities(cells, roles, columns)
        predicted = _text(cells, roles, "predicted_class")
        if values and predicted is not None:
            found[values.index(max(values))].add(predicted)
    if len(found) != count or any(len(names) != 1 for names in found.values()):
        return None
    names = [next(iter(found[place])) for place in range(count)]
    return names if len(set(names)) == count else None


def _columns(profile: Profile, roles: Roles, names: Sequence[str]) -> list[str]:
    """The column of every class's probability; by place if columns are numbered."""
    if not roles.family:
        return []
    if set(names) == set(roles.family):
        return [roles.family[name] for name in names]
    if len(names) != len(roles.family):
        raise _refused(profile, f"{len(names)} classes, but {len(roles.family)} columns of probabilities")
    if not _is_positional(roles.family):
        raise _refused(profile, f"the columns of probabilities are of {listed(list(roles.family))}")
    return [roles.family[str(place)] for place in range(len(names))]


def _check_given(profile: Profile, given: Sequence[str], observed: Sequence[str]) -> None:
    if unknown := [name for name in observed if name not in given]:
        raise _refused(profile, f"lacks classes that the sample has: {listed(unknown)}")


def _given(profile: Profile, roles: Roles, given: Sequence[str]) -> list[str]:
    """Classes that the user names; in the order of a record's probabilities if these have names."""
    if profile.records is None or not (named := _named(profile, roles)):
        return list(given)
    if set(named) != set(given):
        raise _refused(profile, f"the probabilities are of {listed(named)}; name these, or no classes")
    return named


def _check(profile: Profile, names: Sequence[str]) -> None:
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise _refused(profile, f"{listed(twice)} is there twice")
    if long := [name for name in names if not 0 < len(name) <= _LONGEST_CLASS]:
        raise _refused(profile, f"a class has 1 to {_LONGEST_CLASS} characters, unlike {listed(long)}")
    if len(names) < 2:  # noqa: PLR2004 - a classifier chooses
        raise _refused(
            profile,
            f"the sample has only class {listed(names)}; take a larger sample, or name all: {_OPTION} "
            "NAME,NAME",
        )


def _probabilities(cells: Mapping[str, Any], roles: Roles, columns: Sequence[str]) -> list[float] | None:
    if columns:
        return family_values(cells, columns)
    column = roles.fields["probabilities"].column
    if not column or (cell := cells.get(column)) is None:
        return None
    try:
        return to_numbers(cell, column)
    except BadCell:
        return None


def _text(cells: Mapping[str, Any], roles: Roles, field: str) -> str | None:
    column = roles.fields[field].column
    if not column or (cell := cells.get(column)) is None:
        return None
    return to_text(cell, column)


def _number(cells: Mapping[str, Any], column: str) -> float | None:
    values = family_values(cells, [column]) if column else None
    return None if values is None else values[0]


def _refused(profile: Profile, problem: str, option: str = _OPTION) -> ConfigurationError:
    if profile.refused:
        # What is missing may be in the rows that cannot be read.
        problem += f". {profile.refusals} Correct these first"
    return ConfigurationError([(option, problem)], profile.source)
