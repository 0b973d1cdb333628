"""What vendors can do with label requests: claim, keep, give back, answer, correct."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import msgspec

from service.domain.errors import Unavailable
from service.serving.vendor_api.labels import LabelWriter, Said
from service.serving.vendor_api.problems import Kind, Refused
from service.store.claims import Changed, Claim, ClaimStatus, ClaimStore, Looked
from service.store.idempotency import IdempotencyRecords
from service.store.request_history import AskedRequests
from service.telemetry.instruments import VendorMetrics

log = logging.getLogger(__name__)

_ITEM = b"item"

_REFUSALS: dict[ClaimStatus, Kind] = {
    "unknown": Kind.NOT_FOUND,
    "lost": Kind.CLAIM_LOST,
    "expired": Kind.CLAIM_ENDED,
    "submitted": Kind.ALREADY_SUBMITTED,
}


@dataclass(frozen=True)
class ModelDesk:
    """One model's part of the desk.

    Attributes:
        classes: its label set, in order.
        vendors: that may be asked about it.
        claims: of its open requests.
        asked: all its requests.
    """

    classes: Sequence[str]
    vendors: frozenset[str]
    claims: ClaimStore
    asked: AskedRequests


class _Request(msgspec.Struct):
    item_id: str
    classes: list[str]


class VendorDesk:
    """Serves all vendors; a model that a vendor is not asked about does not exist for it.

    Its calls wait for Redis and Kafka, so they are made from threads that may wait. All of them raise
    `Refused` where a vendor may not do this, and `Unavailable` where it cannot be done now: then it
    is safe to repeat.

    Args:
        models: by name.
        labels: where answers go.
        calls: what became of earlier calls.
        claim_keys: secrets per vendor; the first one makes the ids of claims, those of all are known again.
        metrics: of the vendor API.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        models: Mapping[str, ModelDesk],
        *,
        labels: LabelWriter,
        calls: IdempotencyRecords,
        claim_keys: Mapping[str, Sequence[bytes]],
        metrics: VendorMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._models = models
        self._labels = labels
        self._claim_keys = claim_keys
        self._metrics = metrics
        self._clock = clock
        self.calls = calls

    def models_of(self, vendor: str) -> dict[str, ModelDesk]:
        """The models that a vendor may be asked about."""
        return {name: desk for name, desk in self._models.items() if vendor in desk.vendors}

    def model_of(self, vendor: str, model: str) -> ModelDesk:
        """One of them."""
        desk = self._models.get(model)
        if desk is None or vendor not in desk.vendors:
            raise Refused(Kind.NOT_FOUND)
        return desk

    def waiting(self, vendor: str) -> dict[str, int]:
        """How many requests can be claimed now, by model."""
        now = self._clock()
        return {name: desk.claims.waiting(vendor, now=now) for name, desk in self.models_of(vendor).items()}

    def claim_ids(self, vendor: str, *, most: int, key: str | None) -> list[str]:
        """New ids for claims; the same ones where the idempotency key is the same."""
        if key is None:
            return [secrets.token_urlsafe(18) for _ in range(most)]
        return _claim_ids(self._claim_keys[vendor][0], key, most)

    def claim(
        self, vendor: str, models: Sequence[str] | None, claim_ids: Sequence[str], *, lease_seconds: float
    ) -> list[tuple[str, Claim]]:
        """Claim as many requests as there are ids, of these models or of all; each with its model's name."""
        now = self._clock()
        chosen = {name: self.model_of(vendor, name) for name in models} if models else self.models_of(vendor)
        claimed: list[tuple[str, Claim]] = []
        for name, desk in chosen.items():
            ids = [_of_model(claim_id, name) for claim_id in claim_ids[len(claimed) :]]
            found = desk.claims.claim(vendor, claim_ids=ids, lease_seconds=lease_seconds, now=now)
            self._metrics.claimed(vendor, name, len(found))
            claimed += [(name, claim) for claim in found]
        return claimed

    def held_under(self, vendor: str, *, most: int, key: str) -> list[tuple[str, Claim]]:
        """What the vendor holds of what it claimed with this idempotency key."""
        claim_ids = [each for secret in self._claim_keys[vendor] for each in _claim_ids(secret, key, most)]
        of_models = {name: {_of_model(each, name) for each in claim_ids} for name in self.models_of(vendor)}
        return [(name, claim) for name, claim in self.held(vendor) if claim.claim_id in of_models[name]]

    def held(self, vendor: str) -> list[tuple[str, Claim]]:
        """All that the vendor holds now, with the name of the model."""
        now = self._clock()
        return [
            (name, claim)
            for name, desk in self.models_of(vendor).items()
            for claim in desk.claims.held(vendor, now=now)
        ]

    def renew(
        self, vendor: str, model: str, request_id: str, claim_id: str, *, lease_seconds: float
    ) -> datetime:
        """Have a lease begin anew; when it ends."""
        claims = self.model_of(vendor, model).claims
        changed = claims.renew(vendor, request_id, claim_id, lease_seconds=lease_seconds, now=self._clock())
        _check(changed)
        return datetime.fromtimestamp(changed.leased_until, UTC)

    def release(self, vendor: str, model: str, request_id: str, claim_id: str) -> None:
        """Give a claim back."""
        claims = self.model_of(vendor, model).claims
        _check(claims.release(vendor, request_id, claim_id, now=self._clock()))

    def answer(
        self,
        vendor: str,
        model: str,
        request_id: str,
        claim_id: str,
        *,
        kind: Literal["answer", "skip"],
        true_class: str = "",
        annotator: str = "",
        time: datetime | None = None,
    ) -> None:
        """Answer a claimed request, or skip it. The same again is `ok` again, also once it is closed."""
        desk = self.model_of(vendor, model)
        name = msgspec.json.encode(["answer", model, request_id, claim_id]).decode()
        fingerprint = hashlib.blake2b(f"{kind}\n{true_class}".encode(), digest_size=16).digest()
        owner = secrets.token_hex(8)
        begun = self.calls.begin(vendor, name, fingerprint=fingerprint, owner=owner)
        if begun.status == "done":
            return
        if begun.status == "different":
            raise Refused(Kind.ANSWERED_DIFFERENTLY)
        try:
            item_id = self._submit(desk, vendor, request_id, claim_id, true_class)
            self._note_item(vendor, name, item_id)
            said = Said(model, request_id, item_id, kind, true_class, annotator, time or self._time())
            self._write(vendor, [said], [(desk, request_id, claim_id)])
        except (Refused, Unavailable) as error:
            # The request may be gone because this very answer has closed it: then the reply was lost.
            gone = isinstance(error, Refused) and error.kind is Kind.NOT_FOUND
            if not gone or not self._has_closed(desk, vendor, request_id, name, true_class):
                self.calls.abandon(vendor, name, fingerprint=fingerprint, owner=owner)
                raise
        self.calls.finish(vendor, name, fingerprint=fingerprint, owner=owner, response=b"")

    def revise(
        self,
        vendor: str,
        model: str,
        request_id: str,
        item_id: str,
        *,
        kind: Literal["correction", "retraction"],
        true_class: str = "",
        annotator: str = "",
        time: datetime | None = None,
    ) -> None:
        """Correct an answer, or take it back."""
        desk = self.model_of(vendor, model)
        if true_class and true_class not in desk.classes:
            raise Refused(Kind.UNKNOWN_CLASS)
        found = desk.asked.look(vendor, request_id, item_id)
        if found is None:
            raise Refused(Kind.NOT_FOUND)
        if found.state == "expired":
            raise Refused(Kind.REQUEST_EXPIRED)
        looked = desk.claims.look(vendor, request_id, now=self._clock()) if found.state == "open" else None
        under_way = looked is not None and looked.state == "submitted"
        revisable = {"answered", "retracted"} | ({"skipped"} if kind == "correction" else set())
        if found.state not in revisable and not under_way:
            raise Refused(Kind.NOT_ANSWERED)
        if found.is_full:
            raise Refused(Kind.TOO_MANY_REVISIONS)
        said = Said(model, request_id, item_id, kind, true_class, annotator, time or self._time())
        self._write(vendor, [said], [])

    def look(self, vendor: str, model: str, request_id: str) -> Looked | None:
        """An open request of the vendor."""
        return self.model_of(vendor, model).claims.look(vendor, request_id, now=self._clock())

    def submit_all(self, vendor: str, model: str, answers: Sequence[tuple[str, Said]]) -> list[Kind | None]:
        """Answer and skip claimed requests in one go.

        Args:
            vendor: that answers.
            model: of all requests.
            answers: claim ids, and what is said.

        Returns:
            Why an answer is refused, or None, of each.
        """
        desk = self.model_of(vendor, model)
        taken: list[tuple[ModelDesk, str, str]] = []
        said: list[Said] = []
        outcomes: list[Kind | None] = []
        try:
            for claim_id, each in answers:
                # Before it is asked: a reply may be lost of what was done.
                taken.append((desk, each.request_id, claim_id))
                changed = desk.claims.submit(vendor, each.request_id, claim_id, now=self._clock())
                outcomes.append(_REFUSALS.get(changed.status))
                if changed.status == "ok":
                    said.append(each)
                else:
                    taken.pop()
        except Unavailable:
            self._unsubmit(vendor, taken)
            raise
        self._write(vendor, said, taken)
        return outcomes

    def write_all(self, vendor: str, said: Sequence[Said]) -> None:
        """Write corrections and retractions that were checked."""
        self._write(vendor, said, [])

    def _time(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    def _submit(self, desk: ModelDesk, vendor: str, request_id: str, claim_id: str, true_class: str) -> str:
        """Hold a request while its answer is on its way; its item."""
        looked = desk.claims.look(vendor, request_id, now=self._clock())
        if looked is None:
            raise Refused(Kind.NOT_FOUND)
        request = msgspec.json.decode(looked.message, type=_Request)
        # A class may have been taken out of the configuration since the request was made.
        if true_class and (true_class not in request.classes or true_class not in desk.classes):
            raise Refused(Kind.UNKNOWN_CLASS)
        _check(desk.claims.submit(vendor, request_id, claim_id, now=self._clock()))
        return request.item_id

    def _note_item(self, vendor: str, name: str, item_id: str) -> None:
        """Remember the item of a request that the vendor holds: a closed one is not found without it."""
        self.calls.finish(
            vendor, f"item {name}", fingerprint=_ITEM, owner=secrets.token_hex(8), response=item_id.encode()
        )

    def _has_closed(self, desk: ModelDesk, vendor: str, request_id: str, name: str, true_class: str) -> bool:
        """Whether an answer that says this, or a skip, has closed a request that the vendor has held."""
        owner, noted = secrets.token_hex(8), f"item {name}"
        begun = self.calls.begin(vendor, noted, fingerprint=_ITEM, owner=owner)
        if begun.status != "done":
            self.calls.abandon(vendor, noted, fingerprint=_ITEM, owner=owner)
            return False
        closed = desk.asked.look(vendor, request_id, begun.response.decode())
        if closed is None:
            return False
        return closed.says(true_class) if true_class else closed.state == "skipped"

    def _write(
        self, vendor: str, said: Sequence[Said], submitted: Sequence[tuple[ModelDesk, str, str]]
    ) -> None:
        if not said:
            return
        try:
            self._labels.write(vendor, said, now=self._clock())
        except Unavailable:
            self._unsubmit(vendor, submitted)
            raise
        for each in said:
            self._metrics.wrote(vendor, each.model, each.kind)

    def _unsubmit(self, vendor: str, submitted: Sequence[tuple[ModelDesk, str, str]]) -> None:
        """Have claims hold again whose answers were not written: each one that Redis lets be."""
        for desk, request_id, claim_id in submitted:
            try:
                desk.claims.unsubmit(vendor, request_id, claim_id, now=self._clock())
            except Unavailable as error:
                # It stays submitted until the call is repeated, which is what its vendor is told to do.
                log.warning("a claim stays submitted", extra={"vendor": vendor, "cause": str(error)})


def _claim_ids(secret: bytes, key: str, most: int) -> list[str]:
    of_key = hmac.digest(secret, b"claims\n" + key.encode(), "sha256")
    return [hmac.digest(of_key, str(number).encode(), "sha256")[:18].hex() for number in range(most)]


def _of_model(claim_id: str, model: str) -> str:
    """A claim id of this model alone: one call may look for requests of several models with the same ids."""
    return hashlib.blake2b(f"{claim_id}\n{model}".encode(), digest_size=18).hexdigest()


def _check(changed: Changed) -> None:
    if changed.status != "ok":
        raise Refused(_REFUSALS[changed.status])
