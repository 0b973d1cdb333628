"""Routes of the vendor API: claim, renew, release, answer and correct label requests over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Request, Response

from service.config.vendors import VendorApiSettings
from service.domain.messages import LabelKind, Name, RequestId
from service.serving.label_page.sessions import Session
from service.serving.vendor_api.labels import VendorLabel
from service.serving.vendor_api.long_poll import Waits
from service.serving.vendor_api.problems import Kind
from service.serving.vendor_api.reference import problems
from service.serving.vendor_api.schemas import (
    AnswerBody,
    ClaimBody,
    Claims,
    CorrectionBody,
    Labelled,
    ModelOfVendor,
    ModelsOfVendor,
    ReleaseBody,
    Released,
    RenewBody,
    Renewed,
    RetractionBody,
    SkipBody,
    Submitted,
)
from service.serving.vendor_api.service import VendorService
from service.store.claims import Claim

Service = Callable[[], VendorService]
"""Gives what serves vendors; raises `Refused` while Redis and Kafka have not been reached yet."""

ModelName = Annotated[Name, Path(description="name of a model")]
Requested = Annotated[RequestId, Path(description="id of a label request")]

_OPEN = (Kind.NOT_FOUND, Kind.CLAIM_LOST, Kind.CLAIM_ENDED, Kind.ALREADY_SUBMITTED)
_ANSWERED = (
    *(*_OPEN, Kind.ANSWERED_DIFFERENTLY, Kind.UNKNOWN_CLASS),
    *(Kind.SAME_ANNOTATOR, Kind.ANNOTATOR_NEEDED),
)
_CLOSED = (Kind.NOT_FOUND, Kind.NOT_ANSWERED, Kind.TOO_MANY_REVISIONS, Kind.REQUEST_EXPIRED)
_OF_REQUEST = "/models/{model}/requests/{request_id}"


def vendor_of(request: Request) -> str:
    """The vendor that makes the call."""
    vendor: str = request.state.vendor
    return vendor


def _holder_of(request: Request) -> str:
    """The session that makes the call; empty if it was made with a token."""
    session: Session | None = request.state.session
    return "" if session is None else session.id


def _annotator_of(request: Request, given: str | None) -> str | None:
    """Who labels: in a session the name given at login, or none, whatever the call says."""
    session: Session | None = request.state.session
    return given if session is None else session.annotator or None


def build_routes(service: Service, waits: Waits, settings: VendorApiSettings) -> APIRouter:
    """The routes of the API, without those of Label Studio."""
    routes = APIRouter()
    _add_claims(routes, service, waits, settings)
    _add_leases(routes, service, settings)
    _add_answers(routes, service)
    return routes


# Plain functions run in a thread pool, where they may wait for Redis and Kafka.
def _add_claims(routes: APIRouter, service: Service, waits: Waits, settings: VendorApiSettings) -> None:
    @routes.get("/models", summary="Your models", responses=problems())
    def read_models(request: Request) -> ModelsOfVendor:
        vendor, claims = vendor_of(request), service().claims
        waiting = claims.count_claimable(vendor)
        return ModelsOfVendor(
            models=[
                ModelOfVendor(model=name, classes=list(model.classes), waiting=waiting[name])
                for name, model in claims.models_of(vendor).items()
            ]
        )

    @routes.post(
        "/claims",
        summary="Claim requests, or wait for them",
        responses=problems(Kind.NOT_FOUND, Kind.TOO_MANY_WAITS, changes=True),
        response_model=Claims,
    )
    async def claim(request: Request, body: ClaimBody) -> Response:
        vendor, holder, claims = vendor_of(request), _holder_of(request), service().claims
        annotator = _annotator_of(request, body.annotator)
        most = min(body.most, settings.most)
        claim_ids = claims.claim_ids(vendor, most=most, key=request.state.idempotency_key)
        lease_seconds = body.lease_seconds or settings.lease_seconds

        def take_claims() -> list[tuple[str, Claim]]:
            if request.state.is_repeated:
                return claims.list_claims_by_key(
                    vendor, most=most, key=request.state.idempotency_key, holder=holder
                )
            return claims.claim(
                vendor,
                body.models,
                claim_ids,
                lease_seconds=lease_seconds,
                annotator=annotator,
                holder=holder,
            )

        seconds = 0.0 if request.state.is_repeated else min(body.wait_seconds, settings.wait_seconds)
        claimed = await waits.until(take_claims, request, vendor=vendor, seconds=seconds)
        request.state.no_store = True
        return _claims(claimed)

    @routes.get("/claims", summary="Your current claims", responses=problems(), response_model=Claims)
    def read_claims(request: Request) -> Response:
        return _claims(service().claims.list_claims(vendor_of(request), holder=_holder_of(request)))


def _add_leases(routes: APIRouter, service: Service, settings: VendorApiSettings) -> None:
    @routes.post(
        f"{_OF_REQUEST}/renew",
        summary="Renew a claim: restart its lease",
        responses=problems(*_OPEN, changes=True),
    )
    def renew(request: Request, model: ModelName, request_id: Requested, body: RenewBody) -> Renewed:
        lease_seconds = body.lease_seconds or settings.lease_seconds
        until = service().claims.renew(
            vendor_of(request), model, request_id, body.claim_id, lease_seconds=lease_seconds
        )
        return Renewed(leased_until=until)

    @routes.post(
        f"{_OF_REQUEST}/release",
        summary="Release a claim",
        responses=problems(*_OPEN, changes=True),
    )
    def release(request: Request, model: ModelName, request_id: Requested, body: ReleaseBody) -> Released:
        service().claims.release(vendor_of(request), model, request_id, body.claim_id)
        return Released()


def _add_answers(routes: APIRouter, service: Service) -> None:
    @routes.post(
        f"{_OF_REQUEST}/answer",
        summary="Answer a claimed request",
        status_code=202,
        responses=problems(*_ANSWERED, changes=True),
    )
    def answer(request: Request, model: ModelName, request_id: Requested, body: AnswerBody) -> Submitted:
        service().answer(
            vendor_of(request), body.claim_id, _label(request, model, request_id, "answer", body)
        )
        return Submitted()

    @routes.post(
        f"{_OF_REQUEST}/skip",
        summary="Skip a claimed request that cannot be labelled",
        status_code=202,
        responses=problems(*_OPEN, Kind.ANSWERED_DIFFERENTLY, Kind.SAME_ANNOTATOR, changes=True),
    )
    def skip(request: Request, model: ModelName, request_id: Requested, body: SkipBody) -> Submitted:
        service().answer(vendor_of(request), body.claim_id, _label(request, model, request_id, "skip", body))
        return Submitted()

    @routes.post(
        f"{_OF_REQUEST}/correction",
        summary="Correct an answer",
        status_code=202,
        responses=problems(*_CLOSED, Kind.UNKNOWN_CLASS, Kind.ANNOTATOR_NEEDED, changes=True),
    )
    def correct(request: Request, model: ModelName, request_id: Requested, body: CorrectionBody) -> Submitted:
        service().revise(vendor_of(request), _label(request, model, request_id, "correction", body))
        return Submitted()

    @routes.post(
        f"{_OF_REQUEST}/retraction",
        summary="Retract an answer",
        status_code=202,
        responses=problems(*_CLOSED, changes=True),
    )
    def retract(request: Request, model: ModelName, request_id: Requested, body: RetractionBody) -> Submitted:
        service().revise(vendor_of(request), _label(request, model, request_id, "retraction", body))
        return Submitted()


def _label(request: Request, model: str, request_id: str, kind: LabelKind, body: Labelled) -> VendorLabel:
    fields = body.model_dump(exclude={"claim_id"}) | {"annotator": _annotator_of(request, body.annotator)}
    return VendorLabel(model, request_id, kind, **fields)


def _claims(held: Sequence[tuple[str, Claim]]) -> Response:
    claims = [
        {
            "claim_id": claim.claim_id,
            "model": model,
            "request_id": claim.request_id,
            "state": claim.state,
            "leased_until": datetime.fromtimestamp(claim.leased_until, UTC),
            # Byte for byte as it is published.
            "request": msgspec.Raw(claim.message),
        }
        for model, claim in held
    ]
    return Response(msgspec.json.encode({"claims": claims}), media_type="application/json")
