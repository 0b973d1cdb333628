"""Label requests in the making: the vendor, and the message to the labeller."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec

from service.config.model import ModelSettings
from service.domain.cells import CellSpace, definitions
from service.domain.groupings import ALL
from service.monitoring.item_drawer import Pooled
from service.store.labelled_items import LabelledItem
from service.store.records import (
    Fact,
    GoldItem,
    PoolRecord,
    decode_fact,
    encode_json,
    encode_packed,
)
from service.store.request_registry import request_id_of
from service.store.requests import Draw, DueRequest, OpenRequest, Renewal

_LONGEST_GROWN = 100_000
"""Bytes up to which a payload may get longer: `1e15` is written out, and Kafka bounds messages."""


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

    def request(self, item: Pooled, assessment: str, *, now: float, suspected: bool = False) -> Draw:
        """A pooled item turned into a request; it does not reveal the prediction, unless configured.

        It was drawn for a group of the grouping that the assessment asks about. The label of a group that is
        `suspected` now is not of its reference.
        """
        grouping = self.settings.assessments[assessment].asked_grouping
        made = self._request(
            item.record,
            assessment,
            grouping,
            item.group,
            now=now,
            suspected=suspected,
            estimator=item.estimator,
        )
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
        estimator: bytes = b"",
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
            estimator=estimator,
        )
        return Draw(
            item_id=record.item_id,
            request_id=request_id,
            fact=encode_packed(fact),
            message=encode_json(message),
            open=self._opened(fact, assessment, vendor, now=now),
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
            open=self._opened(fact, item.assessment, vendor, now=now, opinion=opinion),
            deadline=deadline,
            first_request=item.first_request,
        )

    def _opened(
        self, fact: Fact, assessment: str, vendor: str, *, now: float, opinion: int = 1
    ) -> OpenRequest:
        """The first attempt of a request about a prediction."""
        by = self.space.groupings.get(fact.grouping)
        return OpenRequest(
            assessment=assessment,
            group=fact.group if by is None else by.value_of(fact.group),
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
