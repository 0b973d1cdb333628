"""Labels from vendors: answers and skips, corrections and retractions."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from service.domain.errors import Unavailable
from service.serving.vendor_api.claims import REFUSALS, Claims, ModelRequests, check
from service.serving.vendor_api.labels import LabelWriter, VendorLabel
from service.serving.vendor_api.problems import Kind, Refused
from service.store.idempotency import Call, IdempotencyRecords
from service.telemetry.instruments import VendorMetrics

log = logging.getLogger(__name__)

_ITEM = b"item"


class _Request(msgspec.Struct):
    item_id: str
    classes: list[str]


class VendorService:
    """Claims of all vendors, and their labels, which it sends to Kafka.

    As with `Claims`, call it from threads that may block. Calls raise `Refused` or `Unavailable`.
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
        self.claims = claims
        self.calls = calls
        self.clock = clock
        self._labels = labels
        self._metrics = metrics

    def answer(self, vendor: str, claim_id: str, label: VendorLabel) -> None:
        """Answer a claimed request, or skip it; its item is looked up. A repeated call succeeds again."""
        model = self.claims.model_of(vendor, label.model)
        name = msgspec.json.encode(["answer", label.model, label.request_id, claim_id]).decode()
        fingerprint = hashlib.blake2b(f"{label.kind}\n{label.true_class}".encode(), digest_size=16).digest()
        call = Call(vendor, name, fingerprint)
        state = self.calls.begin(call)
        if state.status == "done":
            return
        if state.status == "different":
            raise Refused(Kind.ANSWERED_DIFFERENTLY)
        try:
            item_id = self._submit(model, vendor, claim_id, label)
            # A closed request is not found without its item.
            self.calls.finish(Call(vendor, f"item {name}", _ITEM), item_id.encode())
            self._write(vendor, [replace(label, item_id=item_id)], model, [(label.request_id, claim_id)])
        except (Refused, Unavailable) as error:
            # This very answer may have closed the request: then the reply was lost.
            is_closed = isinstance(error, Refused) and error.kind is Kind.NOT_FOUND
            if not is_closed or not self._has_closed(model, vendor, name, label):
                self.calls.abandon(call)
                raise
        self.calls.finish(call, b"")

    def revise(self, vendor: str, label: VendorLabel) -> None:
        """Correct an answer, or retract it."""
        model = self.claims.model_of(vendor, label.model)
        if label.true_class and label.true_class not in model.classes:
            raise Refused(Kind.UNKNOWN_CLASS)
        if label.kind == "correction" and model.several and not label.annotator:
            raise Refused(Kind.ANNOTATOR_NEEDED)
        found = model.registry.find(vendor, label.request_id, label.item_id)
        if found is None:
            raise Refused(Kind.NOT_FOUND)
        if found.state == "expired":
            raise Refused(Kind.REQUEST_EXPIRED)
        is_submitted = False
        if found.state == "open":
            request = model.claims.find(vendor, label.request_id, now=self.clock())
            is_submitted = request is not None and request.state == "submitted"
        revisable = {"answered", "retracted"} | ({"skipped"} if label.kind == "correction" else set())
        if found.state not in revisable and not is_submitted:
            raise Refused(Kind.NOT_ANSWERED)
        if found.is_full:
            raise Refused(Kind.TOO_MANY_REVISIONS)
        self.write_all(vendor, [label])

    def submit_all(
        self, vendor: str, model_name: str, answers: Sequence[tuple[str, VendorLabel]]
    ) -> list[Kind | None]:
        """Answer and skip claimed requests of one model, given with their claim ids.

        Returns:
            Why an answer is refused, or None, of each.
        """
        model = self.claims.model_of(vendor, model_name)
        submitted: list[tuple[str, str]] = []
        labels: list[VendorLabel] = []
        refusals: list[Kind | None] = []
        try:
            for claim_id, label in answers:
                if (refusal := _annotator_refusal(model, vendor, label)) is not None:
                    refusals.append(refusal)
                    continue
                # Before the call, as Redis may make the change although its reply is lost.
                submitted.append((label.request_id, claim_id))
                changed = model.claims.submit(vendor, label.request_id, claim_id, now=self.clock())
                refusals.append(REFUSALS.get(changed.status))
                if changed.status == "ok":
                    labels.append(label)
                else:
                    submitted.pop()
        except Unavailable:
            self._unsubmit(vendor, model, submitted)
            raise
        self._write(vendor, labels, model, submitted)
        return refusals

    def write_all(self, vendor: str, labels: Sequence[VendorLabel]) -> None:
        """Write corrections and retractions that were checked."""
        if not labels:
            return
        self._labels.write(vendor, labels, now=self.clock())
        for label in labels:
            self._metrics.labels.labels(vendor, label.model, label.kind).inc()

    def _submit(self, model: ModelRequests, vendor: str, claim_id: str, label: VendorLabel) -> str:
        """Hold a request while its answer is on its way; its item."""
        found = model.claims.find(vendor, label.request_id, now=self.clock())
        if found is None:
            raise Refused(Kind.NOT_FOUND)
        request = msgspec.json.decode(found.message, type=_Request)
        # A class may have been taken out of the configuration since the request was made.
        if label.true_class and not (
            label.true_class in request.classes and label.true_class in model.classes
        ):
            raise Refused(Kind.UNKNOWN_CLASS)
        if (refusal := _annotator_refusal(model, vendor, label)) is not None:
            raise Refused(refusal)
        check(model.claims.submit(vendor, label.request_id, claim_id, now=self.clock()))
        return request.item_id

    def _has_closed(self, model: ModelRequests, vendor: str, name: str, label: VendorLabel) -> bool:
        """Whether an answer of this class, or a skip, has closed a request that the vendor has held."""
        item_call = Call(vendor, f"item {name}", _ITEM)
        state = self.calls.begin(item_call)
        if state.status != "done":
            self.calls.abandon(item_call)
            return False
        record = model.registry.find(vendor, label.request_id, state.response.decode())
        if record is None:
            return False
        return record.has_class(label.true_class) if label.true_class else record.state == "skipped"

    def _write(
        self,
        vendor: str,
        labels: Sequence[VendorLabel],
        model: ModelRequests,
        submitted: Sequence[tuple[str, str]],
    ) -> None:
        """Write answers of submitted requests, given with their claims."""
        try:
            self.write_all(vendor, labels)
        except Unavailable:
            self._unsubmit(vendor, model, submitted)
            raise

    def _unsubmit(self, vendor: str, model: ModelRequests, submitted: Sequence[tuple[str, str]]) -> None:
        """Restore claims whose answers were not written: each one that Redis allows."""
        for request_id, claim_id in submitted:
            try:
                model.claims.unsubmit(vendor, request_id, claim_id, now=self.clock())
            except Unavailable as error:
                # It stays submitted until the call is repeated, which the response asks for.
                log.warning("a claim stays submitted", extra={"vendor": vendor, "cause": str(error)})


def _annotator_refusal(model: ModelRequests, vendor: str, label: VendorLabel) -> Kind | None:
    """Why this annotator may not answer; None if they may."""
    if not label.annotator:
        return Kind.ANNOTATOR_NEEDED if model.several and label.kind == "answer" else None
    is_barred = model.several and model.claims.is_barred(vendor, label.request_id, label.annotator)
    return Kind.SAME_ANNOTATOR if is_barred else None
