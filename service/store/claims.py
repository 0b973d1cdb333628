"""Claims: an open request is one annotator's for a while, so that no two people do the same work.

A request that was issued to a vendor with a token is claimable by that vendor until it is closed, or issued
to another one. Whoever claims it gives the claim an id, which is the proof of holding it. A claim ends with
its lease; it counts for nothing from then on, whether somebody else has claimed the request or not.

    claimable -> claimed (until the lease ends) -> submitted (its answer is on its way to Kafka)
        ^----------'  release, end of the lease         |
        ^-----------------------------------------------'  unsubmit: Kafka could not take the answer

Claims are a courtesy among annotators, not the guard of what counts: that is the label's way into the
outcomes (`service/store/labels.py`), which takes one answer, from the vendor that was asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from service.store.connection import ModelStore, unavailable_when_away
from service.store.keys import ModelKeys

ClaimStatus = Literal["ok", "unknown", "lost", "expired", "submitted"]
ClaimState = Literal["claimable", "claimed", "submitted"]

_SEARCHED_REQUESTS = 1_000
"""Claimable requests among which the most urgent ones are chosen."""

_STATES: dict[bytes, ClaimState] = {b"c": "claimed", b"s": "submitted"}


@dataclass(frozen=True)
class Claim:
    """A request that is held under a claim.

    Attributes:
        message: the label request, JSON as on Kafka.
        leased_until: end of the lease, seconds since the epoch; never after the request's deadline.
        state: `claimed`, or `submitted` while its answer is on its way.
    """

    request_id: str
    claim_id: str
    message: bytes
    leased_until: float
    state: ClaimState = "claimed"


@dataclass(frozen=True)
class Changed:
    """Result of a change to a claim.

    Attributes:
        status: `ok`; or `unknown`: the request is not open, or not this vendor's;
            `lost`: it is not held under this claim id: somebody else has claimed it, or it was released;
            `expired`: the lease has ended, and nobody has claimed the request since;
            `submitted`: its answer is on its way, so it can be neither renewed nor released.
        leased_until: new end of the lease, seconds since the epoch; 0 unless the status is `ok`.
    """

    status: ClaimStatus
    leased_until: float = 0.0


@dataclass(frozen=True)
class Looked:
    """An open request of this vendor; times in seconds since the epoch.

    Attributes:
        state: `claimable`, also after a lease has ended; `claimed`; or `submitted`.
        claim_id: empty while it is claimable.
        message: the label request, JSON as on Kafka.
        leased_until: end of the lease; 0 while it is claimable.
    """

    state: ClaimState
    claim_id: str
    message: bytes
    leased_until: float
    deadline: float


class _Vendor(msgspec.Struct):
    vendor: str = ""


class ClaimStore(ModelStore):
    """The claims of one model's requests."""

    def claim(
        self, vendor: str, *, claim_ids: Sequence[str], lease_seconds: float, now: float
    ) -> list[Claim]:
        """Claim as many requests as ids are given, or as there are; those with the soonest deadline first.

        The leases end after `lease_seconds`, or at the requests' deadlines if these are sooner. Call it again
        with the same ids after a lost reply: it returns the claims that still hold, and claims nothing more.

        A claim id is the proof of holding a request: long random text without spaces, never used before.
        """
        if not claim_ids:
            return []
        keys = self._keys
        reply: list[bytes] = self._connection.run(
            "claim_requests",
            [keys.claimable(vendor), keys.claims, keys.deadlines],
            [now, now + lease_seconds, _SEARCHED_REQUESTS, *claim_ids],
        )
        ids = [request_id.decode() for request_id in reply[::2]]
        return self._claims(vendor, ids, reply[1::2])

    def renew(
        self, vendor: str, request_id: str, claim_id: str, *, lease_seconds: float, now: float
    ) -> Changed:
        """Have the lease end so long from now, if the request's deadline is not sooner."""
        return self._change("renew", vendor, request_id, claim_id, now=now, leased_until=now + lease_seconds)

    def release(self, vendor: str, request_id: str, claim_id: str, *, now: float) -> Changed:
        """Let others claim the request now. `ok` also where nobody holds it by now."""
        return self._change("release", vendor, request_id, claim_id, now=now)

    def submit(self, vendor: str, request_id: str, claim_id: str, *, now: float) -> Changed:
        """Hold the request until it is closed, or until `unsubmit`: its answer is about to be sent to Kafka.

        Submitted again under the same claim it is `ok` again, and the answer is to be sent again: it may not
        have been. A second label that says the same changes nothing; one that says otherwise is refused.
        """
        return self._change("submit", vendor, request_id, claim_id, now=now)

    def unsubmit(self, vendor: str, request_id: str, claim_id: str, *, now: float) -> Changed:
        """Take `submit` back, as Kafka could not take the answer; the claim holds until its lease ends."""
        return self._change("unsubmit", vendor, request_id, claim_id, now=now)

    def look(self, vendor: str, request_id: str, *, now: float) -> Looked | None:
        """One request; None if it is not open, or not this vendor's."""
        keys = self._keys
        with self._connection.pipeline(transaction=True) as pipeline:
            pipeline.zscore(keys.claimable(vendor), request_id)
            pipeline.zscore(keys.deadlines, request_id)
            pipeline.hget(keys.claims, request_id)
            pipeline.hget(keys.request(request_id), "message")
            claimable_from, deadline, record, message = pipeline.execute()
        if claimable_from is None or deadline is None or message is None:
            return None
        state, leased_until, claim_id = _held(record)
        if state == "claimed" and leased_until <= now:
            return Looked("claimable", "", message, 0.0, deadline)
        return Looked(state, claim_id, message, leased_until, deadline)

    def held(self, vendor: str, *, now: float, most: int = 1_000) -> list[Claim]:
        """What the vendor holds now, submitted requests included; the lease that ends first comes first."""
        keys, client = self._keys, self._connection.client
        with unavailable_when_away():
            found = client.zrangebyscore(keys.claimable(vendor), f"({now!r}", math.inf, 0, most)
            records = client.hmget(keys.claims, found) if found else []
        pairs = [(i.decode(), r) for i, r in zip(found, records, strict=True) if r is not None]
        return self._claims(vendor, [request_id for request_id, _ in pairs], [r for _, r in pairs])

    def waiting(self, vendor: str, *, now: float) -> int:
        """How many requests the vendor may claim now; those too whose deadline has just passed."""
        with unavailable_when_away():
            return int(self._connection.client.zcount(self._keys.claimable(vendor), "-inf", now))

    def _change(
        self, verb: str, vendor: str, request_id: str, claim_id: str, *, now: float, leased_until: float = 0.0
    ) -> Changed:
        keys = self._keys
        reply = self._connection.run(
            "change_claim",
            [keys.claimable(vendor), keys.claims, keys.deadlines],
            [verb, request_id, claim_id, now, leased_until],
        )
        return Changed(reply[0].decode(), float(reply[1]))

    def _claims(self, vendor: str, ids: Sequence[str], records: Sequence[bytes]) -> list[Claim]:
        """Claims with their messages; without those that were closed, or issued to others, meanwhile."""
        with self._connection.pipeline(transaction=False) as pipeline:
            for request_id in ids:
                pipeline.hget(self._keys.request(request_id), "message")
            messages: list[bytes | None] = pipeline.execute()
        claims = []
        for request_id, record, message in zip(ids, records, messages, strict=True):
            if message is not None and msgspec.json.decode(message, type=_Vendor).vendor == vendor:
                state, leased_until, claim_id = _held(record)
                claims.append(Claim(request_id, claim_id, message, leased_until, state))
        return claims


def claimable_key(keys: ModelKeys, vendor: str) -> str:
    """The claimable set of a vendor, for scripts; without a vendor the key `open`, which stands for none."""
    return keys.claimable(vendor) if vendor else keys.open


def _held(record: bytes | None) -> tuple[ClaimState, float, str]:
    """State, end of the lease and claim id from the record of a claim, if there is one."""
    if record is None:
        return "claimable", 0.0, ""
    state, leased_until, claim_id = record.split(b" ", 2)
    return _STATES[state], float(leased_until), claim_id.decode()
