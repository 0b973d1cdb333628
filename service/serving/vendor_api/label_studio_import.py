"""Annotations of Label Studio taken as labels: the first answers, others correct, deleted ones retract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import msgspec

from service.domain.label_studio import Annotation, Unusable
from service.domain.label_studio_tasks import class_of
from service.serving.vendor_api.labels import Said
from service.serving.vendor_api.problems import Kind
from service.serving.vendor_api.schemas import Imported, ImportState
from service.serving.vendor_api.service import VendorService
from service.store.request_registry import Closed, Newest, annotation_digest, class_digest, request_id_of

_STATES: dict[Kind, ImportState] = {
    Kind.NOT_FOUND: "not-found",
    Kind.CLAIM_LOST: "claim-lost",
    Kind.CLAIM_ENDED: "claim-ended",
}


@dataclass
class _Plan:
    """What to do about an annotation: how to report it, and the label to write, if any.

    `claim_id` is empty for a revision.
    """

    state: ImportState
    said: Said | None = None
    claim_id: str = ""


class AnnotationImport:
    """Takes annotations of one vendor and model.

    Label Studio may send an annotation more than once, and export what a webhook sent before: what is
    already stored changes nothing.
    """

    def __init__(
        self, service: VendorService, vendor: str, model: str, *, clock: Callable[[], float]
    ) -> None:
        self._claims = service.claims
        self._answers = service.answers
        self._vendor = vendor
        self._model = model
        self._of = service.claims.model_of(vendor, model)
        self._clock = clock

    def take(self, annotations: Sequence[Annotation | Unusable]) -> list[Imported]:
        """Take annotations, only the newest of each request, and report on each.

        Raises:
            Unavailable: Redis or Kafka cannot answer now; take all of them again later.
        """
        newest = _newest_of(annotations)
        plans = [
            self._plan(annotation) if newest.get(annotation.request_id) in {None, at} else _Plan("ignored")
            for at, annotation in enumerate(annotations)
        ]
        answers = [plan for plan in plans if plan.said is not None and plan.claim_id]
        refused = self._answers.submit_all(
            self._vendor, self._model, [(plan.claim_id, plan.said) for plan in answers if plan.said]
        )
        revisions = [plan.said for plan in plans if plan.said is not None and not plan.claim_id]
        self._answers.write_all(self._vendor, revisions)
        for plan, kind_of_refusal in zip(answers, refused, strict=True):
            plan.state = "submitted" if kind_of_refusal is None else _STATES[kind_of_refusal]
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
        asked = self._of.asked
        named = asked.annotation(self._vendor, digest) if digest else None
        known = None if named is None else asked.newest(self._vendor, named[0])
        if named is None or known is None or known.annotation != digest:
            return Imported(task=None, request_id=None, state="ignored")
        request_id, item_id = named
        closed = asked.look(self._vendor, request_id, item_id)
        under_way = closed is not None and closed.state == "open" and not known.says("")
        if closed is None or not (closed.state == "answered" or under_way):
            return Imported(task=None, request_id=request_id, state="unchanged")
        if closed.is_full:
            return Imported(task=None, request_id=request_id, state="too-many-revisions")
        said = Said(self._model, request_id, item_id, "retraction", "", "", self._time(None))
        self._answers.write_all(self._vendor, [said])
        asked.remember(self._vendor, request_id, item_id, msgspec.structs.replace(known, true_class=""))
        return Imported(task=None, request_id=request_id, state="submitted")

    def _plan(self, annotation: Annotation | Unusable) -> _Plan:
        """What to do about an annotation."""
        if isinstance(annotation, Unusable):
            return _Plan("ignored")
        true_class = self._class_of(annotation)
        if true_class is None:
            return _Plan("unknown-class")
        # The task's data went through other hands, so the item may be any.
        if annotation.request_id != request_id_of(self._model, annotation.item_id):
            return _Plan("not-found")
        known = self._of.asked.newest(self._vendor, annotation.request_id)
        if known is not None and annotation.time is not None and annotation.time.timestamp() < known.time:
            return _Plan("ignored")
        said = Said(
            model=self._model,
            request_id=annotation.request_id,
            item_id=annotation.item_id,
            kind="answer" if true_class else "skip",
            true_class=true_class,
            annotator=annotation.annotator,
            time=self._time(annotation.time),
        )
        return self._plan_of(said, annotation.claim_id, known)

    def _plan_of(self, said: Said, claim_id: str, known: Newest | None) -> _Plan:
        looked = self._claims.look(self._vendor, self._model, said.request_id)
        if looked is None:
            return _revision(self._of.asked.look(self._vendor, said.request_id, said.item_id), said)
        if looked.state != "submitted":
            return _Plan("submitted", said, claim_id)
        return _while_under_way(known, said, claim_id)

    def _class_of(self, annotation: Annotation) -> str | None:
        """The class that an annotation chooses; empty for a skip, None if it is no class of the model."""
        return "" if annotation.choice is None else class_of(self._of.classes, annotation.choice)

    def _remember(self, annotation: Annotation, *, written: bool) -> None:
        """Remember an annotation; of what others have labelled only if there is a label of it."""
        known = self._of.asked.newest(self._vendor, annotation.request_id)
        if known is None and not written:
            return
        true_class = self._class_of(annotation)
        newest = Newest(
            annotation=annotation_digest(annotation.identity) or ("" if known is None else known.annotation),
            time=self._time(annotation.time).timestamp(),
            true_class=class_digest(true_class).hex() if true_class else "",
        )
        self._of.asked.remember(self._vendor, annotation.request_id, annotation.item_id, newest)

    def _time(self, given: datetime | None) -> datetime:
        return given or datetime.fromtimestamp(self._clock(), UTC)


def _newest_of(annotations: Sequence[Annotation | Unusable]) -> dict[str | None, int]:
    """Which annotation of every request is the newest one."""
    newest: dict[str | None, int] = {}
    for at, annotation in enumerate(annotations):
        if isinstance(annotation, Unusable):
            continue
        before = annotations[newest.get(annotation.request_id, at)]
        if isinstance(before, Annotation) and not (
            annotation.time and before.time and annotation.time < before.time
        ):
            newest[annotation.request_id] = at
    return newest


def _revision(closed: Closed | None, said: Said) -> _Plan:
    """What to do about a request that is not open."""
    # An open request that cannot be looked at has just been issued to somebody else.
    if closed is None or closed.state == "open":
        return _Plan("not-found")
    if closed.state == "expired":
        return _Plan("request-expired")
    # A skip of what was answered takes the answer back.
    if closed.says(said.true_class) if said.true_class else closed.state != "answered":
        return _Plan("unchanged")
    if closed.is_full:
        return _Plan("too-many-revisions")
    return _Plan("submitted", _as_correction(said) if said.true_class else _as_retraction(said))


def _while_under_way(known: Newest | None, said: Said, claim_id: str) -> _Plan:
    """What to do about a request whose answer is on its way, or was lost before it was written.

    A correction does for both: it answers what is not answered. Kafka keeps the order.
    """
    if known is not None and known.says(said.true_class):
        return _Plan("unchanged")
    if said.true_class:
        return _Plan("submitted", _as_correction(said))
    if known is not None:
        return _Plan("submitted", _as_retraction(said))
    return _Plan("submitted", said, claim_id)


def _as_correction(said: Said) -> Said:
    return replace(said, kind="correction")


def _as_retraction(said: Said) -> Said:
    return replace(said, kind="retraction")
