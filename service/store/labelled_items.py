"""Items that were labelled, while it is to be decided whether somebody else labels them too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from service.store.connection import ModelStore, translate_redis_errors

MOST_UNDECIDED = 500
"""Items that are looked at in one round."""

_CLASS, _BY = b"class:", b"by:"


@dataclass(frozen=True)
class LabelledItem:
    """One item with its labels.

    Attributes:
        first_request: id of the first request for it.
        assessment: that asked for it.
        fact: the packed `Fact` of its outcome.
        message: of the last attempt of the first request.
        classes: digest of the class of every label that was not retracted, by the number of the opinion.
        opinions: numbers of the opinions that were given.
        changes: how often its labels have changed.
    """

    first_request: str
    assessment: str
    fact: bytes
    message: bytes
    classes: Mapping[int, bytes]
    opinions: Collection[int]
    changes: int


class LabelledItemStore(ModelStore):
    """The labelled items of one model that may be labelled again."""

    def undecided(self) -> list[LabelledItem]:
        """Items to decide on, at most `MOST_UNDECIDED`, those that have waited longest first."""
        client, keys = self._connection.client, self._keys
        with translate_redis_errors():
            ids = [each.decode() for each in client.zrange(keys.undecided, 0, MOST_UNDECIDED - 1)]
            if not ids:
                return []
            pipeline = client.pipeline(transaction=False)
            for first in ids:
                pipeline.hgetall(keys.labelled(first))
            kept = pipeline.execute()
        return [_item(first, fields) for first, fields in zip(ids, kept, strict=True)]

    def postpone(self, items: Sequence[LabelledItem], *, now: float) -> None:
        """Let others come first."""
        with translate_redis_errors():
            times = {item.first_request: now for item in items}
            self._connection.client.zadd(self._keys.undecided, times, xx=True)

    def settle(self, items: Sequence[LabelledItem], *, epoch: int) -> None:
        """Ask nobody else about some items, but for those whose labels have changed since.

        Raises:
            FenceRefused: a newer leader has written.
        """
        if items:
            ids = [item.first_request for item in items]
            names = [self._keys.undecided, *(self._keys.labelled(first) for first in ids)]
            decided = [part for item in items for part in (item.first_request, item.changes)]
            self._run_fenced("settle_items", names, [epoch, *decided])


def _item(first: str, fields: Mapping[bytes, bytes]) -> LabelledItem:
    """From its hash, which is empty if its time has passed."""
    return LabelledItem(
        first_request=first,
        assessment=fields.get(b"assessment", b"").decode(),
        fact=fields.get(b"fact", b""),
        message=fields.get(b"message", b""),
        classes=_numbered(fields, _CLASS),
        opinions=_numbered(fields, _BY).keys(),
        changes=int(fields.get(b"changes", 0)),
    )


def _numbered(fields: Mapping[bytes, bytes], prefix: bytes) -> dict[int, bytes]:
    """Values of the fields with a prefix, by the number behind it, ascending."""
    found = {int(key.removeprefix(prefix)): fields[key] for key in fields if key.startswith(prefix)}
    return dict(sorted(found.items()))
