"""Records of an item: in the pool, in a request, in an outcome."""

from __future__ import annotations

import msgspec

from service.domain.groupings import ALL

SKIPPED, EXPIRED = "skipped", "expired"
"""How a request ends without a label."""

ABSENT = "absent"
"""That no unrequested label came, though it was waited for."""


class PoolRecord(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A pooled item, with what a label request and its outcome will need.

    Classes are kept by name, so that a changed label set cannot change their meaning.

    Attributes:
        score: probability of the predicted class.
        time: when it was predicted, seconds since the epoch.
        attributes: over-long values are folded.
        payload: JSON text for the labeller, or empty.
        payload_uri: address for the labeller, or empty.
        votes: predicted classes of an ensemble's members, or of a challenger.
    """

    item_id: str
    predicted_class: str
    score: float
    time: float
    attributes: dict[str, str]
    payload: bytes = b""
    payload_uri: str = ""
    votes: dict[str, str] = {}


class GoldItem(msgspec.Struct, frozen=True):
    """An item whose true class is known before anybody labels it, with what the model predicts for it."""

    record: PoolRecord
    true_class: str


class Fact(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """The part of an outcome about its request and prediction; compact, as it is kept for every label.

    Times are seconds since the epoch. Of a prediction that waited for an unrequested label, `request_id` is
    empty, `grouping` and `group` are `all`, and `requested_at` is when its record arrived.

    Attributes:
        grouping: name of the assessment's grouping at the time of the request.
        group: the group that the item was drawn for.
        score: probability of the predicted class.
        attributes: enough to find the item's cell under any grouping.
        votes: predicted classes of an ensemble's members, or of a challenger.
        voters: whose votes the item was drawn by: the challenger, or a fingerprint of the ensemble; empty for
            all other assessments.
        definition: `Grouping.definition` at the time of the request.
        suspected: whether the group was under suspicion at the time of the request.
        gold: of a gold item its true class, by the file at the time of the request; empty for all others. Its
            labels say how often people are wrong, and nothing of the model.
        estimator: of an item that was drawn for its stratum, what evidence on error rates needs to know of
            the draw (`service/domain/stratum_estimator.py`); empty for all others.
    """

    request_id: str
    item_id: str
    grouping: str
    group: str
    predicted_class: str
    score: float
    attributes: dict[str, str]
    predicted_at: float
    requested_at: float
    votes: dict[str, str] = {}
    voters: str = ""
    definition: bytes = b""
    suspected: bool = False
    gold: str = ""
    estimator: bytes = b""


class LabelFact(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """The part of an outcome about its label.

    Attributes:
        true_class: empty for a retraction, and if the request was not answered.
        time: seconds since the epoch.
        annotator: may be empty.
        vendor: whose annotator it is; may be empty.
        unanswered: `SKIPPED`, `EXPIRED` or `ABSENT`; empty otherwise.
    """

    true_class: str
    time: float
    annotator: str
    vendor: str = ""
    unanswered: str = ""


encode_json = msgspec.json.Encoder().encode
encode_packed = msgspec.msgpack.Encoder().encode
encode_pool_record = encode_packed


def encode_waiting_fact(
    *,
    item_id: str,
    predicted_class: str,
    score: float,
    attributes: dict[str, str],
    predicted_at: float,
    arrived_at: float,
    votes: dict[str, str] | None = None,
) -> bytes:
    """The packed `Fact` of a prediction that waits for an unrequested label."""
    return encode_packed(
        Fact(
            request_id="",
            item_id=item_id,
            grouping=ALL,
            group=ALL,
            predicted_class=predicted_class,
            score=score,
            attributes=attributes,
            predicted_at=predicted_at,
            requested_at=arrived_at,
            votes=votes or {},
        )
    )


decode_pool_record = msgspec.msgpack.Decoder(PoolRecord).decode
decode_fact = msgspec.msgpack.Decoder(Fact).decode
decode_label_fact = msgspec.msgpack.Decoder(LabelFact).decode
