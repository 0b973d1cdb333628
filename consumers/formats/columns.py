"""Predictions of one model as columns: what a columnar format is decoded to, without an object per row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, overload

import msgspec
import numpy as np

from consumers.formats.native import ABSENT, WirePrediction
from service.domain.arrays import Bytes, Floats, Indices, Ints

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_encode = msgspec.json.Encoder().encode


EXACT_SECONDS = 2**33
"""Before and after the epoch; farther away, in 2242 and later, a float is no exact microsecond."""

_timestamp: Callable[[Any], float] = datetime.timestamp


def seconds_of(times: Sequence[datetime | None]) -> Floats:
    """Seconds since the epoch; NaN where there is no time [n]."""
    try:
        return np.fromiter(map(_timestamp, times), np.float64, len(times))
    except TypeError:  # some are None
        return np.array([np.nan if time is None else time.timestamp() for time in times])


def are_exact(times: Floats) -> bool:
    """Whether seconds since the epoch [n] are whole microseconds as floats; NaN is no time."""
    return not (np.abs(times) >= EXACT_SECONDS).any()


def utc_text(microseconds: int) -> str:
    """A time as RFC 3339 writes it, given in microseconds since the epoch.

    Raises:
        OverflowError: it is not in the years 1 to 9999.
    """
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()


@dataclass(frozen=True)
class Texts:
    """UTF-8 texts, one after the other.

    Attributes:
        data: the bytes of all of them.
        bounds: where each begins, and the last one ends [n + 1].
    """

    data: Bytes
    bounds: Ints

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """The texts in a sequence [n]."""
        together = "".join(texts)
        data = together.encode()
        if len(data) == len(together):
            lengths = map(len, texts)
        else:
            lengths = map(len, [text.encode() for text in texts])
        bounds = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(lengths, np.int64, len(texts)), out=bounds[1:])
        return cls(np.frombuffer(data, np.uint8), bounds)

    def __getitem__(self, row: int) -> str:
        """One of them."""
        return self.data[self.bounds[row] : self.bounds[row + 1]].tobytes().decode()


@dataclass(frozen=True)
class Coded:
    """Texts of which many are equal.

    Attributes:
        names: the texts; None where there is none.
        codes: which of them every row has [n].
    """

    names: Sequence[str | None]
    codes: Indices

    def __getitem__(self, row: int) -> str | None:
        """The text of a row."""
        return self.names[int(self.codes[row])]

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Coded:
        """The texts in a sequence [n]."""
        code_of = {name: code for code, name in enumerate(dict.fromkeys(texts))}
        return cls(list(code_of), np.fromiter(map(code_of.__getitem__, texts), np.intp, len(texts)))

    @classmethod
    def missing(cls, count: int) -> Coded:
        """No text in so many rows."""
        return cls([None], np.zeros(count, np.intp))


@dataclass(frozen=True, eq=False)
class ModelColumns(Sequence[WirePrediction]):
    """Predictions of one model [n]; a row becomes an object when it is asked for.

    What the native format checks of a single message holds: lengths, and that item ids are there. Whether
    they fit the model is not checked yet.

    Attributes:
        model: its name.
        item_ids: [n].
        classes: predicted classes [n].
        scores: NaN where there is none [n].
        probabilities: of the classes [n, k]; None if no row has any.
        times: seconds since the epoch, in whole microseconds; NaN where there is none [n].
        payload_uris: [n]
        attributes: by name [n] each.
    """

    model: str
    item_ids: Texts
    classes: Coded
    scores: Floats
    probabilities: Floats | None
    times: Floats
    payload_uris: Coded
    attributes: Mapping[str, Coded]

    def __len__(self) -> int:
        """Number of predictions."""
        return len(self.scores)

    @overload
    def __getitem__(self, row: int) -> WirePrediction: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[WirePrediction]: ...
    def __getitem__(self, row: int | slice) -> WirePrediction | Sequence[WirePrediction]:
        """One prediction, or some; without the time, which is in its column."""
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        attributes = {name: column[row] for name, column in self.attributes.items()}
        present = {name: value for name, value in attributes.items() if value is not None}
        return WirePrediction(
            model=self.model,
            item_id=self.item_ids[row],
            predicted_class=self.classes[row],
            score=None if np.isnan(self.scores[row]) else float(self.scores[row]),
            probabilities=None if self.probabilities is None else self.probabilities[row].tolist(),
            attributes=msgspec.Raw(_encode(present)) if present else ABSENT,
            payload_uri=self.payload_uris[row],
        )

    def native(self, row: int) -> bytes:
        """Native JSON of one prediction."""
        found = msgspec.structs.asdict(self[row])
        if np.isfinite(self.times[row]):
            microseconds = round(float(self.times[row]) * 1e6)
            found["time"] = utc_text(microseconds)
        return _encode({name: value for name, value in found.items() if value not in (None, ABSENT)})
