"""Annotations of Label Studio taken as labels: the first answers, others correct, deleted ones retract."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from service.label_studio import Annotation, Unusable, class_of
from service.store.closed import Closed
from service.web.vendors.desk import ModelDesk, VendorDesk
from service.web.vendors.documents import Imported, ImportState
from service.web.vendors.labels import Said
from service.web.vendors.problems import Kind, Refused

_CLOSING_SECONDS = 5.0
"""So long a submitted answer is waited for to be read before it is revised."""

_LOOK_SECONDS = 0.1

_STATES: dict[Kind, ImportState] = {
    Kind.NOT_FOUND: "not-found",
    Kind.CLAIM_LOST: "claim-lost",
    Kind.CLAIM_ENDED: "claim-ended",
}


class Settling:
    """Takes annotations of one vendor and model.

    Label Studio may tell of an annotation more than once, and by an export what a webhook has told before:
    what is known already changes nothing.

    Args:
        desk: of all vendors.
        vendor: whose annotations they are.
        model: of their requests.
        clock: seconds since the epoch.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        desk: VendorDesk,
        vendor: str,
        model: str,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._desk = desk
        self._vendor = vendor
        self._model = model
        self._of: ModelDesk = desk.model_of(vendor, model)
        self._clock = clock
        self._sleep = sleep

    def settle(self, annotations: Sequence[Annotation | Unusable]) -> list[Imported]:
        """Take annotations, at most one per request; what became of each.

        Raises:
            Refused: an answer is on its way and does not arrive; settle all of them again later.
            Unavailable: Redis or Kafka cannot answer now; settle all of them again later.
        """
        states: dict[int, ImportState] = {}
        answers: list[tuple[int, str, Said]] = []
        revisions: list[tuple[int, Said]] = []
        for at, told in enumerate(annotations):
            said = self._said(told)
            if isinstance(told, Unusable) or said is None:
                states[at] = "ignored" if isinstance(told, Unusable) else "unknown-class"
                continue
            looked = self._desk.look(self._vendor, self._model, told.request_id)
            if looked is not None and looked.state != "submitted":
                answers.append((at, told.claim_id, said))
                continue
            closed = self._closed(told)
            states[at], kind = _revision(closed, said.true_class)
            if kind is not None:
                revisions.append((at, _as(said, kind)))
        refused = self._desk.submit_all(
            self._vendor, self._model, [(claim_id, said) for _, claim_id, said in answers]
        )
        self._desk.write_all(self._vendor, [said for _, said in revisions])
        for (at, _, _), kind_of_refusal in zip(answers, refused, strict=True):
            states[at] = "submitted" if kind_of_refusal is None else _STATES[kind_of_refusal]
        self._remember(
            [told for at, told in enumerate(annotations) if states[at] in {"submitted", "unchanged"}]
        )
        return [
            Imported(task=told.task, request_id=told.request_id, state=states[at])
            for at, told in enumerate(annotations)
        ]

    def retract(self, identities: Sequence[str]) -> list[Imported]:
        """Take the answers of deleted annotations back, of those that are the newest of their requests.

        Raises:
            Refused: an answer is on its way and does not arrive.
            Unavailable: Redis or Kafka cannot answer now.
        """
        done = []
        for identity in identities:
            known = self._of.asked.annotation(self._vendor, identity) if identity else None
            if known is None or not known[2]:
                done.append(Imported(task=None, request_id=known and known[0], state="ignored"))
                continue
            request_id, item_id, _ = known
            told = Annotation(None, request_id, "", item_id, "", None, "", None)
            closed = self._closed(told)
            if closed is None or closed.state != "answered":
                done.append(Imported(task=None, request_id=request_id, state="unchanged"))
                continue
            said = Said(self._model, request_id, item_id, "retraction", "", "", self._time(None))
            self._desk.write_all(self._vendor, [said])
            done.append(Imported(task=None, request_id=request_id, state="submitted"))
        return done

    def _said(self, told: Annotation | Unusable) -> Said | None:
        """What an annotation says; None if it is no class of the model."""
        if isinstance(told, Unusable):
            return None
        true_class = "" if told.choice is None else class_of(self._of.classes, told.choice)
        if true_class is None:
            return None
        return Said(
            model=self._model,
            request_id=told.request_id,
            item_id=told.item_id,
            kind="answer" if true_class else "skip",
            true_class=true_class,
            annotator=told.annotator,
            time=self._time(told.time),
        )

    def _closed(self, told: Annotation) -> Closed | None:
        """A request once what was submitted for it is read; None if it is not this vendor's."""
        until = self._clock() + _CLOSING_SECONDS
        while (
            found := self._of.asked.look(self._vendor, told.request_id, told.item_id)
        ) is not None and found.state == "open":
            if self._clock() > until:
                raise Refused(Kind.UNAVAILABLE, headers={"Retry-After": "5"})
            self._sleep(_LOOK_SECONDS)
        return found

    def _remember(self, annotations: Sequence[Annotation | Unusable]) -> None:
        for told in annotations:
            if isinstance(told, Annotation) and told.identity:
                self._of.asked.annotated(
                    self._vendor, told.identity, request_id=told.request_id, item_id=told.item_id
                )

    def _time(self, told: datetime | None) -> datetime:
        return told or datetime.fromtimestamp(self._clock(), UTC)


def _revision(closed: Closed | None, true_class: str) -> tuple[ImportState, str | None]:
    """What is to be done about a request that is not open: how that is told, and the label to write."""
    if closed is None:
        return "not-found", None
    if closed.state == "expired":
        return "request-expired", None
    if true_class:
        return ("unchanged", None) if closed.says(true_class) else ("submitted", "correction")
    # A skip of what was answered takes the answer back.
    return ("submitted", "retraction") if closed.state == "answered" else ("unchanged", None)


def _as(said: Said, kind: str) -> Said:
    return Said(
        model=said.model,
        request_id=said.request_id,
        item_id=said.item_id,
        kind="correction" if kind == "correction" else "retraction",
        true_class=said.true_class,
        annotator=said.annotator,
        time=said.time,
    )
