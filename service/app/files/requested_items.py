"""Which request a label answers: each request of a file is answered once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from service.app.files.records import NotRequested
from service.domain.errors import BadMessage
from service.store.open_requests import ItemRequest, OpenRequests


@dataclass(frozen=True)
class Answer:
    """The label of a row.

    Attributes:
        request_id: that the row names; empty if it names only the item.
    """

    item_id: str
    annotator: str
    request_id: str


@dataclass
class RequestedItems:
    """Finds the open requests of items.

    Each request is answered by one row. Other rows about the item answer its further requests.

    Attributes:
        connect: makes the readers of open requests, by model; called when the first one is needed.
        several: models whose items several people label.
        vendor: that labels; empty where vendors are not configured.
    """

    connect: Callable[[], Mapping[str, OpenRequests]]
    several: Collection[str] = ()
    vendor: str = ""
    _stores: Mapping[str, OpenRequests] = field(init=False, default_factory=dict)
    _given: set[str] = field(init=False, default_factory=set)

    def requests_for(self, model: str, answers: Sequence[Answer]) -> list[str | BadMessage | NotRequested]:
        """Id of the request that each label answers, or why it answers none.

        Raises:
            Unavailable: Redis does not answer.
        """
        # Of a request that a row names, Redis only knows who may not answer it.
        needed = {one.item_id for one in answers if not one.request_id or model in self.several}
        items = sorted(needed)
        opened = dict(zip(items, self._store(model).of_items(items), strict=True)) if items else {}
        return [
            self._confirm(opened.get(one.item_id, ()), one)
            if one.request_id
            else self._choose(opened[one.item_id], one.annotator)
            for one in answers
        ]

    def items_of(self, model: str, request_ids: Sequence[str]) -> list[str | None]:
        """The item of each open request; None if the request is not open.

        Raises:
            Unavailable: Redis does not answer.
        """
        return self._store(model).items_of(request_ids)

    def _confirm(self, requests: Sequence[ItemRequest], answer: Answer) -> str | BadMessage:
        """The request that a row names."""
        if answer.request_id in self._given:
            return BadMessage("answered_before", "request_id: an earlier row answers this request")
        for one in requests:
            if one.request_id == answer.request_id and one.bars(answer.annotator, self.vendor):
                return _same_annotator()
        self._given.add(answer.request_id)
        return answer.request_id

    def _choose(self, requests: Sequence[ItemRequest], annotator: str) -> str | BadMessage | NotRequested:
        # Requests from before vendors were configured are answered by any of them.
        mine = [
            one for one in requests if one.vendor in ("", self.vendor) and one.request_id not in self._given
        ]
        if not mine:
            return NotRequested()
        for one in mine:
            if not one.bars(annotator, self.vendor):
                self._given.add(one.request_id)
                return one.request_id
        return _same_annotator()

    def _store(self, model: str) -> OpenRequests:
        if not self._stores:
            self._stores = self.connect()
        return self._stores[model]


def _same_annotator() -> BadMessage:
    return BadMessage("same_annotator", "annotator: this one has labelled the item before")
