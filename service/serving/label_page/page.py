"""The labelling page's files, and how people log in and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from service.config.problem_words import JSON, described
from service.domain.messages import Name
from service.serving.label_page.sessions import Sessions, ended_cookie, is_same_origin
from service.serving.vendor_api.auth import TokenCheck
from service.serving.vendor_api.body_limits import BODY_SECONDS, Bodies
from service.serving.vendor_api.problems import Fault, Kind, Refused
from service.serving.vendor_api.schemas import Body
from service.serving.vendor_api.service import VendorService
from service.serving.web.guard import internal_error
from service.serving.web.pages import STATIC
from service.serving.web.static_files import content_security_policy, read_static_files, static_route

PAGE_PATH = "/label"
SESSION_PATH = f"{PAGE_PATH}/session"

_LOGIN_BYTES = 4_096
_SHARED = ("style.css", "icon.svg", "js/dom.js", "js/format.js")
"""Files of the status page that this one uses, too."""


class LoginBody(Body):
    """Who wants to label."""

    token: str = Field(min_length=1, max_length=1_024)
    annotator: Annotated[Name | None, Field(default=None)]


class LabelPage:
    """In front of the vendor API: serves the page to everybody, and makes sessions of valid tokens.

    Everything else goes to the API, which also takes calls of sessions. `service` raises `Refused` until
    Redis and Kafka have been reached.
    """

    def __init__(
        self,
        api: ASGIApp,
        *,
        tokens: TokenCheck,
        sessions: Sessions,
        service: Callable[[], VendorService],
        image_origins: Sequence[str],
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._api = api
        self._tokens = tokens
        self._sessions = sessions
        self._service = service
        policy = content_security_policy(image_origins)
        shared = read_static_files(STATIC)
        files = read_static_files(Path(__file__).with_name("static")) | {
            name: shared[name] for name in _SHARED
        }
        routes = [
            Route(PAGE_PATH, lambda _: RedirectResponse(f"{PAGE_PATH}/")),
            static_route(f"{PAGE_PATH}/", {"": files.pop("index.html")}, policy),
            static_route(f"{PAGE_PATH}/static/{{path:path}}", files, policy),
            Route(f"{PAGE_PATH}/login", self._log_in, methods=["POST"]),
            Route(f"{PAGE_PATH}/logout", self._log_out, methods=["POST"]),
        ]
        self._pages = Bodies(
            Starlette(routes=routes, exception_handlers={Refused: _refused}),
            longest=lambda _: _LOGIN_BYTES,
            ordinary=_LOGIN_BYTES,
            seconds=body_seconds,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and _is_of_page(scope["path"]):
            scope["state"]["vendor"] = ""
            await self._pages(scope, receive, send)
        elif scope["path"] == SESSION_PATH and self._sessions.find(scope) is None:
            # Whoever opens the page for the first time has tried no login.
            await Response(status_code=204)(scope, receive, send)
        else:
            await self._api(scope, receive, send)

    async def _log_in(self, request: Request) -> Response:
        if not is_same_origin(request.headers):
            raise Refused(Kind.NOT_FOUND)
        try:
            body = LoginBody.model_validate_json(await request.body())
        except ValidationError as error:
            faults = [Fault(at=at, problem=problem) for at, problem in described(error.errors(), JSON)]
            raise Refused(Kind.INVALID, errors=faults) from error
        token = self._tokens.check(body.token.strip(), request.scope)
        if token.vendor not in self._sessions.keys:
            raise Refused(Kind.NOT_FOUND)
        annotator = (body.annotator or "").strip()
        if not annotator and self._has_several_people(token.vendor):
            raise Refused(Kind.ANNOTATOR_NEEDED)
        session = self._sessions.begin(token.vendor, token.sha256, annotator)
        return Response(status_code=204, headers={"Set-Cookie": self._sessions.cookie(session)})

    async def _log_out(self, request: Request) -> Response:
        if not is_same_origin(request.headers):
            raise Refused(Kind.NOT_FOUND)
        return Response(status_code=204, headers={"Set-Cookie": ended_cookie()})

    def _has_several_people(self, vendor: str) -> bool:
        return any(model.several for model in self._service().claims.models_of(vendor).values())


def _is_of_page(path: str) -> bool:
    own = {PAGE_PATH, f"{PAGE_PATH}/", f"{PAGE_PATH}/login", f"{PAGE_PATH}/logout"}
    return path in own or path.startswith(f"{PAGE_PATH}/static/")


async def _refused(_: Request, error: Exception) -> Response:
    return error.response() if isinstance(error, Refused) else internal_error()
