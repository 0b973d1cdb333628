"""What the labelling page asks besides the calls of the vendor API."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import APIRouter, Request
from pydantic import Field

from service.config.vendors import VendorApiSettings
from service.serving.label_page.page import SESSION_PATH
from service.serving.label_page.sessions import Session
from service.serving.vendor_api.problems import Kind, Refused
from service.serving.vendor_api.schemas import Answer
from service.serving.vendor_api.service import VendorService


class SessionState(Answer):
    """The session of whoever asks, and what the page shows of the vendor's models."""

    vendor: str
    annotator: str = Field(description="empty if they gave no name")
    id: str = Field(description="of the session")
    lease_seconds: float = Field(description="how long claims last")
    most_claims: int = Field(description="maximum number of requests per claim")
    image_origins: Sequence[str] = Field(description="where images may be loaded from")
    interval_widths: dict[str, float | None] = Field(
        description="of the 95% interval of each model's accuracy; null until there are enough labels"
    )


def build_page_routes(
    service: Callable[[], VendorService],
    settings: VendorApiSettings,
    width: Callable[[str], float | None],
) -> APIRouter:
    """Routes behind the login; `width` gives that of a model's interval, as labellers may know it."""
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
            interval_widths={name: width(name) for name in service().claims.models_of(session.vendor)},
        )

    return routes
