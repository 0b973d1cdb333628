"""Label Studio annotations as labels: the first is an answer, later ones correct, deleted ones retract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from service.domain.label_studio import Annotation, Unusable
from service.domain.label_studio_tasks import class_of
from service.serving.vendor_api.labels import VendorLabel
from service.serving.vendor_api.problems import Kind
from service.serving.vendor_api.schemas import Imported, ImportState
from service.serving.vendor_api.service import VendorService
from service.store.request_registry import (
    LatestAnnotation,
    RequestRecord,
    annotation_digest,
    class_digest,
    is_request_for,
)

_STATES: dict[Kind, ImportState] = {
    Kind.NOT_FOUND: "not-found",
    Kind.CLAIM_LOST: "claim-lost",
    Kind.CLAIM_ENDED: "claim-ended",
    Kind.SAME_ANNOTATOR: "same-annotator",
    Kind.ANNOTATOR_NEEDED: "annotator-needed",
}


@dataclass
class _Plan:
    """Result to report for an annotation, and the label to write, if any.

    `claim_id` is empty for a revision.
    """

    state: ImportState
    label: VendorLabel | None = None
    claim_id: str = ""


class AnnotationImport:
    """Takes annotations of one vendor and model.

    Label Studio may send an annotation more than once, and export what a webhook sent before: what is
    already stored changes nothing.
    """

    def __init__(self, service: VendorService, vendor: str, model: str) -> None:
        self._service = service
        self._vendor = vendor
        self._model = model
        self._requests = service.claims.model_of(vendor, model)

    def take(self, annotations: Sequence[Annotation | Unusable]) -> list[Imported]:
        """Take annotations, only the newest of each request, and report on each.

        Raises:
            Unavailable: Redis or Kafka cannot answer now; take all of them again later.
        """
        positions = _latest_by_request(annotations)
        plans = [
            self._plan(annotation)
            if isinstance(annotation, Annotation) and positions[annotation.request_id] == at
            else _Plan("ignored")
            for at, annotation in enumerate(annotations)
        ]
        answers = [plan for plan in plans if plan.label and plan.claim_id]
        refusals = self._service.submit_all(
            self._vendor, self._model, [(plan.claim_id, plan.label) for plan in answers if plan.label]
        )
        revisions = [plan.label for plan in plans if plan.label and not plan.claim_id]
        self._service.write_all(self._vendor, revisions)
        for plan, refusal in zip(answers, refusals, strict=True):
            if refusal is not None:
                plan.state = _STATES[refusal]
        for annotation, plan in zip(annotations, plans, strict=True):
            if isinstance(annotation, Annotation) and plan.state in {"submitted", "unchanged"}:
                self._remember(annotation, written=plan.state == "submitted")
        return [
            Imported(task=annotation.task, request_id=annotation.request_id, state=plan.state)
            for annotation, plan in zip(annotations, plans, strict=True)
        ]

    def retract(self, identities: Sequence[str]) -> list[Imported]:
        """Retract the answers of deleted annotations that are the newest of their requests.

        Raises:
            Unavailable: Redis or Kafka cannot answer now.
        """
        return [self._retract(annotation_digest(identity)) for identity in identities]

    def _retract(self, digest: str) -> Imported:
        registry = self._requests.registry
        request = registry.annotation(self._vendor, digest) if digest else None
        latest = None if request is None else registry.latest(self._vendor, request[0])
        if request is None or latest is None or latest.annotation != digest:
            return Imported(task=None, request_id=None, state="ignored")
        request_id, item_id = request
        record = registry.find(self._vendor, request_id, item_id)
        is_submitted = record is not None and record.state == "open" and not latest.has_class("")
        if record is None or not (record.state == "answered" or is_submitted):
            return Imported(task=None, request_id=request_id, state="unchanged")
        if record.is_full:
            return Imported(task=None, request_id=request_id, state="too-many-revisions")
        self._service.write_all(self._vendor, [VendorLabel(self._model, request_id, "retraction", item_id)])
        registry.remember(self._vendor, request_id, item_id, msgspec.structs.replace(latest, true_class=""))
        return Imported(task=None, request_id=request_id, state="submitted")

    def _plan(self, annotation: Annotation) -> _Plan:
        true_class = self._class_of(annotation)
        if true_class is None:
            return _Plan("unknown-class")
        # The task's data may have been edited, so the item id cannot be trusted.
        if not is_request_for(annotation.request_id, self._model, annotation.item_id):
            return _Plan("not-found")
        latest = self._requests.registry.latest(self._vendor, annotation.request_id)
        if latest is not None and annotation.time is not None and annotation.time.timestamp() < latest.time:
            return _Plan("ignored")
        label = VendorLabel(
            model=self._model,
            request_id=annotation.request_id,
            item_id=annotation.item_id,
            kind="answer" if true_class else "skip",
            true_class=true_class,
            annotator=annotation.annotator,
            time=annotation.time,
        )
        request = self._service.claims.find(self._vendor, self._model, label.request_id)
        if request is None:
            record = self._requests.registry.find(self._vendor, label.request_id, label.item_id)
            return _revision(record, label)
        if request.state != "submitted":
            return _Plan("submitted", label, annotation.claim_id)
        return _plan_of_submitted(latest, label, annotation.claim_id)

    def _class_of(self, annotation: Annotation) -> str | None:
        """The class that an annotation chooses; empty for a skip, None if it is no class of the model."""
        return "" if annotation.choice is None else class_of(self._requests.classes, annotation.choice)

    def _remember(self, annotation: Annotation, *, written: bool) -> None:
        """Store the latest annotation; of a request that others labelled only if a label was written."""
        before = self._requests.registry.latest(self._vendor, annotation.request_id)
        if before is None and not written:
            return
        true_class = self._class_of(annotation)
        latest = LatestAnnotation(
            annotation=annotation_digest(annotation.identity) or (before.annotation if before else ""),
            time=annotation.time.timestamp() if annotation.time else self._service.clock(),
            true_class=class_digest(true_class).hex() if true_class else "",
        )
        self._requests.registry.remember(self._vendor, annotation.request_id, annotation.item_id, latest)


def _latest_by_request(annotations: Sequence[Annotation | Unusable]) -> dict[str | None, int]:
    """Index of the latest annotation of every request."""
    latest: dict[str | None, int] = {}
    for at, annotation in enumerate(annotations):
        if isinstance(annotation, Unusable):
            continue
        before = annotations[latest.get(annotation.request_id, at)]
        if isinstance(before, Annotation) and not (
            annotation.time and before.time and annotation.time < before.time
        ):
            latest[annotation.request_id] = at
    return latest


def _revision(record: RequestRecord | None, label: VendorLabel) -> _Plan:
    """Plan for a request that is not open."""
    # An open request that is not this vendor's has just been issued to another one.
    if record is None or record.state == "open":
        return _Plan("not-found")
    if record.state == "expired":
        return _Plan("request-expired")
    # A skip of what was answered takes the answer back.
    if record.has_class(label.true_class) if label.true_class else record.state != "answered":
        return _Plan("unchanged")
    if record.is_full:
        return _Plan("too-many-revisions")
    return _Plan("submitted", _as_revision(label))


def _plan_of_submitted(latest: LatestAnnotation | None, label: VendorLabel, claim_id: str) -> _Plan:
    """Plan for a request whose answer is on its way, or was lost before it was written.

    A correction does for both: it answers what is not answered. Kafka keeps the order.
    """
    if latest is not None and latest.has_class(label.true_class):
        return _Plan("unchanged")
    if label.true_class or latest is not None:
        return _Plan("submitted", _as_revision(label))
    return _Plan("submitted", label, claim_id)


def _as_revision(label: VendorLabel) -> VendorLabel:
    return replace(label, kind="correction" if label.true_class else "retraction")
