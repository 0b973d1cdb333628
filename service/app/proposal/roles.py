"""Which column of a sample is which field of a prediction, and why; nothing is chosen in silence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.app.files.cells import to_number
from service.app.files.columns import PROBABILITY, listed, plain_name
from service.app.files.rows import BadCell
from service.app.proposal.column_tally import ColumnProfile, are_probabilities
from service.app.proposal.profile import Profile
from service.app.proposal.usual_names import FAMILIES, OPTIONS, RECORD_NAMES, USUAL, usual_name
from service.domain.errors import ConfigurationError
from service.domain.messages import SCORE_TOLERANCE
from service.domain.record_paths import parse_path


@dataclass(frozen=True)
class Role:
    """What a field is read from.

    Attributes:
        column: its name; empty if there is none.
        why: in a sentence for the owner.
    """

    column: str
    why: str

    def __bool__(self) -> bool:
        return bool(self.column)


@dataclass(frozen=True)
class Roles:
    """The columns of a sample that are fields of predictions.

    Attributes:
        fields: by the names of `OPTIONS`; that of `probabilities` is a column of lists.
        family: column of the probability of a class, by what follows the beginning of its name.
        family_why: how it was found.
    """

    fields: Mapping[str, Role]
    family: Mapping[str, str]
    family_why: str

    @property
    def used(self) -> set[str]:
        """All columns that have a role."""
        return {role.column for role in self.fields.values() if role} | {*self.family.values()}


def find_roles(profile: Profile, given: Mapping[str, str]) -> Roles:
    """The roles of columns.

    Args:
        profile: of the sample.
        given: columns that the user names, by field; empty for none. That of `probabilities` may also be the
            beginning of the names of several columns.

    Raises:
        ConfigurationError: a column that predictions need is missing, ambiguous or unusable; it names the
            option to choose one with.
    """
    family, family_why = _family(profile, given.get("probabilities"))
    rest = dict(given) | ({"probabilities": ""} if family else {})
    fields = {field: _role(profile, field, rest, family.values()) for field in USUAL}
    _check_distinct(profile, fields, given)
    needed = [] if family or fields["probabilities"] else ["predicted_class", "score"]
    # The rows of a file are numbered; a record has no number that a mapping could take.
    for field in [*needed, *(["item_id"] if profile.records is not None else [])]:
        if not fields[field]:
            raise _misuse(profile, field, _absent(profile, field, fields[field].why))
    return Roles(fields, family, family_why)


def _check_distinct(profile: Profile, fields: Mapping[str, Role], given: Collection[str]) -> None:
    """Refuse a column that has two roles; the error names an option of the user, if there is one."""
    for field in sorted(fields, key=lambda field: field not in given):
        column = fields[field].column
        if column and (twice := [each for each in fields if each != field and fields[each].column == column]):
            problem = f"column {plain_name(column)} is already {twice[0]}; one column has one role"
            raise _misuse(profile, field, problem)


def _role(profile: Profile, field: str, given: Mapping[str, str], taken: Collection[str]) -> Role:
    option = OPTIONS[field]
    if (column := given.get(field)) is not None:
        if not column:
            return Role("", f"no column, by {option}")
        if column not in profile.columns:
            raise _misuse(profile, field, f"there is no column {plain_name(column)}; {_columns(profile)}")
        if problem := _problem(profile, column, field):
            raise _misuse(profile, field, f"column {plain_name(column)}: {problem}")
        return Role(column, f"named by {option}")
    names = USUAL if profile.records is None else RECORD_NAMES
    candidates = [
        name
        for usual in names[field]
        for name in profile.columns
        if usual_name(name) == usual and name not in taken
    ]
    problems = {name: _problem(profile, name, field) for name in candidates}
    usable = [name for name, problem in problems.items() if not problem]
    unusable = "".join(
        f"; column {plain_name(name)} is not taken: {problem}"
        for name, problem in problems.items()
        if problem
    )
    if profile.records is not None:
        return _record_role(profile, field, usable, unusable)
    if not usable:
        return Role("", f"no column has a usual name of it ({', '.join(USUAL[field][:4])}){unusable}")
    if field in usable or len(usable) == 1:
        chosen = field if field in usable else usable[0]
        others = [name for name in usable if name != chosen]
        also = f"; also possible: {option} {listed(others)}" if others else ""
        why = "its name is that of the contract" if chosen == field else "its name is usual for it"
        return Role(chosen, f"{why}{also}{unusable}")
    raise _misuse(
        profile,
        field,
        f"{listed(usable)} could each be {field}; name one: {option} {plain_name(usable[0])}, or {option} '' "
        "for none",
    )


def _record_role(profile: Profile, field: str, usable: Sequence[str], unusable: str) -> Role:
    """The role of a path into records: the first of several, as their names are those of somebody else."""
    why = "its name is usual for it"
    if not usable and field == "probabilities":
        usable = [name for name, column in profile.columns.items() if column.lists is not None]
        why = "its values are numbers that sum to 1"
    if not usable and field == "item_id":
        key = profile.columns.get("$key")
        usable = ["$key"] if key is not None and key.is_unique and not key.missing_share else []
        why = "the key of the records, as no field has a usual name of it"
    if not usable:
        return Role("", f"no field has a usual name of it{unusable}")
    chosen, *others = sorted(usable, key=lambda name: _order_of_path(profile, field, name))
    if field == "item_id" and not profile.columns[chosen].is_unique:
        why += "; its values repeat, so check that each prediction has an item of its own"
    also = f"; also possible: {OPTIONS[field]} {listed(others)}" if others else ""
    return Role(chosen, f"{why}{also}{unusable}")


def _order_of_path(profile: Profile, field: str, name: str) -> tuple[bool, int, int]:
    """Before others: ids that are different in every record, more usual names, and shorter paths."""
    repeats = field == "item_id" and not profile.columns[name].is_unique
    usual = usual_name(name)
    rank = RECORD_NAMES[field].index(usual) if usual in RECORD_NAMES[field] else len(RECORD_NAMES[field])
    return repeats, rank, len(parse_path(name).steps)


def _problem(profile: Profile, name: str, field: str) -> str:
    """Why a column cannot be a field; empty if it can."""
    problems = _problems(profile.columns[name], field)
    return next(problems, "") or (profile.records.problem(name, field) if profile.records else "")


def _problems(column: ColumnProfile, field: str) -> Iterator[str]:
    if not column.filled:
        yield "it has no value in any row"
    elif field == "score":
        yield from _score_problems(column)
    elif field == "probabilities":
        if column.lists is None:
            yield column.lists_problem
    elif field == "time":
        if column.times is None:
            yield "not every value is a time (2026-01-31T12:00:00Z, or seconds since 1970)"
    elif column.not_text:
        yield f"{column.unit} {column.not_text:,} is neither text nor an integer"
    elif field != "item_id" and column.counts is None:
        yield f"it has more than {column.distinct:,} different values, too many for names"


def _score_problems(column: ColumnProfile) -> Iterator[str]:
    numbers = column.numbers
    if numbers is None:
        yield f"{column.unit} {column.not_number:,} is not a number"
        return
    for value, row in ((numbers.lowest, numbers.lowest_row), (numbers.highest, numbers.highest_row)):
        if not -SCORE_TOLERANCE <= value <= 1 + SCORE_TOLERANCE:
            yield f"{column.unit} {row:,} is {value:g}, which is no probability in [0, 1]"


def _family(profile: Profile, given: str | None) -> tuple[dict[str, str], str]:
    """Columns of the probabilities of classes, by what follows the beginning of their names."""
    if given == "" or (given is not None and given in profile.columns):
        return {}, ""
    if profile.records is not None and given is not None:
        problem = f"no field is {plain_name(given)}, and a mapping reads all probabilities from one; "
        raise _misuse(profile, "probabilities", problem + _columns(profile))
    for prefix in FAMILIES if given is None else (given,):
        found = {name.removeprefix(prefix): name for name in profile.columns if name.startswith(prefix)}
        found = {name: column for name, column in found.items() if name}
        if not found and given is not None:
            problem = f"no column is {plain_name(given)} or begins with it; {_columns(profile)}"
            raise _misuse(profile, "probabilities", problem)
        problem = _family_problem(profile, found.values())
        if not problem:
            return found, f"the {len(found)} columns {prefix}… are probabilities that sum to 1 in every row"
        if given is not None or (prefix == PROBABILITY and found):
            raise _misuse(profile, "probabilities", f"columns {prefix}…: {problem}")
    return {}, ""


def _family_problem(profile: Profile, columns: Collection[str]) -> str:
    if len(columns) < 2:  # noqa: PLR2004 - a classifier chooses
        return "there are fewer than two"
    for name in columns:
        if problem := _problem(profile, name, "score"):
            return f"column {plain_name(name)}: {problem}"
    for cells in profile.sample:
        values = family_values(cells, columns)
        if values is not None and not are_probabilities(values):
            return "they do not sum to 1 in some row"
    return ""


def family_values(cells: Mapping[str, Any], columns: Iterable[str]) -> list[float] | None:
    """The probabilities of a row; None if it lacks any."""
    try:
        return [to_number(cells[name], name) for name in columns]
    except (KeyError, BadCell):
        return None


def _absent(profile: Profile, field: str, why: str) -> str:
    what, also = {
        "predicted_class": (
            "no column is the predicted class, and none are the probabilities of all classes",
            f", or {OPTIONS['probabilities']} with the beginning of the names of their columns",
        ),
        "score": ("no column is the score, the probability of the predicted class", ""),
        "item_id": ("no field of the records is the id of the item, and their keys differ too little", ""),
    }[field]
    return f"{what}: {why}. Name it: {OPTIONS[field]} COLUMN{also}; {_columns(profile)}"


def _columns(profile: Profile) -> str:
    return f"the columns are {listed(list(profile.columns))}"


def _misuse(profile: Profile, field: str, problem: str) -> ConfigurationError:
    return ConfigurationError([(OPTIONS[field], problem)], profile.source)
