"""Claims: an annotator leases an open request, so that no two people do the same work.

A request that was issued to a vendor with a token is claimable by that vendor until it is closed, or issued
to another one. Whoever claims it chooses an id for the claim, which proves that they hold it. A claim ends
with its lease. From then on it is void, whether or not somebody else has claimed the request.

    claimable -> claimed (until the lease ends) -> submitted (its answer is on its way to Kafka)
        ^----------'  release, end of the lease         |
        ^-----------------------------------------------'  unsubmit: Kafka could not take the answer

Claims only coordinate annotators. They do not decide which labels count: `service/store/labels.py` accepts
one answer per request, from the vendor that the request was issued to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from service.store.connection import ModelStore, translate_redis_errors
from service.store.keys import ModelKeys
from service.store.request_registry import person_digest

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
class ClaimChange:
    """Result of a change to a claim.

    Attributes:
        status: `ok`; or `unknown`: the request is not open, or not this vendor's;
            `lost`: another claim holds it, or it was released;
            `expired`: the lease has ended, and nobody has claimed the request since;
            `submitted`: its answer is on its way, so it can be neither renewed nor released.
        leased_until: new end of the lease, seconds since the epoch; 0 unless the status is `ok`.
    """

    status: ClaimStatus
    leased_until: float = 0.0


@dataclass(frozen=True)
class VendorRequest:
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
        self, vendor: str, *, claim_ids: Sequence[str], lease_seconds: float, now: float, annotator: str = ""
    ) -> list[Claim]:
        """Claim up to one request per id, those with the soonest deadline first.

        None whose item this annotator has labelled before.

        The leases end after `lease_seconds`, or at the requests' deadlines if these are sooner. Call it again
        with the same ids after a lost reply: it returns the claims that still hold, and claims nothing more.

        A claim id proves that a caller holds the request: long random text without spaces, never used before.
        """
        if not claim_ids:
            return []
        keys = self._keys
        reply: list[bytes] = self._connection.run(
            "claim_requests",
            [keys.claimable(vendor), keys.claims, keys.deadlines, keys.barred],
            [now, now + lease_seconds, _SEARCHED_REQUESTS, _person(annotator, vendor), *claim_ids],
        )
        ids = [request_id.decode() for request_id in reply[::2]]
        return self._claims(vendor, ids, reply[1::2])

    def renew(
        self, vendor: str, request_id: str, claim_id: str, *, lease_seconds: float, now: float
    ) -> ClaimChange:
        """Extend the lease to `lease_seconds` from now, or to the request's deadline if that is sooner."""
        return self._change("renew", vendor, request_id, claim_id, now=now, leased_until=now + lease_seconds)

    def release(self, vendor: str, request_id: str, claim_id: str, *, now: float) -> ClaimChange:
        """Let others claim the request now; `ok` also if nobody holds it any more."""
        return self._change("release", vendor, request_id, claim_id, now=now)

    def submit(self, vendor: str, request_id: str, claim_id: str, *, now: float) -> ClaimChange:
        """Hold the request until it is closed, or until `unsubmit`: its answer is about to be sent to Kafka.

        Submitted again under the same claim it is `ok` again, and the answer must be sent again, since it may
        not have been sent. A second label of the same class changes nothing; one of another is refused.
        """
        return self._change("submit", vendor, request_id, claim_id, now=now)

    def unsubmit(self, vendor: str, request_id: str, claim_id: str, *, now: float) -> ClaimChange:
        """Undo `submit` after Kafka refused the answer; the claim is valid until its lease ends."""
        return self._change("unsubmit", vendor, request_id, claim_id, now=now)

    def find(self, vendor: str, request_id: str, *, now: float) -> VendorRequest | None:
        """An open request of this vendor; None if it is not open, or another vendor's."""
        keys = self._keys
        with self._connection.pipeline(transaction=True) as pipeline:
            pipeline.zscore(keys.claimable(vendor), request_id)
            pipeline.zscore(keys.deadlines, request_id)
            pipeline.hget(keys.claims, request_id)
            pipeline.hget(keys.request(request_id), "message")
            claimable_from, deadline, record, message = pipeline.execute()
        if claimable_from is None or deadline is None or message is None:
            return None
        state, leased_until, claim_id = _decode_claim(record)
        if state == "claimed" and leased_until <= now:
            return VendorRequest("claimable", "", message, 0.0, deadline)
        return VendorRequest(state, claim_id, message, leased_until, deadline)

    def list_claims(self, vendor: str, *, now: float, most: int = 1_000) -> list[Claim]:
        """Claims of the vendor, submitted requests included, sorted by the end of the lease."""
        keys, client = self._keys, self._connection.client
        with translate_redis_errors():
            found = client.zrangebyscore(keys.claimable(vendor), f"({now!r}", math.inf, 0, most)
            records = client.hmget(keys.claims, found) if found else []
        pairs = [(i.decode(), r) for i, r in zip(found, records, strict=True) if r is not None]
        return self._claims(vendor, [request_id for request_id, _ in pairs], [r for _, r in pairs])

    def count_claimable(self, vendor: str, *, now: float) -> int:
        """Number of requests that the vendor may claim now; some may have just passed their deadline."""
        with translate_redis_errors():
            return int(self._connection.client.zcount(self._keys.claimable(vendor), "-inf", now))

    def is_barred(self, vendor: str, request_id: str, annotator: str) -> bool:
        """Whether an annotator has labelled the item of an open request before."""
        with translate_redis_errors():
            people = self._connection.client.hget(self._keys.barred, request_id) or b""
        person = _person(annotator, vendor)
        return bool(person) and person in {people[at : at + 8] for at in range(0, len(people), 8)}

    def _change(
        self, verb: str, vendor: str, request_id: str, claim_id: str, *, now: float, leased_until: float = 0.0
    ) -> ClaimChange:
        keys = self._keys
        reply = self._connection.run(
            "change_claim",
            [keys.claimable(vendor), keys.claims, keys.deadlines],
            [verb, request_id, claim_id, now, leased_until],
        )
        return ClaimChange(reply[0].decode(), float(reply[1]))

    def _claims(self, vendor: str, ids: Sequence[str], records: Sequence[bytes]) -> list[Claim]:
        """Claims with their messages, without requests that were closed or issued to others meanwhile."""
        with self._connection.pipeline(transaction=False) as pipeline:
            for request_id in ids:
                pipeline.hget(self._keys.request(request_id), "message")
            messages: list[bytes | None] = pipeline.execute()
        claims = []
        for request_id, record, message in zip(ids, records, messages, strict=True):
            if message is not None and msgspec.json.decode(message, type=_Vendor).vendor == vendor:
                state, leased_until, claim_id = _decode_claim(record)
                claims.append(Claim(request_id, claim_id, message, leased_until, state))
        return claims


def claimable_key(keys: ModelKeys, vendor: str) -> str:
    """Key of a vendor's claimable set, for scripts; without a vendor the key `open`, as a placeholder."""
    return keys.claimable(vendor) if vendor else keys.open


def _person(annotator: str, vendor: str) -> bytes:
    return person_digest(annotator, vendor) if annotator else b""


def _decode_claim(record: bytes | None) -> tuple[ClaimState, float, str]:
    """State, end of the lease and claim id from the record of a claim, if there is one."""
    if record is None:
        return "claimable", 0.0, ""
    state, leased_until, claim_id = record.split(b" ", 2)
    return _STATES[state], float(leased_until), claim_id.decode()
