"""Label requests in the making: items drawn from the pools, the vendor, and the message to the labeller."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec

from service.config.model import ModelSettings
from service.domain.cells import CellSpace, definitions
from service.domain.grouping_pool import EMPTY_SKETCH, Sketch, merged_order
from service.domain.groupings import ALL
from service.store.labelled_items import LabelledItem
from service.store.records import (
    Fact,
    GoldItem,
    PoolRecord,
    decode_fact,
    decode_pool_record,
    encode_json,
    encode_packed,
)
from service.store.request_registry import request_id_of
from service.store.requests import Draw, DueRequest, OpenRequest, Renewal, RequestStore
from service.store.shards import pool_field, split_drawn_entry

_LONGEST_GROWN = 100_000
"""Bytes up to which a payload may get longer: `1e15` is written out, and Kafka bounds messages."""


@dataclass(frozen=True)
class Pooled:
    """One pooled item, and where it is."""

    partition: int
    field: bytes
    item_hash: int
    record: PoolRecord


class Drawer:
    """Draws items of one grouping's groups from the pools of all shards, each item at most once.

    The union of the shards' items is no random sample, but its items above the bounds of all shards are, in
    the order of their priorities. So the next item in this order is drawn, or none: a group whose items are
    used up waits for further predictions.
    """

    def __init__(self, requests: RequestStore, partitions: Sequence[int], pool_id: str) -> None:
        self._requests = requests
        self._partitions = partitions
        self._pool_id = pool_id
        self._orders: dict[str, list[tuple[int, int]]] = {}
        self._used_up: set[str] = set()

    def draw(self, groups: Sequence[str]) -> list[Pooled | None]:
        """The next item of every group that is named, None where a group has to wait.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        self._read([group for group in dict.fromkeys(groups) if group not in self._orders])
        places = [self._orders[group].pop() if self._orders[group] else None for group in groups]
        records = iter(self._requests.items([place for place in places if place is not None]))
        found: list[Pooled | None] = []
        for group, place in zip(groups, places, strict=True):
            encoded = None if place is None else next(records)
            if encoded is None:
                # It may have left the pool since it was read; what is behind it is not the next one.
                self._used_up.add(group)
            if place is None or encoded is None or group in self._used_up:
                found.append(None)
            else:
                field = pool_field(self._pool_id, group)
                found.append(Pooled(place[0], field, place[1], decode_pool_record(encoded)))
        return found

    def _read(self, groups: Sequence[str]) -> None:
        """Partition and hash of the items of some groups, the next one last, where pop() takes it."""
        if not groups:
            return
        fields = [pool_field(self._pool_id, group) for group in groups]
        replies = self._requests.read_pools(self._partitions, fields)
        # For whatever group: its value may have lost its row since, and its pool gone to `OTHER`.
        drawn = {split_drawn_entry(entry)[::2] for _, entries in replies for entry in entries}
        for at, group in enumerate(groups):
            encoded = [sketches[at] for sketches, _ in replies]
            sketches = [EMPTY_SKETCH if one is None else Sketch.decode(one) for one in encoded]
            self._orders[group] = [
                (self._partitions[shard], item)
                for _, item, shard in reversed(merged_order(sketches))
                if (self._pool_id, item) not in drawn
            ]


@dataclass(frozen=True)
class VendorAssignment:
    """Assigns label requests to vendors: a keyed hash decides, so every replica decides alike.

    Weighted rendezvous hashing with logarithms (Schindelhauer and Schomaker, Weighted distributed hash
    tables, SPAA 2005): a vendor's hash is a number u that is uniform in (0, 1), and the highest -share / ln u
    is asked. Each vendor is the highest in proportion to its share; when one comes, goes or changes its
    share, requests move to it or from it alone.
    """

    shares: Mapping[str, float]  # positive weights of the vendors that may be asked; empty without vendors
    hash_key: bytes  # of the deployment, 16 bytes: who does not hold it cannot choose item ids for a vendor

    def vendor(self, request_id: str, attempt: int) -> str:
        """The vendor that an attempt of a request, counted from 1, is sent to; empty where there are none."""
        return max(self.shares, key=lambda vendor: self._score(request_id, attempt, vendor), default="")

    def _score(self, request_id: str, attempt: int, vendor: str) -> tuple[float, str]:
        return -self.shares[vendor] / math.log(self._uniform(request_id, attempt, vendor)), vendor

    def _uniform(self, request_id: str, attempt: int, vendor: str) -> float:
        """A number in (0, 1), neither end included; so its logarithm is below 0."""
        text = msgspec.json.encode([request_id, attempt, vendor])
        hashed = hashlib.blake2b(text, key=self.hash_key, digest_size=8, person=b"assignment").digest()
        return ((int.from_bytes(hashed) >> 12) + 0.5) / 2**52


@dataclass(frozen=True)
class RequestBuilder:
    """Makes the label requests of one model."""

    model: str
    settings: ModelSettings
    space: CellSpace
    assignment: VendorAssignment

    @cached_property
    def _definitions(self) -> dict[str, bytes]:
        """Hashed once, as a model may have thousands of classes."""
        return definitions(self.space)

    def request(
        self, item: Pooled, assessment: str, group: str, *, now: float, suspected: bool = False
    ) -> Draw:
        """A pooled item turned into a request; it does not reveal the prediction, unless configured.

        It was drawn for a group of the grouping that the assessment asks about. The label of a group that is
        `suspected` now is not of its reference.
        """
        grouping = self.settings.assessments[assessment].asked_grouping
        made = self._request(item.record, assessment, grouping, group, now=now, suspected=suspected)
        return replace(made, partition=item.partition, field=item.field, item_hash=item.item_hash)

    def gold_request(self, item: GoldItem, assessment: str, *, now: float) -> Draw:
        """A gold item turned into a request, whose message is like any other's."""
        return self._request(item.record, assessment, ALL, "", now=now, gold=item.true_class)

    def _request(
        self,
        record: PoolRecord,
        assessment: str,
        grouping: str,
        group: str,
        *,
        now: float,
        suspected: bool = False,
        gold: str = "",
    ) -> Draw:
        settings = self.settings.assessments[assessment]
        deadline = now + settings.lease_seconds
        request_id = request_id_of(self.model, record.item_id)
        vendor = self.assignment.vendor(request_id, 1)
        message: dict[str, Any] = {
            "request_id": request_id,
            "model": self.model,
            "item_id": record.item_id,
            "classes": self.settings.classes,
            "requested_at": _iso(now),
            "deadline": _iso(deadline),
            "attempt": 1,
        }
        if record.payload:
            message["payload"] = msgspec.Raw(_canonical(record.payload))
        if record.payload_uri:
            message["payload_uri"] = record.payload_uri
        if settings.reveal_prediction:
            message["prediction"] = {"predicted_class": record.predicted_class, "score": record.score}
        if vendor:
            message["vendor"] = vendor
        fact = Fact(
            request_id=request_id,
            item_id=record.item_id,
            grouping=grouping,
            group=group,
            predicted_class=record.predicted_class,
            score=record.score,
            attributes=record.attributes,
            predicted_at=record.time,
            requested_at=now,
            votes=record.votes,
            voters=self.space.voters_of(grouping),
            definition=self._definitions[grouping],
            suspected=suspected,
            gold=gold,
        )
        return Draw(
            item_id=record.item_id,
            request_id=request_id,
            fact=encode_packed(fact),
            message=encode_json(message),
            open=_opened(fact, assessment, vendor, now=now),
            deadline=deadline,
        )

    def renewal(self, due: DueRequest, *, now: float) -> Renewal:
        """What becomes of a request whose deadline has passed: another attempt, or its end.

        It ends if its assessment is configured no more.
        """
        settings = self.settings.assessments.get(due.open.assessment)
        if settings is None or due.open.attempt >= settings.max_attempts:
            return Renewal(due)
        attempt = due.open.attempt + 1
        vendor = self.assignment.vendor(due.request_id, attempt)
        deadline = now + settings.lease_seconds
        message, item_id = _message_again(
            due.message, vendor, requested_at=_iso(now), deadline=_iso(deadline), attempt=attempt
        )
        return Renewal(due, deadline, message, vendor=vendor, item_id=item_id)

    def further_request(self, item: LabelledItem, *, now: float) -> Draw:
        """A labelled item turned into a request to somebody else."""
        fact, opinion = decode_fact(item.fact), max(item.opinions) + 1
        deadline = now + self.settings.assessments[item.assessment].lease_seconds
        request_id = request_id_of(self.model, fact.item_id, opinion)
        vendor = self.assignment.vendor(request_id, 1)
        message, _ = _message_again(
            item.message,
            vendor,
            request_id=request_id,
            requested_at=_iso(now),
            deadline=_iso(deadline),
            attempt=1,
            opinion=opinion,
        )
        return Draw(
            item_id=fact.item_id,
            request_id=request_id,
            fact=item.fact,
            message=message,
            open=_opened(fact, item.assessment, vendor, now=now, opinion=opinion),
            deadline=deadline,
            first_request=item.first_request,
        )


def _opened(fact: Fact, assessment: str, vendor: str, *, now: float, opinion: int = 1) -> OpenRequest:
    """The first attempt of a request about a prediction."""
    return OpenRequest(
        assessment=assessment,
        group=fact.group,
        attributes=fact.attributes,
        predicted_class=fact.predicted_class,
        score=fact.score,
        attempt=1,
        requested_at=now,
        vendor=vendor,
        suspected=fact.suspected,
        opinion=opinion,
        gold=bool(fact.gold),
    )


def _message_again(message: bytes, vendor: str, **changes: object) -> tuple[bytes, str]:
    """The message of a request with some keys changed, for another attempt or person; and its item id."""
    keys = msgspec.json.decode(message, type=dict[str, msgspec.Raw])
    keys.pop("vendor", None)
    if vendor:
        changes["vendor"] = vendor
    keys |= {name: msgspec.Raw(encode_json(value)) for name, value in changes.items()}
    return encode_json(keys), msgspec.json.decode(keys["item_id"], type=str)


def _canonical(payload: bytes) -> bytes:
    """A JSON text as everybody's is written: its spaces, escapes and numbers say nothing of who wrote it.

    One with a number that is no float, or that cannot be read for another reason, stays as it is.
    """
    try:
        text = encode_json(msgspec.json.decode(payload))
    except (ValueError, RecursionError):
        return payload
    return text if len(text) <= max(len(payload), _LONGEST_GROWN) else payload


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
