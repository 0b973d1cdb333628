"""Claims of label requests by vendors: list, claim, renew, release."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from service.serving.vendor_api.problems import Kind, Refused
from service.store.claims import Claim, ClaimChange, ClaimStatus, ClaimStore, VendorRequest
from service.store.request_registry import RequestRegistry
from service.telemetry.instruments import VendorMetrics

REFUSALS: dict[ClaimStatus, Kind] = {
    "unknown": Kind.NOT_FOUND,
    "lost": Kind.CLAIM_LOST,
    "expired": Kind.CLAIM_ENDED,
    "submitted": Kind.ALREADY_SUBMITTED,
}


@dataclass(frozen=True)
class ModelRequests:
    """The label requests of one model, its classes in order, and the vendors that may label it."""

    classes: Sequence[str]
    vendors: frozenset[str]
    claims: ClaimStore
    registry: RequestRegistry
    several: bool = False  # whether several people may label an item


class Claims:
    """Claims of all vendors; a vendor sees only the models that it labels.

    Calls block on Redis, so call them from threads that may block. They raise `Refused` if a vendor may not
    do this, and `Unavailable` if it cannot be done now; then it is safe to repeat.

    The first of a vendor's `claim_keys` makes the ids of claims; ids of all of them are recognized.
    """

    def __init__(
        self,
        models: Mapping[str, ModelRequests],
        *,
        claim_keys: Mapping[str, Sequence[bytes]],
        metrics: VendorMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._models = models
        self._claim_keys = claim_keys
        self._metrics = metrics
        self._clock = clock

    def models_of(self, vendor: str) -> dict[str, ModelRequests]:
        """The models that a vendor labels."""
        return {name: of for name, of in self._models.items() if vendor in of.vendors}

    def model_of(self, vendor: str, model: str) -> ModelRequests:
        """A model that the vendor labels."""
        of = self._models.get(model)
        if of is None or vendor not in of.vendors:
            raise Refused(Kind.NOT_FOUND)
        return of

    def count_claimable(self, vendor: str) -> dict[str, int]:
        """Number of requests that can be claimed now, by model."""
        now = self._clock()
        return {
            name: of.claims.count_claimable(vendor, now=now) for name, of in self.models_of(vendor).items()
        }

    def claim_ids(self, vendor: str, *, most: int, key: str | None) -> list[str]:
        """New ids for claims; the same idempotency key gives the same ids."""
        if key is None:
            return [secrets.token_urlsafe(18) for _ in range(most)]
        return _claim_ids(self._claim_keys[vendor][0], key, most)

    def claim(
        self,
        vendor: str,
        models: Sequence[str] | None,
        claim_ids: Sequence[str],
        *,
        lease_seconds: float,
        annotator: str | None = None,
        holder: str = "",
    ) -> list[tuple[str, Claim]]:
        """Claim as many requests as there are ids, of these models or of all; each with its model's name.

        None whose item the annotator has labelled before. `holder` is the session that the claims belong to.
        """
        now = self._clock()
        chosen = {name: self.model_of(vendor, name) for name in models} if models else self.models_of(vendor)
        claimed: list[tuple[str, Claim]] = []
        for name, of in chosen.items():
            ids = [_of_model(claim_id, name, holder) for claim_id in claim_ids[len(claimed) :]]
            found = of.claims.claim(
                vendor, claim_ids=ids, lease_seconds=lease_seconds, now=now, annotator=annotator or ""
            )
            self._metrics.claims.labels(vendor, name).inc(len(found))
            claimed += [(name, claim) for claim in found]
        return claimed

    def list_claims_by_key(
        self, vendor: str, *, most: int, key: str, holder: str = ""
    ) -> list[tuple[str, Claim]]:
        """Current claims that the vendor, or one of its sessions, made with this idempotency key."""
        claim_ids = [each for secret in self._claim_keys[vendor] for each in _claim_ids(secret, key, most)]
        of_models = {
            name: {_of_model(each, name, holder) for each in claim_ids} for name in self.models_of(vendor)
        }
        return [
            (name, claim) for name, claim in self.list_claims(vendor) if claim.claim_id in of_models[name]
        ]

    def list_claims(self, vendor: str, *, holder: str = "") -> list[tuple[str, Claim]]:
        """Current claims of the vendor, or of one of its sessions alone, each with the name of its model."""
        now = self._clock()
        return [
            (name, claim)
            for name, of in self.models_of(vendor).items()
            for claim in of.claims.list_claims(vendor, now=now)
            if claim.claim_id.startswith(_prefix(holder))
        ]

    def renew(
        self, vendor: str, model: str, request_id: str, claim_id: str, *, lease_seconds: float
    ) -> datetime:
        """Restart a lease; returns when it ends."""
        claims = self.model_of(vendor, model).claims
        changed = claims.renew(vendor, request_id, claim_id, lease_seconds=lease_seconds, now=self._clock())
        check(changed)
        return datetime.fromtimestamp(changed.leased_until, UTC)

    def release(self, vendor: str, model: str, request_id: str, claim_id: str) -> None:
        """Release a claim."""
        claims = self.model_of(vendor, model).claims
        check(claims.release(vendor, request_id, claim_id, now=self._clock()))

    def find(self, vendor: str, model: str, request_id: str) -> VendorRequest | None:
        """An open request of the vendor."""
        return self.model_of(vendor, model).claims.find(vendor, request_id, now=self._clock())


def _claim_ids(secret: bytes, key: str, most: int) -> list[str]:
    of_key = hmac.digest(secret, b"claims\n" + key.encode(), "sha256")
    return [hmac.digest(of_key, str(number).encode(), "sha256")[:18].hex() for number in range(most)]


def _of_model(claim_id: str, model: str, holder: str) -> str:
    """A claim id of this model alone: one call may look for requests of several models with the same ids."""
    return _prefix(holder) + hashlib.blake2b(f"{claim_id}\n{model}".encode(), digest_size=18).hexdigest()


def _prefix(holder: str) -> str:
    return f"{holder}." if holder else ""


def check(changed: ClaimChange) -> None:
    """Raise `Refused` if a change of a claim was not made."""
    if changed.status != "ok":
        raise Refused(REFUSALS[changed.status])
