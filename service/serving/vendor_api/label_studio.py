"""Label Studio's side of the vendor API: its configuration, tasks, exports and webhooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from service.config.vendors import VendorApiSettings
from service.domain.label_studio import MOST_ENTRIES, NotUnderstood, TooMany, read_export, read_hook
from service.domain.label_studio_tasks import Shown, kind_of, labelling_configuration, text_of
from service.domain.messages import LabelRequest
from service.serving.vendor_api.api import ModelName, Service, vendor_of
from service.serving.vendor_api.label_studio_import import AnnotationImport
from service.serving.vendor_api.problems import Kind, Refused
from service.serving.vendor_api.reference import problems
from service.serving.vendor_api.schemas import (
    LONGEST_LEASE_SECONDS,
    Body,
    Import,
    LeaseSeconds,
    Task,
    TaskData,
)
from service.store.claims import Claim

ANNOTATIONS_PATH = "/label-studio/annotations"
"""How the path of an import ends: its body may be longer than others."""

Content = TypeVar("Content")


def _json_body(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "description": description, "content": content}}


_EXPORT = _json_body(
    "an export of Label Studio, `JSON` or `JSON_MIN`",
    {"type": "array", "maxItems": MOST_ENTRIES, "items": {"type": "object"}},
)
_HOOK = _json_body(
    "a webhook event of Label Studio",
    {"type": "object", "required": ["action"], "properties": {"action": {"type": "string"}}},
)


class TasksBody(Body):
    """How many requests to claim as tasks."""

    most: int = Field(
        default=1,
        strict=True,
        ge=1,
        le=1_000,
        description="maximum number of tasks; the configuration may allow fewer",
    )
    lease_seconds: LeaseSeconds


def build_label_studio_routes(service: Service, settings: VendorApiSettings) -> APIRouter:
    """The routes of Label Studio."""
    routes = APIRouter(prefix="/models/{model}/label-studio", tags=["Label Studio"])

    @routes.get(
        "/config",
        summary="A labelling configuration",
        response_class=Response,
        responses={
            200: {"content": {"application/xml": {"schema": {"type": "string"}}}},
            **problems(Kind.NOT_FOUND),
        },
    )
    def read_configuration(
        request: Request,
        model: ModelName,
        shown: Annotated[
            Literal["auto", "image", "audio", "video", "text"],
            Query(description="how items are shown; `auto` depends on a request that you hold, else text"),
        ] = "auto",
    ) -> Response:
        vendor, claims = vendor_of(request), service().claims
        classes = claims.model_of(vendor, model).classes
        kind: Shown = _claimed_kind(claims.list_claims(vendor), model) if shown == "auto" else shown
        return Response(labelling_configuration(classes, kind), media_type="application/xml")

    @routes.post(
        "/tasks",
        summary="Claim requests as tasks for Label Studio",
        response_model_exclude_none=True,
        responses=problems(Kind.NOT_FOUND, changes=True),
    )
    def claim_tasks(request: Request, model: ModelName, body: TasksBody) -> list[Task]:
        vendor, claims = vendor_of(request), service().claims
        claims.model_of(vendor, model)
        most = min(body.most, settings.most)
        key = request.state.idempotency_key
        claim_ids = claims.claim_ids(vendor, most=most, key=key)
        if request.state.is_repeated:
            claimed = claims.list_claims_by_key(vendor, most=most, key=key)
        else:
            # Nobody renews for a project of Label Studio: held until the request's deadline.
            lease_seconds = body.lease_seconds or LONGEST_LEASE_SECONDS
            claimed = claims.claim(vendor, [model], claim_ids, lease_seconds=lease_seconds)
        request.state.no_store = True
        return [_task(model, claim) for _, claim in claimed]

    @routes.post(
        "/annotations",
        summary="Import annotations",
        responses=problems(Kind.NOT_FOUND, Kind.TOO_MANY_ENTRIES, Kind.TOO_MANY_IMPORTS, changes=True),
        openapi_extra=_EXPORT,
    )
    def import_annotations(request: Request, model: ModelName) -> Import:
        imports = AnnotationImport(service(), vendor_of(request), model)
        return Import(tasks=imports.take(_content(read_export, request)))

    @routes.post(
        "/webhook",
        summary="Receive Label Studio's webhook",
        responses=problems(Kind.NOT_FOUND, Kind.TOO_MANY_ENTRIES, changes=True),
        openapi_extra=_HOOK,
    )
    def take_hook(request: Request, model: ModelName) -> Import:
        imports = AnnotationImport(service(), vendor_of(request), model)
        hook = _content(read_hook, request)
        return Import(tasks=[*imports.take(hook.annotations), *imports.retract(hook.deleted)])

    return routes


def _content(read: Callable[[bytes], Content], request: Request) -> Content:
    """The content of the body.

    Raises:
        Refused: it is in no format of Label Studio, or has too many entries.
    """
    try:
        return read(request.state.body)
    except NotUnderstood as error:
        raise Refused(Kind.INVALID) from error
    except TooMany as error:
        raise Refused(Kind.TOO_MANY_ENTRIES) from error


def _task(model: str, claim: Claim) -> Task:
    request = LabelRequest.model_validate_json(claim.message)
    return Task(
        data=TaskData(
            request_id=claim.request_id,
            claim_id=claim.claim_id,
            model=model,
            item_id=request.item_id,
            payload=text_of(request.payload, request.payload_uri),
            prediction=None if request.prediction is None else request.prediction.model_dump(),
        )
    )


def _claimed_kind(held: list[tuple[str, Claim]], model: str) -> Shown:
    for name, claim in held:
        if name == model:
            request = LabelRequest.model_validate_json(claim.message)
            return kind_of(request.payload, request.payload_uri)
    return "text"
