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
        votes: classes that the members of an ensemble predict.
    """

    item_id: str
    predicted_class: str
    score: float
    time: float
    attributes: dict[str, str]
    payload: bytes = b""
    payload_uri: str = ""
    votes: dict[str, str] = {}


class Fact(msgspec.Struct, frozen=True, rename={"item_id": "i", "predicted_class": "p", "score": "s"}):
    """What an outcome keeps of a prediction; compact, as it is kept for every label.

    Attributes:
        item_id: the producer's id.
        predicted_class: by name.
        score: probability of the predicted class.
        attributes: by name; enough to find the item's cell under any grouping.
        predicted_at: seconds since the epoch.
        requested_at: seconds since the epoch.
        votes: classes that the members of an ensemble predict.
    """

    item_id: str
    predicted_class: str
    score: float
    attributes: dict[str, str] = msgspec.field(name="a")
    predicted_at: float = msgspec.field(name="t")
    requested_at: float = msgspec.field(name="r")
    votes: dict[str, str] = msgspec.field(name="v", default_factory=dict)


encode_pool_record = msgspec.msgpack.Encoder().encode
decode_pool_record = msgspec.msgpack.Decoder(PoolRecord).decode
encode_json = msgspec.json.Encoder().encode
decode_fact = msgspec.json.Decoder(Fact).decode
