"""Makes predictions of a file's rows for a trial, and writes down what its report compares."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

import msgspec

from consumers.formats.native import AttributeDecoder, WirePrediction, decode_prediction
from consumers.validation import PredictionChecks
from service.app.files.cells import to_text
from service.app.files.columns import plain_name
from service.app.files.prediction_rows import PredictionRows
from service.app.files.records import Made, Record
from service.app.files.rows import BadCell, Row, Table
from service.app.proposal.classes import possible_truths
from service.app.proposal.profile import Profile
from service.app.proposal.propose import Proposal
from service.app.proposal.usual_names import USUAL, normalised
from service.app.trial.ledger import UNKNOWN, Ledger
from service.config.model import ModelSettings
from service.config.settings import Settings
from service.domain.cells import MISSING, escape_reserved
from service.domain.errors import BadMessage

_ITEM, _TIME = "item_id", "time"
_PAYLOADS = ("payload", "payload_uri")
_LONGEST_SHOWN: Final = 1_000
"""Characters of a cell that a labeller sees; and most columns that they see."""
_MOST_SHOWN: Final = 12


class TrialRows:
    """Makes the predictions of a file, each as of now, with an id for its item.

    Args:
        settings: of the trial.
        proposal: that says which columns are what.
        profile: of the file.
        shows_rows: whether a person labels, who sees the row where it has no payload.

    Attributes:
        ledger: what was made.
        item_note: why the column of items is not used, in a sentence; empty if it is.
        truth_note: how many rows are left out as they have no true class, and what follows; empty if none is.
    """

    def __init__(self, settings: Settings, proposal: Proposal, profile: Profile, *, shows_rows: bool) -> None:
        roles = proposal.roles
        self._truth = roles.fields["true_class"].column
        self._item = roles.fields["item_id"].column
        self.item_note = ""
        if self._item and profile.columns[self._item].repeats:
            # A label counts for every prediction of its item, whatever the true class of its row is.
            column = plain_name(self._item)
            self.item_note = f"Values of {column} repeat, so the number of each row names its item instead."
            self._item = ""
        self.truth_note = _truth_note(profile, self._truth)
        self._shown = _shown_columns(proposal, profile) if shows_rows else ()
        own = [each for each in proposal.renamed if not each.startswith((f"{_ITEM}=", f"{_TIME}="))]
        renamed = [*own, f"{_TIME}="]
        if self._item not in {"", _ITEM}:
            renamed.append(f"{_ITEM}={self._item}")
        self._rows = PredictionRows(settings, renamed=renamed, model=proposal.model)
        model = settings.models[proposal.model]
        self._class_index = {name: index for index, name in enumerate(model.classes)}
        self._checks = PredictionChecks(model.classes, payload_bytes=settings.bounds.payload_bytes)
        self._groups = _Groups(model)
        self.ledger = Ledger(model.classes, self._groups.names)

    def used(self, available: Collection[str]) -> Collection[str]:
        """Those of the columns of a file that are read."""
        further = {self._truth, *self._shown}
        return {*self._rows.used(available), *(name for name in available if name in further)}

    def column_of(self, field: str) -> str:
        """The column of a field; empty if the file says its columns, and has none of it."""
        return self._rows.column_of(field)

    def begin(self, table: Table, source: str) -> Table:
        """The table with what the rows lack, once its columns are checked.

        Raises:
            UnusableFileError: a column is missing.
        """
        added = [name for name, is_added in ((_ITEM, not self._item), ("payload", self._shown)) if is_added]
        columns = None if table.columns is None else list(dict.fromkeys([*table.columns, *added]))
        rows = filter(self._is_tried, table.rows)
        completed = Table(columns, map(self._completed, rows, repeat(table.unit)), table.unit)
        self._rows.begin(completed, source)
        return completed

    def make(self, rows: Sequence[Row], now: float) -> Iterator[tuple[Row, Made]]:
        """What each row becomes, in order; `now` in seconds since the epoch."""
        made = [(row, self._with_truth(row, one)) for row, one in self._rows.make(rows, now)]
        good = [(row, one) for row, one in made if isinstance(one, Record)]
        self._write_down([decode_prediction(one.value) for _, one in good], [row for row, _ in good])
        yield from made

    def notes(self) -> list[str]:
        """What the user should know of the file, in sentences."""
        return [*filter(None, (self.item_note, self.truth_note)), *self._rows.notes()]

    def _is_tried(self, row: Row) -> bool:
        """Whether a request for the row can be answered, as far as the file decides that.

        Requests for other rows would use labels up without an answer.
        """
        return not self._truth or row.problem is not None or row.cells.get(self._truth) is not None

    def _completed(self, row: Row, unit: str) -> Row:
        """A row with an id of its item, and with what a labeller sees."""
        cells = dict(row.cells)
        if not self._item:
            cells[_ITEM] = f"{unit}-{row.number}"
        if self._shown:
            cells["payload"] = {
                name: shown for name in self._shown if (shown := _shown(cells.get(name))) is not None
            }
        return Row(row.number, cells, row.problem, row.size)

    def _with_truth(self, row: Row, made: Made) -> Made:
        """The same, unless the row's true class is none of the model's."""
        if not isinstance(made, Record):
            return made
        try:
            self._true_class(row)
        except BadMessage as error:
            return error
        return made

    def _true_class(self, row: Row) -> int:
        cell = row.cells.get(self._truth) if self._truth else None
        if cell is None:
            return UNKNOWN
        index = self._class_index.get(to_text(cell, self._truth))
        if index is None:
            raise BadCell(self._truth, "the true class is none of the model's", reason="unknown_class")
        return index

    def _write_down(self, predictions: Sequence[WirePrediction], rows: Sequence[Row]) -> None:
        if not predictions:
            return
        checked = self._checks.check_all(predictions)
        self.ledger.add(
            items=[each.item_id for each in predictions],
            predicted=checked.classes.tolist(),
            scores=checked.scores.tolist(),
            true=[self._true_class(row) for row in rows],
            groups=self._groups.of(predictions, checked.classes.tolist()),
        )


class _Groups:
    """The groups that a prediction is in, by the groupings of a model that a proposal has."""

    def __init__(self, model: ModelSettings) -> None:
        self._classes = model.classes
        groupings = model.groupings
        self._attributes = {name: each.attribute for name, each in groupings.items() if each.attribute}
        self._by_class = [name for name, each in groupings.items() if each.by == "predicted_class"]
        self._decoder = AttributeDecoder(list(self._attributes.values()))

    @property
    def names(self) -> list[str]:
        """Of the groupings."""
        return [*self._attributes, *self._by_class]

    def of(self, predictions: Sequence[WirePrediction], classes: Sequence[int]) -> dict[str, Sequence[str]]:
        """Group of every prediction [n], by grouping."""
        predicted = [self._classes[index] for index in classes]
        found: dict[str, Sequence[str]] = dict.fromkeys(self._by_class, predicted)
        if self._attributes:
            values = self._decoder.values([bytes(each.attributes) for each in predictions])
            # Each has been checked already, so none is refused.
            columns = zip(*(each for each in values if not isinstance(each, BadMessage)), strict=True)
            for name, column in zip(self._attributes, columns, strict=True):
                found[name] = [MISSING if value is None else escape_reserved(value) for value in column]
        return found


def has_truth(proposal: Proposal) -> bool:
    """Whether the file has a column of true classes, which answers requests."""
    return bool(proposal.roles.fields["true_class"])


def answerable_rows(profile: Profile, proposal: Proposal) -> int:
    """Rows that a label can be requested of: those with a true class if the file has these, else all."""
    column = proposal.roles.fields["true_class"].column
    return profile.columns[column].filled if column else profile.rows


def _truth_note(profile: Profile, column: str) -> str:
    if not column or (without := profile.rows - profile.columns[column].filled) == 0:
        return ""
    return (
        f"{without:,} of {profile.rows:,} rows have no true class, so nothing can answer a request for them. "
        "They are left out, and all estimates and shares are of the others. If these are not a random part "
        "of the traffic, its accuracy may be another. To try all rows, label yourself: --truth ''."
    )


def _shown_columns(proposal: Proposal, profile: Profile) -> list[str]:
    """Columns that a labeller sees: none beside a payload, else all but predictions and possible truths."""
    columns = profile.columns
    if any(name in columns for name in _PAYLOADS):
        return []
    roles = proposal.roles
    hidden = {*roles.family.values()}
    hidden |= {roles.fields[name].column for name in ("predicted_class", "score", "probabilities")}
    hidden |= {name for name in columns if normalised(name) in USUAL["true_class"]}
    # A true class under another name would answer in the labeller's place.
    hidden |= {*possible_truths(profile, roles, proposal.settings.models[proposal.model].classes)}
    return [name for name in columns if name and name not in hidden][:_MOST_SHOWN]


def _shown(cell: Any) -> Any:
    """A cell as a labeller sees it; None if there is nothing to see."""
    if isinstance(cell, msgspec.Raw):
        return cell if len(bytes(cell)) <= _LONGEST_SHOWN else None
    if isinstance(cell, str):
        return cell if len(cell) <= _LONGEST_SHOWN else f"{cell[:_LONGEST_SHOWN]}…"
    return cell if isinstance(cell, (bool, int)) else _text_of(cell)


def _text_of(cell: Any) -> str | None:
    return None if cell is None or isinstance(cell, (bytes, Mapping, list)) else str(cell)
