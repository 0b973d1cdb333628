"""Which request the label of an item answers, if its row names none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from service.app.files.records import NotRequested
from service.domain.errors import BadMessage
from service.store.open_requests import ItemRequest, OpenRequests


@dataclass
class RequestedItems:
    """Finds the open requests of items.

    Each request is answered by one row. Other rows about the item answer its further requests.

    Attributes:
        connect: makes the readers of open requests, by model; called when the first one is needed.
        vendor: that labels; empty where vendors are not configured.
    """

    connect: Callable[[], Mapping[str, OpenRequests]]
    vendor: str = ""
    _stores: Mapping[str, OpenRequests] = field(init=False, default_factory=dict)
    _given: set[str] = field(init=False, default_factory=set)

    def requests_for(
        self, model: str, labels: Sequence[tuple[str, str]]
    ) -> list[str | BadMessage | NotRequested]:
        """Id of the request that each label answers, by item and annotator; or why it answers none.

        Raises:
            Unavailable: Redis does not answer.
        """
        opened = self._store(model).of_items([item for item, _ in labels])
        return [
            self._choose(requests, annotator) for requests, (_, annotator) in zip(opened, labels, strict=True)
        ]

    def items_of(self, model: str, request_ids: Sequence[str]) -> list[str | None]:
        """The item of each open request; None if the request is not open.

        Raises:
            Unavailable: Redis does not answer.
        """
        return self._store(model).items_of(request_ids)

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
        return BadMessage("same_annotator", "annotator: this one has labelled the item before")

    def _store(self, model: str) -> OpenRequests:
        if not self._stores:
            self._stores = self.connect()
        return self._stores[model]
