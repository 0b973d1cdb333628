"""Makes labels of rows, and finds those that the consumer would refuse."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from consumers.label_checks import ITEM_MISMATCH, LabelChecks
from service.app.files.cells import Converter, to_number, to_text, to_time
from service.app.files.columns import Columns, listed
from service.app.files.records import Envelopes, Made, Models, NotRequested, Record, json_of
from service.app.files.requested_items import Answer, RequestedItems
from service.app.files.rows import BadCell, Row, Table
from service.config.settings import Settings
from service.domain.errors import BadMessage, misuse
from service.domain.label_signatures import sign
from service.domain.messages import LABEL_TYPE
from service.store.open_requests import OpenRequests
from service.store.request_registry import is_request_for, request_id_of

FIELDS: Mapping[str, Converter] = {
    "request_id": to_text,
    "item_id": to_text,
    "kind": to_text,
    "true_class": to_text,
    "annotator": to_text,
    "time": to_time,
    "probability": to_number,
}
"""Fields of a label but its model, and what makes their values of cells."""

ALL_FIELDS = ("model", *FIELDS)

_OF_ANSWERS = ("correction", "retraction")
"""Kinds of labels whose request is not open: which one they are about cannot be found by the item."""


@dataclass
class _Draft:
    """What is known of the label of a row.

    Attributes:
        fields: of the message.
        made: what the row becomes, once that is decided.
        is_by_item: whether the row names only the item.
    """

    row: Row
    fields: dict[str, Any]
    made: Made | None = None
    is_by_item: bool = False

    def lacks(self, field: str) -> bool:
        """Whether it may become a record, and has no such field yet."""
        return self.made is None and field not in self.fields

    @property
    def is_revision(self) -> bool:
        """Whether it revises another label."""
        return self.fields.get("kind") in _OF_ANSWERS

    @property
    def is_answer(self) -> bool:
        """Whether it is a valid label that closes an open request."""
        return isinstance(self.made, Record) and not self.is_revision


class LabelRows:
    """Makes the labels of one file.

    Args:
        settings: the configuration.
        checks: of the consumer.
        renamed: options `FIELD=COLUMN` of the command line.
        model: of rows that name none.
        vendor: that signs the labels; None where vendors are not configured.
        annotator: of rows that name none.
        connect: makes the readers of open requests, by model; called when the first one is needed.

    Raises:
        ConfigurationError: an option is not valid.
    """

    def __init__(
        self,
        settings: Settings,
        checks: LabelChecks,
        *,
        renamed: Iterable[str],
        model: str | None,
        vendor: str | None,
        annotator: str | None,
        connect: Callable[[], Mapping[str, OpenRequests]],
    ) -> None:
        self._columns = Columns.parse(renamed, ALL_FIELDS, prefixed=False)
        self._models = Models(settings, self._columns, model)
        self._vendor = _checked_vendor(settings, vendor)
        self._keys = settings.vendors[self._vendor].label_key_bytes() if self._vendor else []
        self._annotator = annotator
        self._checks = checks
        self._requested = RequestedItems(connect, checks.several, self._vendor)
        self._available: Sequence[str] | None = None
        self._envelopes = Envelopes(LABEL_TYPE)

    def used(self, available: Collection[str]) -> Collection[str]:
        """Those of the columns of a file that are read."""
        used = {self._columns.of(field) for field in ALL_FIELDS}
        return {name for name in available if name in used}

    def column_of(self, field: str) -> str:
        """The column of a field; empty if the file says its columns, and has none of it."""
        return self._columns.in_file(field, self._available)

    def begin(self, table: Table, source: str) -> None:
        """Check the columns of the file, if it says them before its rows.

        Raises:
            UnusableFileError: a column is missing, or there twice.
        """
        self._available = table.columns
        if (available := table.columns) is None:
            return
        self._columns.check(available, source, used=self.used(available))
        for either in (("item_id", "request_id"), ("true_class", "kind")):
            if not any(self._columns.of(field) in available for field in either):
                raise self._columns.missing_error(either[0], available, source)

    def make(self, rows: Sequence[Row], now: float) -> Iterator[tuple[Row, Made]]:
        """What each row becomes, in order; `now` in seconds since the epoch.

        Raises:
            Unavailable: Redis is needed, and does not answer.
        """
        drafts = [self._draft(row, now) for row in rows]
        for model, some in _by_model(draft for draft in drafts if draft.lacks("item_id")):
            self._add_items(model, some)
        for draft in drafts:
            if draft.lacks("request_id") and not draft.is_revision:
                # The id of the item's first request, for the checks: most labels answer that one.
                draft.fields["request_id"] = request_id_of(draft.fields["model"], draft.fields["item_id"])
                draft.is_by_item = True
            if draft.made is None:
                draft.made = self._record(draft.fields, now)
        for model, some in _by_model(draft for draft in drafts if draft.is_answer):
            self._add_requests(model, some, now)
        for draft in drafts:
            if draft.made is not None:
                yield draft.row, self._add_unrequested(draft, draft.made, now)

    def notes(self) -> list[str]:
        """What the user should know of the file, in sentences."""
        unused = [name for name in self._available or () if name not in self.used([name])]
        return [f"columns that are not sent: {listed(unused)}"] if unused else []

    def _draft(self, row: Row, now: float) -> _Draft:
        """The label of a row, as far as the row names it."""
        if row.problem is not None:
            return _Draft(row, {}, row.problem)
        try:
            fields = self._fields(row)
        except BadMessage as error:
            return _Draft(row, {}, error)
        defaults = {"time": datetime.fromtimestamp(now, UTC).isoformat(), "annotator": self._annotator}
        return _Draft(row, defaults | fields)

    def _fields(self, row: Row) -> dict[str, Any]:
        fields = {
            field: convert(cell, column)
            for field, convert in FIELDS.items()
            if (column := self._columns.of(field)) and (cell := row.cells.get(column)) is not None
        }
        if "request_id" not in fields and "item_id" not in fields:
            raise BadMessage("missing_field", "the row has neither item_id nor request_id")
        model = self._models.of(row)
        is_of_answer = fields.get("kind") in _OF_ANSWERS
        if "request_id" not in fields and is_of_answer and model not in self._checks.unrequested:
            raise BadCell(
                self._columns.of("kind") or "kind", "a correction or retraction needs the request_id"
            )
        return {"model": model} | fields

    def _add_items(self, model: str, drafts: Sequence[_Draft]) -> None:
        """Add the item to labels that name only their request, which must be open."""
        found = self._requested.items_of(model, [draft.fields["request_id"] for draft in drafts])
        for draft, item in zip(drafts, found, strict=True):
            if item is None:
                detail = "request_id: no open request has this id; a label of a closed one needs the item_id"
                draft.made = BadMessage("unknown_request", detail)
            else:
                draft.fields["item_id"] = item

    def _add_requests(self, model: str, drafts: Sequence[_Draft], now: float) -> None:
        """Let each label answer an open request that no row before answers: the one that it names, if any."""
        answers = [
            Answer(
                draft.fields["item_id"],
                draft.fields["annotator"] or "",
                "" if draft.is_by_item else draft.fields["request_id"],
            )
            for draft in drafts
        ]
        for draft, found in zip(drafts, self._requested.requests_for(model, answers), strict=True):
            if isinstance(found, NotRequested) and self._is_taken(draft):
                draft.made = self._record(draft.fields | {"request_id": None}, now)
            elif not isinstance(found, str):
                draft.made = found
            elif found != draft.fields["request_id"]:
                draft.made = self._record(draft.fields | {"request_id": found}, now)

    def _add_unrequested(self, draft: _Draft, made: Made, now: float) -> Made:
        """Let an answer of a row that names only the item be the label of the waiting prediction, too.

        Otherwise that prediction would wait in vain. A row that names its request may be there only
        because of the request, so that its item may be none of those that get a label anyway.
        """
        if (
            not isinstance(made, Record)
            or not draft.is_by_item
            or made.unrequested
            or not self._is_taken(draft)
        ):
            return made
        beside = self._record(draft.fields | {"request_id": None}, now)
        # Without a probability it is not of the sample.
        return replace(made, beside=beside) if isinstance(beside, Record) else made

    def _is_taken(self, draft: _Draft) -> bool:
        """Whether the model takes the label of an item that nobody has requested."""
        return draft.fields["model"] in self._checks.unrequested and draft.fields.get("kind") != "skip"

    def _record(self, fields: dict[str, Any], now: float) -> Record | BadMessage:
        """The record of a label, or why the consumer would refuse it."""
        has_request = fields.get("request_id") is not None
        value = json_of(fields | {"probability": None} if has_request else fields)
        headers = self._envelopes.headers(now)
        if self._vendor:
            headers += sign(self._keys[0], self._vendor, value)
        record = Record(fields["item_id"].encode(), value, headers, unrequested=not has_request)
        try:
            label, _ = self._checks.decode(record)
        except BadMessage as error:
            return error
        request = label.request_id
        if request is not None and not is_request_for(request, label.model, label.item_id):
            return BadMessage("item_mismatch", ITEM_MISMATCH)
        return record


def _by_model(drafts: Iterable[_Draft]) -> Iterable[tuple[str, list[_Draft]]]:
    found: dict[str, list[_Draft]] = {}
    for draft in drafts:
        found.setdefault(draft.fields["model"], []).append(draft)
    return found.items()


def _checked_vendor(settings: Settings, vendor: str | None) -> str:
    """The vendor that signs; empty where vendors are not configured.

    Raises:
        ConfigurationError: it is not configured, or none is given although there are some.
    """
    if vendor is None and not settings.vendors:
        return ""
    if vendor is None or vendor not in settings.vendors:
        known = ", ".join(sorted(settings.vendors)) or "none"
        problem = f"must name the vendor that signs the labels; configured: {known}"
        raise misuse("--vendor", problem)
    return vendor
