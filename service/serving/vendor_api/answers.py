"""What vendors say of label requests: answers and skips, corrections and retractions."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from service.domain.errors import Unavailable
from service.serving.vendor_api.claims import REFUSALS, Claims, ModelRequests, check
from service.serving.vendor_api.labels import LabelWriter, Said
from service.serving.vendor_api.problems import Kind, Refused
from service.store.idempotency import IdempotencyRecords
from service.telemetry.instruments import VendorMetrics

log = logging.getLogger(__name__)

_ITEM = b"item"


class _Request(msgspec.Struct):
    item_id: str
    classes: list[str]


class Answers:
    """Sends the answers of all vendors to Kafka.

    As with `Claims`, calls are made from threads that may wait, and raise `Refused` or `Unavailable`.
    `calls` has the outcome of earlier calls.
    """

    def __init__(
        self,
        claims: Claims,
        *,
        labels: LabelWriter,
        calls: IdempotencyRecords,
        metrics: VendorMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._claims = claims
        self._labels = labels
        self._metrics = metrics
        self._clock = clock
        self.calls = calls

    def answer(
        self,
        vendor: str,
        model: str,
        request_id: str,
        claim_id: str,
        *,
        kind: Literal["answer", "skip"],
        true_class: str = "",
        annotator: str | None = None,
        time: datetime | None = None,
    ) -> None:
        """Answer a claimed request, or skip it. The same again is `ok` again, also once it is closed."""
        of = self._claims.model_of(vendor, model)
        name = msgspec.json.encode(["answer", model, request_id, claim_id]).decode()
        fingerprint = hashlib.blake2b(f"{kind}\n{true_class}".encode(), digest_size=16).digest()
        owner = secrets.token_hex(8)
        begun = self.calls.begin(vendor, name, fingerprint=fingerprint, owner=owner)
        if begun.status == "done":
            return
        if begun.status == "different":
            raise Refused(Kind.ANSWERED_DIFFERENTLY)
        try:
            item_id = self._submit(of, vendor, request_id, claim_id, true_class)
            self._note_item(vendor, name, item_id)
            said = Said(model, request_id, item_id, kind, true_class, annotator or "", time or self._time())
            self._write(vendor, [said], [(of, request_id, claim_id)])
        except (Refused, Unavailable) as error:
            # The request may be gone because this very answer has closed it: then the reply was lost.
            gone = isinstance(error, Refused) and error.kind is Kind.NOT_FOUND
            if not gone or not self._has_closed(of, vendor, request_id, name, true_class):
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
        annotator: str | None = None,
        time: datetime | None = None,
    ) -> None:
        """Correct an answer, or take it back."""
        of = self._claims.model_of(vendor, model)
        if true_class and true_class not in of.classes:
            raise Refused(Kind.UNKNOWN_CLASS)
        found = of.asked.look(vendor, request_id, item_id)
        if found is None:
            raise Refused(Kind.NOT_FOUND)
        if found.state == "expired":
            raise Refused(Kind.REQUEST_EXPIRED)
        looked = of.claims.look(vendor, request_id, now=self._clock()) if found.state == "open" else None
        under_way = looked is not None and looked.state == "submitted"
        revisable = {"answered", "retracted"} | ({"skipped"} if kind == "correction" else set())
        if found.state not in revisable and not under_way:
            raise Refused(Kind.NOT_ANSWERED)
        if found.is_full:
            raise Refused(Kind.TOO_MANY_REVISIONS)
        said = Said(model, request_id, item_id, kind, true_class, annotator or "", time or self._time())
        self._write(vendor, [said], [])

    def submit_all(self, vendor: str, model: str, answers: Sequence[tuple[str, Said]]) -> list[Kind | None]:
        """Answer and skip claimed requests of one model, given with their claim ids.

        Returns:
            Why an answer is refused, or None, of each.
        """
        of = self._claims.model_of(vendor, model)
        taken: list[tuple[ModelRequests, str, str]] = []
        said: list[Said] = []
        outcomes: list[Kind | None] = []
        try:
            for claim_id, each in answers:
                # Before it is asked: a reply may be lost of what was done.
                taken.append((of, each.request_id, claim_id))
                changed = of.claims.submit(vendor, each.request_id, claim_id, now=self._clock())
                outcomes.append(REFUSALS.get(changed.status))
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

    def _submit(self, of: ModelRequests, vendor: str, request_id: str, claim_id: str, true_class: str) -> str:
        """Hold a request while its answer is on its way; its item."""
        looked = of.claims.look(vendor, request_id, now=self._clock())
        if looked is None:
            raise Refused(Kind.NOT_FOUND)
        request = msgspec.json.decode(looked.message, type=_Request)
        # A class may have been taken out of the configuration since the request was made.
        if true_class and (true_class not in request.classes or true_class not in of.classes):
            raise Refused(Kind.UNKNOWN_CLASS)
        check(of.claims.submit(vendor, request_id, claim_id, now=self._clock()))
        return request.item_id

    def _note_item(self, vendor: str, name: str, item_id: str) -> None:
        """Remember the item of a request that the vendor holds: a closed one is not found without it."""
        self.calls.finish(
            vendor, f"item {name}", fingerprint=_ITEM, owner=secrets.token_hex(8), response=item_id.encode()
        )

    def _has_closed(
        self, of: ModelRequests, vendor: str, request_id: str, name: str, true_class: str
    ) -> bool:
        """Whether an answer that says this, or a skip, has closed a request that the vendor has held."""
        owner, noted = secrets.token_hex(8), f"item {name}"
        begun = self.calls.begin(vendor, noted, fingerprint=_ITEM, owner=owner)
        if begun.status != "done":
            self.calls.abandon(vendor, noted, fingerprint=_ITEM, owner=owner)
            return False
        closed = of.asked.look(vendor, request_id, begun.response.decode())
        if closed is None:
            return False
        return closed.says(true_class) if true_class else closed.state == "skipped"

    def _write(
        self, vendor: str, said: Sequence[Said], submitted: Sequence[tuple[ModelRequests, str, str]]
    ) -> None:
        if not said:
            return
        try:
            self._labels.write(vendor, said, now=self._clock())
        except Unavailable:
            self._unsubmit(vendor, submitted)
            raise
        for each in said:
            self._metrics.labels.labels(vendor, each.model, each.kind).inc()

    def _unsubmit(self, vendor: str, submitted: Sequence[tuple[ModelRequests, str, str]]) -> None:
        """Have claims hold again whose answers were not written: each one that Redis lets be."""
        for of, request_id, claim_id in submitted:
            try:
                of.claims.unsubmit(vendor, request_id, claim_id, now=self._clock())
            except Unavailable as error:
                # It stays submitted until the call is repeated, which the response asks for.
                log.warning("a claim stays submitted", extra={"vendor": vendor, "cause": str(error)})
