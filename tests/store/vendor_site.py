"""A model with two vendors on a real Redis: what the tests of vendors share."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from typing import Any

from store_site import NOW, Record, Site, message, record

from service.domain.label_signatures import sign
from service.domain.messages import LabelRequest
from service.store.claims import ClaimStore
from service.store.connection import Connection
from service.store.requests import OpenRequest

KEYS = {"acme": "a" * 32, "bolt": "b" * 32}
LEASE_SECONDS = 60.0
VENDORS: dict[str, Any] = {
    "acme": {"label_keys": [KEYS["acme"]], "token_sha256": ["a1" * 32]},
    "bolt": {"label_keys": [KEYS["bolt"]], "token_sha256": ["b1" * 32]},
}
OFFSETS = itertools.count()


def models(**fields: Any) -> dict[str, Any]:
    assessment = {
        "policy": "random",
        "budget": {"labels": 1_000},
        "max_in_flight": 1_000,
        "lease_seconds": LEASE_SECONDS,
        "max_attempts": 3,
        **fields,
    }
    return {"m": {"classes": ["cat", "dog"], "score_bins": 1, "assessments": {"ask": assessment}}}


def site_of(
    connection: Connection, vendors: dict[str, Any] | None = None, *, pause_window: int = 1_000, **fields: Any
) -> Site:
    """The model, with both vendors unless it is said otherwise."""
    vendors = VENDORS if vendors is None else vendors
    return Site(connection, models(**fields), vendors=vendors, pause_window=pause_window)


def issued_requests(site: Site, count: int, *, now: float = NOW) -> dict[str, LabelRequest]:
    """Requests for so many items, issued by a round of the leader; by request id."""
    site.take_in([record(i, message(i, payload={"picture": i})) for i in range(count)])
    round_(site, now=now)
    return sent(site)


def round_(site: Site, *, now: float) -> None:
    """One round of the leader."""
    monitor = site.monitor("m")
    monitor.refresh(now)
    monitor.ask(epoch=1, now=now)


def sent(site: Site) -> dict[str, LabelRequest]:
    """What waits to be published, by request id; the latest attempt alone."""
    requests = [LabelRequest.model_validate_json(text) for text in site.requests("m").read_outbox().values()]
    return {request.request_id: request for request in sorted(requests, key=lambda one: one.attempt)}


def opened(site: Site) -> dict[str, OpenRequest]:
    return site.reader("m").requests().open


def claims(site: Site) -> ClaimStore:
    return ClaimStore(site.connection, site.keys("m"))


def label(request: LabelRequest, signer: str | None, **changes: Any) -> Record:
    """A record with an answer, signed by one of the vendors or by nobody."""
    fields = {"request_id": request.request_id, "model": "m", "item_id": request.item_id, "true_class": "cat"}
    fields["time"] = datetime.fromtimestamp(NOW, UTC).isoformat()
    value = json.dumps({k: v for k, v in (fields | changes).items() if v is not ...}).encode()
    headers = [] if signer is None else sign(KEYS[signer].encode(), signer, value)
    return Record(next(OFFSETS), value, headers=headers)


def apply(site: Site, *records: Record, now: float = NOW + 1) -> list[str]:
    """Have the labels consumer take records; the reasons for which it refused some of them."""
    before = len(site.letters.kept)
    step = site.label_step()
    step.assign(0, 0)
    step.process(0, records, now)
    return site.letters.reasons[before:]


def other(vendor: str | None) -> str:
    return "bolt" if vendor == "acme" else "acme"


def claim_keys(site: Site) -> set[str]:
    """Names of the keys that hold claims, as they follow the model's hash tag."""
    client, start = site.connection.client, f"{site.connection.prefix}:{{m}}:"
    names = {key.decode().removeprefix(start) for key in client.scan_iter(f"{start}*", count=1_000)}
    return {name for name in names if name.startswith("claim")}
