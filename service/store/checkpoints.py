"""Checkpoints of evidence: what labels said that the outcome stream has let go of, or soon will.

Evidence is a running product over all labels ever. The stream keeps a bounded number of them, so the leader
writes down what the oldest ones said before they go. Every process continues from there.
"""

from __future__ import annotations

import hashlib

import msgspec

from service.store.connection import Connection, ModelStore, unavailable_when_away
from service.store.keys import ModelKeys
from service.store.references import ReferenceWindow


class DatedChange(msgspec.Struct, frozen=True, array_like=True):
    """A change that was confirmed by the checkpoint; times in seconds since the epoch.

    Attributes:
        at: when the first label after it was requested.
        earliest: the same, of the lower end of its interval.
        latest: of the upper end.
        predicted_at: when that label's item was predicted.
        labels: since then, by the checkpoint.
    """

    at: float
    earliest: float
    latest: float
    predicted_at: float
    labels: int


class GroupingState(msgspec.Struct, frozen=True, array_like=True):
    """Evidence about the groups of one grouping, as far as it is needed to continue.

    Attributes:
        grouping: its name then.
        key: what it is known by, as `grouping_key` of `service/domain/grouping_fingerprints.py` makes it.
        groups: names of the groups [G].
        columns: by name, little-endian 8-byte numbers, [G] or [G, K].
        changes: those that were confirmed, by group.
    """

    grouping: str
    key: str
    groups: list[str]
    columns: dict[str, bytes]
    changes: dict[str, DatedChange]


class EvidenceCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """What all labels said whose requests have a place up to `place`.

    Attributes:
        place: of the last request that it knows, as `service/domain/request_order.py` gives it.
        reference: `since`, `until` and `set_at` of the window that it was made with, if one was set.
        arrivals: groups in the order in which labels were first requested for them: the key of the grouping,
            and the name of the group.
        groupings: their evidence.
    """

    place: int
    reference: tuple[float, float, float] | None
    arrivals: list[tuple[str, str]]
    groupings: list[GroupingState]

    @property
    def window(self) -> ReferenceWindow | None:
        """The window that it was made with."""
        return None if self.reference is None else ReferenceWindow(*self.reference)


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
        with unavailable_when_away():
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
