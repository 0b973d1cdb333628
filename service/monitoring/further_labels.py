"""Which labelled items somebody else labels too."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.config.model import ModelSettings
from service.store.labelled_items import MOST_UNDECIDED, LabelledItem, LabelledItemStore
from service.store.records import decode_fact
from service.store.request_registry import class_digest


@dataclass(frozen=True)
class FurtherLabels:
    """Decides on the labelled items of one model."""

    settings: ModelSettings
    items: LabelledItemStore
    hash_key: bytes  # of the deployment: who does not hold it cannot tell which items are audited

    def wanted(self, *, epoch: int, now: float) -> Mapping[str, Sequence[LabelledItem]]:
        """Items that somebody else is to label, by the assessment that asked for them.

        All others are settled: nobody else is asked about them. `epoch` is the leader's. If there may be
        more items than are looked at, those that may have to wait for a budget let others come first.

        Raises:
            FenceRefused: a newer leader has written.
            Unavailable: Redis cannot answer now.
        """
        wanted, settled = defaultdict(list), []
        undecided = self.items.undecided()
        for item in undecided:
            if self._wants_another(item):
                wanted[item.assessment].append(item)
            else:
                settled.append(item)
        self.items.settle(settled, epoch=epoch)
        if len(undecided) == MOST_UNDECIDED and wanted:
            self.items.postpone([item for items in wanted.values() for item in items], now=now)
        return wanted

    def _wants_another(self, item: LabelledItem) -> bool:
        if item.assessment not in self.settings.assessments:
            return False
        predicted = class_digest(decode_fact(item.fact).predicted_class)
        policy = self.settings.labels_per_item
        return len(item.opinions) < policy.most and policy.wants_another(
            [*item.classes.values()], predicted, is_audited=self._is_audited(item.first_request)
        )

    def _is_audited(self, first_request: str) -> bool:
        """Whether an item is one of those that are labelled again whatever is said of them."""
        hashed = hashlib.blake2b(first_request.encode(), key=self.hash_key, digest_size=8, person=b"audit")
        share = int.from_bytes(hashed.digest()) / 2**64
        return share < self.settings.labels_per_item.audit_share
