"""What must hold for any input, whoever made it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from consumers.formats.event_headers import check_event, event_time
from consumers.formats.native import (
    WireLabel,
    WirePrediction,
    decode_attributes,
    decode_label,
    decode_predictions,
)
from service.domain.errors import BadMessage
from service.domain.messages import LABEL_TYPE, PREDICTION_TYPE, Label, Message, Prediction
from service.store.records import PoolRecord, decode_pool_record, encode_pool_record

REASONS = {"malformed_json", "missing_field", "invalid_field"}

LONGEST_DETAIL = 200
"""A detail names fields in a sentence; one that is longer quotes something."""

DEEPEST = 190
"""The contract's models take values that are nested about 200 deep, the decoders some hundred more."""

_LONG_NUMBER = re.compile(rb"[0-9]{4000}")

STRICTER = (
    # JSON does not promise these, or not what becomes of them; decoders refuse them, and pydantic does not.
    b"NaN",
    b"Infinity",
)


def decoders_stand(value: bytes) -> None:
    """Both decoders give a message or a reason, whatever they are given."""
    predictions = _predictions(value)
    for index, decoded in predictions:
        assert index is None or len(predictions) > index
        if isinstance(decoded, BadMessage):
            refusal_is_fit(decoded)
        else:
            prediction_can_be_kept(decoded)
    try:
        label = decode_label(value)
    except BadMessage as error:
        refusal_is_fit(error)
    else:
        for name in ("request_id", "model", "item_id"):
            assert (getattr(label, name) or "").encode() or name == "request_id"
        if label.time is not None:
            label.time.timestamp()


def headers_stand(headers: Sequence[tuple[str, bytes | None]]) -> None:
    """Headers are taken, or refused for a reason."""
    for expected in (PREDICTION_TYPE, LABEL_TYPE):
        with suppress(BadMessage):
            check_event(headers, expected)
    shown = event_time(headers)
    assert shown is None or -1e11 < shown < 1e12


def refusal_is_fit(error: BadMessage) -> None:
    """A refusal can be a metric's label and a header, and tells nothing long."""
    assert error.reason in REASONS
    assert len(error.detail) <= LONGEST_DETAIL, error.detail
    error.detail.encode()


def prediction_can_be_kept(prediction: WirePrediction) -> None:
    """What was taken comes back from the pool as it went in."""
    kept = PoolRecord(
        item_id=prediction.item_id,
        predicted_class=prediction.predicted_class or "",
        score=prediction.score or 0.0,
        time=prediction.time.timestamp() if prediction.time else 0.0,
        attributes=decode_attributes(prediction.attributes),
        payload=bytes(prediction.payload),
        payload_uri=prediction.payload_uri or "",
        votes=prediction.votes or {},
    )
    assert decode_pool_record(encode_pool_record(kept)) == kept
    if kept.payload:
        # Numbers are left as text: JSON bounds neither their size nor their length.
        with suppress(RecursionError):
            json.loads(kept.payload, parse_int=str, parse_float=str)


def decoders_agree_with_the_contract(value: bytes) -> None:
    """What the contract's models take the decoders take, and the reverse, with the same content."""
    _agree(Label, value, _label(value))
    decoded = _predictions(value)
    if len(decoded) == 1 and decoded[0][0] is None:
        _agree(Prediction, value, decoded[0][1])


def _predictions(value: bytes) -> list[tuple[int | None, WirePrediction | BadMessage]]:
    """Predictions with their attributes, which are parsed only where they are new."""
    decoded = decode_predictions(value)
    for at, (index, prediction) in enumerate(decoded):
        if isinstance(prediction, WirePrediction):
            try:
                decode_attributes(prediction.attributes)
            except BadMessage as error:
                decoded[at] = index, error
    return decoded


def _label(value: bytes) -> WireLabel | BadMessage:
    try:
        return decode_label(value)
    except BadMessage as error:
        return error


def _agree(model: type[Message], value: bytes, decoded: Any) -> None:
    try:
        contract: Any = model.model_validate_json(value)
    except ValidationError:
        contract = None
    if isinstance(decoded, BadMessage):
        assert contract is None or _is_stricter(value), (value, decoded)
        return
    if contract is None and _beyond_other_readers(value):
        return
    if contract is None:
        # What only the step that knows the model checks.
        assert _is_left_to_the_step(decoded), value
        return
    for name in decoded.__struct_fields__:
        found, expected = getattr(decoded, name), getattr(contract, name)
        if name == "attributes":
            found = decode_attributes(found)
        if name == "payload":
            found = json.loads(bytes(found) or b"null")
        if name == "time" and found is not None:
            # Fractions of a second beyond microseconds are cut by one and rounded by the other.
            assert abs((found - expected).total_seconds()) <= 1e-6, value
            continue
        assert found == expected, (value, name)


def _beyond_other_readers(value: bytes) -> bool:
    """Whether a value is nested so deeply, or a number in it so long, that few readers of JSON take it."""
    return _depth(value) > DEEPEST or _LONG_NUMBER.search(value) is not None


def _depth(value: bytes) -> int:
    """How deeply brackets are nested, taking those in strings for real ones."""
    depth = deepest = 0
    for byte in value:
        depth += (byte in b"[{") - (byte in b"]}")
        deepest = max(deepest, depth)
    return deepest


def _is_left_to_the_step(decoded: WirePrediction | WireLabel) -> bool:
    """Whether the step refuses it: no class or score, scores out of bounds, sums, two payloads."""
    if isinstance(decoded, WireLabel):
        return False
    spread = decoded.probabilities
    scores = [*(spread or ()), *([decoded.score] if decoded.score is not None else [])]
    clipped = sum(min(max(p, 0.0), 1.0) for p in spread or ())
    return (
        (spread is None and (decoded.predicted_class is None or decoded.score is None))
        or any(not -0.0001 <= score <= 1.0001 for score in scores)
        or (spread is not None and abs(clipped - 1) > 0.01)
        or (bytes(decoded.payload) not in (b"", b"null") and decoded.payload_uri is not None)
    )


def _is_stricter(value: bytes) -> bool:
    """Whether the decoders may refuse what pydantic takes."""
    if any(text in value for text in STRICTER):
        return True
    try:
        pairs = json.loads(value, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return True
    if not isinstance(pairs, list):
        return False
    keys = [pair[0] for pair in pairs if isinstance(pair, (list, tuple)) and len(pair) == 2]
    times = [pair[1] for pair in pairs if isinstance(pair, (list, tuple)) and pair and pair[0] == "time"]
    doubled = len(set(map(str, keys))) < len(keys)
    # pydantic takes more than RFC 3339 for a time.
    odd_time = any(isinstance(shown, str) for shown in times)
    return doubled or odd_time or _beyond_other_readers(value)
