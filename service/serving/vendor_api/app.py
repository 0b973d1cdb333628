"""The vendor API as an application: its middleware, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.config.problem_words import JSON, described
from service.config.vendors import VendorApiSettings, VendorSettings
from service.domain.errors import Unavailable
from service.serving.label_page.page import LabelPage
from service.serving.label_page.routes import build_page_routes
from service.serving.label_page.sessions import Sessions
from service.serving.vendor_api.api import Service, build_routes
from service.serving.vendor_api.auth import Login, TokenCheck
from service.serving.vendor_api.body_limits import BODY_SECONDS, Bodies
from service.serving.vendor_api.idempotency import Idempotency, log_unserved
from service.serving.vendor_api.label_studio import ANNOTATIONS_PATH, build_label_studio_routes
from service.serving.vendor_api.long_poll import Waits
from service.serving.vendor_api.problems import GONE_STATUS, Fault, Kind, Refused, unavailable
from service.serving.vendor_api.reference import describe
from service.serving.vendor_api.service import VendorService
from service.serving.web.guard import internal_error, route_of
from service.telemetry.instruments import VendorMetrics

API_PATH = "/vendor/v1"
API_VERSION = "1.0.0"

_MOST_FAULTS = 20

_DESCRIPTION = """\
Label requests for vendors without Kafka: claim requests, hold them while people label them, and answer.

A claim is yours until its lease ends. Renew it while work continues, or release it. An answer is accepted
once Kafka has it. If anything fails, every call is safe to repeat. With an `Idempotency-Key` a repeated call
also gets the same response.
"""

_OF_STATUS = {404: Kind.NOT_FOUND, 405: Kind.METHOD_NOT_ALLOWED}


def vendor_app(
    vendors: Mapping[str, VendorSettings],
    settings: VendorApiSettings,
    *,
    service: Callable[[], VendorService | None],
    metrics: VendorMetrics,
    clock: Callable[[], float],
    stopping: Callable[[], bool],
    body_seconds: float = BODY_SECONDS,
) -> ASGIApp:
    """The application of the vendor API's listener, with the labelling page if a vendor uses it.

    `service` gives None until Redis and Kafka have been reached. A body may take `body_seconds` to arrive.
    """

    def reached() -> VendorService:
        if (found := service()) is None:
            raise unavailable()
        return found

    def longest(path: str) -> int:
        return settings.annotations_bytes if path.endswith(ANNOTATIONS_PATH) else settings.body_bytes

    waits = Waits(
        most=settings.waits,
        stopping=stopping,
        note=lambda vendor, count: metrics.waits.labels(vendor).set(count),
    )
    api = build_vendor_api(settings, service=reached, waits=waits)
    tokens = TokenCheck({name: vendor.token_sha256 for name, vendor in vendors.items()}, metrics)
    in_browser = {name: vendor for name, vendor in vendors.items() if vendor.labelling_page}
    sessions = Sessions(
        keys={name: vendor.label_key_bytes() for name, vendor in in_browser.items()},
        tokens={name: vendor.token_sha256 for name, vendor in in_browser.items()},
        seconds=3_600 * settings.session_hours,
        clock=clock,
    )
    bodies = Bodies(
        Idempotency(api, records=lambda: reached().calls),
        longest=longest,
        ordinary=settings.body_bytes,
        seconds=body_seconds,
    )
    login = Login(
        bodies,
        tokens=tokens,
        sessions=sessions,
        per_second=settings.requests_per_second,
        burst=settings.burst,
    )
    if not in_browser:
        return CountedCalls(login, metrics)
    api.include_router(build_page_routes(settings))
    page = LabelPage(
        login,
        tokens=tokens,
        sessions=sessions,
        service=reached,
        image_origins=settings.image_origins,
        body_seconds=body_seconds,
    )
    return CountedCalls(page, metrics)


def build_vendor_api(settings: VendorApiSettings, *, service: Service, waits: Waits) -> FastAPI:
    """The API behind logins and limits."""
    api = new_api("Credence vendor API", API_VERSION, _DESCRIPTION, API_PATH)
    api.include_router(build_routes(service, waits, settings), prefix=API_PATH)
    api.include_router(build_label_studio_routes(service, settings), prefix=API_PATH)
    return api


def new_api(title: str, version: str, description: str, path: str, *bodies: type[BaseModel]) -> FastAPI:
    """An API below a path, without routes yet, that answers errors with problem details.

    Its OpenAPI document has the schemas of `bodies` too, which no route declares.
    """
    # No interactive documentation: it would load its scripts from elsewhere.
    api = FastAPI(
        title=title,
        version=version,
        description=description,
        servers=[{"url": "/"}],
        openapi_url=f"{path}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )

    def document() -> dict[str, Any]:
        if api.openapi_schema is None:
            api.openapi_schema = describe(api, *bodies)
        return api.openapi_schema

    _handle_errors(api)
    api.openapi = document  # type: ignore[method-assign]  # as FastAPI's documentation says
    return api


def _handle_errors(api: FastAPI) -> None:
    """Answer with problem details whatever is wrong with a call, or with what it needs."""

    @api.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> Response:
        return error.response()

    @api.exception_handler(Unavailable)
    async def unserved(request: Request, error: Unavailable) -> Response:
        log_unserved(request.scope, error)
        return unavailable().response()

    @api.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=GONE_STATUS)

    @api.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        if any(each["type"] == "json_invalid" for each in error.errors()):
            return Refused(Kind.MALFORMED).response()
        faults = [Fault(at=at, problem=problem) for at, problem in described(error.errors(), JSON)]
        return Refused(Kind.INVALID, errors=faults[:_MOST_FAULTS]).response()

    @api.exception_handler(HTTPException)
    async def of_status(_: Request, error: HTTPException) -> Response:
        kind = _OF_STATUS.get(error.status_code, Kind.MALFORMED)
        return Refused(kind, headers=error.headers).response()

    @api.exception_handler(Exception)
    async def unexpected(_: Request, __: Exception) -> Response:
        return internal_error()


class CountedCalls:
    """Counts calls by vendor, route and class of status."""

    def __init__(self, app: ASGIApp, metrics: VendorMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope.setdefault("state", {})

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                vendor, route = scope["state"].get("vendor", ""), route_of(scope).removeprefix(API_PATH)
                self._metrics.calls.labels(vendor, route, f"{message['status'] // 100}xx").inc()
            await send(message)

        await self._app(scope, receive, count)
