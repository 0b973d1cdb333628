"""What is kept of an item: in the pool, in a request, in an outcome."""

from __future__ import annotations

import msgspec


class PoolRecord(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A pooled item: what a label request and its outcome will need.

    Attributes:
        item_id: the producer's id.
        predicted_class: by name, so that a changed label set cannot change its meaning.
        score: probability of the predicted class.
        time: when it was predicted, seconds since the epoch.
        attributes: by name, over-long values folded.
        payload: JSON text for the labeller, or empty.
        payload_uri: address for the labeller, or empty.
        votes: classes that the members of an ensemble, or a challenger, predict.
    """

    item_id: str
    predicted_class: str
    score: float
    time: float
    attributes: dict[str, str]
    payload: bytes = b""
    payload_uri: str = ""
    votes: dict[str, str] = {}


class Fact(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """What an outcome keeps of a request and its prediction; compact, as it is kept for every label.

    Attributes:
        request_id: of the label request.
        item_id: the producer's id.
        grouping: name of the assessment's grouping then.
        group: name of the group that it was drawn for.
        predicted_class: by name.
        score: probability of the predicted class.
        attributes: by name; enough to find the item's cell under any grouping.
        predicted_at: seconds since the epoch.
        requested_at: seconds since the epoch.
        votes: classes that the members of an ensemble, or a challenger, predict.
        voters: by whose votes it was drawn: the challenger, or a fingerprint of the ensemble; empty for all
            other assessments.
        definition: what the grouping was by then, as `service/domain/grouping_fingerprints.py` tells it;
            empty where that can be but one thing, and of what was requested before definitions were kept.
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


class Given(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an outcome keeps of its label.

    Attributes:
        true_class: by name; empty for a retraction.
        time: seconds since the epoch.
        annotator: by name, or empty.
    """

    true_class: str
    time: float
    annotator: str


encode_json = msgspec.json.Encoder().encode
encode_packed = msgspec.msgpack.Encoder().encode
encode_pool_record = encode_packed
decode_pool_record = msgspec.msgpack.Decoder(PoolRecord).decode
decode_fact = msgspec.msgpack.Decoder(Fact).decode
decode_given = msgspec.msgpack.Decoder(Given).decode
