"""What the records of a sampled topic are: messages, inference responses, or of another shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import msgspec

from consumers.formats.decode_errors import guarded
from consumers.formats.event_headers import Headers
from consumers.formats.inference_response import Response, parse_response
from consumers.formats.open_inference import OpenInference
from consumers.formats.records import decode_records
from service.app.files.rows import Row
from service.app.format_wiring import prediction_formats, record_reader
from service.app.proposal.record_cells import RecordCells
from service.app.proposal.tensor_names import TensorNames, find_tensors
from service.app.proposal.topic_sample import message_rows, place_of
from service.app.proposal.usual_names import field_of
from service.config.settings import Settings
from service.domain.errors import BadMessage

Batches = Iterable[Sequence[Any]]

_MOST_KEPT = 1_000
_MOST_KEPT_BYTES = 33_554_432
"""First records that are read back with the configuration."""

_MOST_CELLS = 100_000
"""Cells of the first records among which the name of the model is looked for."""


@dataclass(frozen=True)
class TopicSample:
    """The records of a topic as rows.

    Attributes:
        rows: read while they are iterated.
        tensors: of inference responses; None if there are none.
        records: what is known of records of another shape, once the rows were read; None if there are none.
        model_column: that names the model, in rows that do.
        kept: the first records, once the rows were read; none of native messages.
    """

    rows: Iterator[Row]
    tensors: TensorNames | None = None
    records: RecordCells | None = None
    model_column: str = "model"
    kept: Sequence[Any] = field(default_factory=list)

    @property
    def unit(self) -> str:
        """What rows are numbered by."""
        return "prediction" if self.records is None else "record"


def sample_of(
    batches: Batches, settings: Settings, *, model: str | None, given: Mapping[str, str], source: str
) -> TopicSample:
    """The rows of a topic; its first batch shows what its records are.

    Args:
        batches: of records.
        settings: of Kafka, the schema registry and bounds.
        model: whose responses count; all if None.
        given: columns or tensors that the user names, by field.
        source: of the records, for errors.

    Raises:
        ConfigurationError: no tensors are a prediction, or those that the user names are not there.
        Unavailable: Kafka or the schema registry does not answer, or refuses; also while rows are iterated.
    """
    rest = iter(batches)
    first: Sequence[Any] = next((batch for batch in rest if batch), [])
    kept: list[Any] = []

    def every() -> Iterator[Sequence[Any]]:
        size = 0
        for batch in chain([first], rest):
            for record in batch:
                size += len(record.value or b"")
                if len(kept) < _MOST_KEPT and size <= _MOST_KEPT_BYTES:
                    kept.append(record)
            yield batch

    seen = _Responses(model)
    message_bytes = settings.bounds.message_bytes
    formats = prediction_formats(settings, responses=seen)
    decoded = decode_records(first, message_bytes=message_bytes, formats=formats)
    if seen.responses:
        tensors = find_tensors(seen.responses, given, source)
        formats = prediction_formats(settings, responses=OpenInference({}, others=tensors.names))
        return TopicSample(message_rows(every(), message_bytes, formats), tensors=tensors, kept=kept)
    if not decoded.predictions:
        records = RecordCells(given.get("time", ""))
        reader = _RecordRows(record_reader(settings), records, message_bytes)
        columns = [*islice(reader.columns(first), _MOST_CELLS)]
        if columns:
            model_column = next((name for name in columns if field_of(name) == "model"), "")
            rows = reader.rows(every())
            return TopicSample(rows, records=records, model_column=model_column, kept=kept)
    formats = prediction_formats(settings, responses=OpenInference({}, others={}))
    return TopicSample(message_rows(every(), message_bytes, formats))


class _Responses:
    """A format that keeps inference responses, and makes no predictions of them."""

    def __init__(self, model: str | None) -> None:
        self.responses: list[Response] = []
        self._model = model

    def __call__(self, headers: Headers, value: bytes) -> bytes | None:
        """An array without predictions for a response; None for what is none."""
        response = parse_response(headers, value)
        if response is None:
            return None
        if self._model in {None, response.model_name}:
            self.responses.append(response)
        return b"[]"


class _RecordRows:
    """Rows of records of another shape."""

    def __init__(self, read: Callable[[Any], bytes], cells: RecordCells, message_bytes: int) -> None:
        self._read, self._cells, self._message_bytes = read, cells, message_bytes

    def rows(self, batches: Batches) -> Iterator[Row]:
        """A row for each record, with paths as names of its cells."""
        number = 0
        for batch in batches:
            for record in batch:
                size = len(record.value or b"")
                for content in self._each(record):
                    number += 1
                    if isinstance(content, BadMessage):
                        problem = BadMessage(content.reason, f"{place_of(record)}: {content.detail}")
                        yield Row(number, problem=problem)
                    else:
                        yield Row(number, content, size=size)

    def columns(self, records: Iterable[Any]) -> Iterator[str]:
        """The names of the cells of what can be read of records."""
        for record in records:
            for content in self._each(record):
                if not isinstance(content, BadMessage):
                    yield from content

    def _each(self, record: Any) -> Iterator[Mapping[str, Any] | BadMessage]:
        """The cells of each content of a record, or why there are none."""
        try:
            if len(record.value or b"") > self._message_bytes:
                raise BadMessage("message_too_large", f"the value is over {self._message_bytes} bytes")  # noqa: TRY301
            content = msgspec.json.decode(guarded(self._read, record))
        except BadMessage as error:
            yield error
            return
        except msgspec.DecodeError:
            yield BadMessage("malformed_json", "the value is not JSON")
            return
        for each in content if isinstance(content, list) else [content]:
            yield self._cells_of(each)

    def _cells_of(self, content: Any) -> Mapping[str, Any] | BadMessage:
        if not isinstance(content, dict) or not content.keys() >= {"value", "headers"}:
            return BadMessage("unsupported_event", "it is a native message, or an event that is refused")
        try:
            return self._cells.of(content)
        except BadMessage as error:
            return error
