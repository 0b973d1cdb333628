"""What the labelling page asks besides the calls of the vendor API."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from pydantic import Field

from service.config.vendors import VendorApiSettings
from service.serving.label_page.page import SESSION_PATH
from service.serving.label_page.sessions import Session
from service.serving.vendor_api.problems import Kind, Refused
from service.serving.vendor_api.schemas import Answer


class SessionState(Answer):
    """The session of whoever asks, and what the page needs to know."""

    vendor: str
    annotator: str = Field(description="empty if they gave no name")
    id: str = Field(description="of the session")
    lease_seconds: float = Field(description="how long claims last")
    most_claims: int = Field(description="maximum number of requests per claim")
    image_origins: Sequence[str] = Field(description="where images may be loaded from")


def build_page_routes(settings: VendorApiSettings) -> APIRouter:
    """Routes behind the login. None says anything about estimates, which change with the labels."""
    routes = APIRouter(include_in_schema=False)

    @routes.get(SESSION_PATH)
    def read_session(request: Request) -> SessionState:
        session: Session | None = request.state.session
        if session is None:
            raise Refused(Kind.NOT_FOUND)
        return SessionState(
            vendor=session.vendor,
            annotator=session.annotator,
            id=session.id,
            lease_seconds=settings.lease_seconds,
            most_claims=settings.most,
            image_origins=settings.image_origins,
        )

    return routes
