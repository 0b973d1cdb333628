"""Checkpoints of evidence from labels that the outcome stream trims.

Evidence is a running product over all labels ever. The stream keeps a bounded number of them, so the leader
stores the evidence of the oldest ones before they are trimmed. Every process continues from there.
"""

from __future__ import annotations

import hashlib

import msgspec

from service.store.connection import Connection, ModelStore, translate_redis_errors
from service.store.keys import ModelKeys
from service.store.references import ReferenceWindow


class DatedChange(msgspec.Struct, frozen=True, array_like=True):
    """A change that the checkpoint has confirmed; times in seconds since the epoch.

    Attributes:
        at: when the first label after it was requested; `earliest` and `latest` are the same for the ends of
            its interval.
        predicted_at: when the item of the first label was predicted.
        labels: since the change, up to the checkpoint.
    """

    at: float
    earliest: float
    latest: float
    predicted_at: float
    labels: int


class GroupingState(msgspec.Struct, frozen=True, array_like=True):
    """Evidence about the groups of one grouping, as needed to continue.

    Attributes:
        key: of the grouping, from `grouping_key`.
        groups: names of the groups [G].
        columns: by name, little-endian 8-byte numbers, [G] or [G, K].
        changes: confirmed ones, by group.
    """

    grouping: str
    key: str
    groups: list[str]
    columns: dict[str, bytes]
    changes: dict[str, DatedChange]


class RateCapital(msgspec.Struct, frozen=True, array_like=True):
    """Logs of the capital of bets on one rate, as little-endian 8-byte numbers.

    Attributes:
        groups: that have capital [G].
        limits: that the rate is tested against [T].
        above: against "the rate is at most the limit" [G, T, B].
        below: against "the rate is at least the limit" [G, T, B].
    """

    groups: list[str]
    limits: bytes
    above: bytes
    below: bytes


class RateState(msgspec.Struct, frozen=True, array_like=True):
    """Evidence of one assessment of error rates, as needed to continue.

    Attributes:
        key: of the grouping by strata, and the positive class.
        arrivals: groups in the order in which labels were first requested for them.
        capitals: by what they are evidence on.
    """

    assessment: str
    key: tuple[str, str]
    arrivals: list[str]
    capitals: dict[str, RateCapital]


class EvidenceCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """Evidence from all labels of requests up to `position` (`service/domain/request_order.py`).

    Attributes:
        reference: the window that it was made with, if one was set.
        arrivals: groups in the order in which labels were first requested for them: the key of the grouping,
            and the name of the group.
        gold: first labels about gold items: of correct predictions, wrong ones of these, of incorrect
            predictions, wrong ones of these.
        rates: of assessments of error rates.
    """

    position: int
    reference: ReferenceWindow | None
    arrivals: list[tuple[str, str]]
    groupings: list[GroupingState]
    gold: tuple[int, int, int, int] = (0, 0, 0, 0)
    rates: list[RateState] = []


_decode = msgspec.msgpack.Decoder(EvidenceCheckpoint).decode


class CheckpointStore(ModelStore):
    """The checkpoint of one model, as one process knows it."""

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        super().__init__(connection, keys)
        self._digest: bytes | None = None
        self._known: EvidenceCheckpoint | None = None

    def checkpoint(self) -> EvidenceCheckpoint | None:
        """The checkpoint, if there is one. It is read again only where it has changed."""
        client, key = self._connection.client, self._keys.evidence
        with translate_redis_errors():
            if client.hget(key, "digest") == self._digest:
                return self._known
            digest, state = client.hmget(key, ["digest", "state"])
        self._known = None if state is None else _decode(state)
        self._digest = digest
        return self._known

    def keep(self, checkpoint: EvidenceCheckpoint, *, epoch: int) -> None:
        """Keep a checkpoint of more labels in place of the one before; `epoch` is the leader's.

        Raises:
            FenceRefused: a newer leader has written.
        """
        state = msgspec.msgpack.encode(checkpoint)
        digest = hashlib.blake2b(state, digest_size=12).hexdigest()
        self._run_fenced("keep_checkpoint", [self._keys.evidence], [epoch, digest, state])
