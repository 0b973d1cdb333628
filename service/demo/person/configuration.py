"""The configuration of the demo that a person labels: that of the digits, and a team on the page."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any

from service.demo.configuration import WEAKEST_CAMERA, Places, configuration
from service.demo.servers import free_port
from service.demo.world import MODEL

TEAM = "you"
FEWEST_LABELS = 10
LABEL_PATH = "/label/"

_TICK_SECONDS = 2.5
"""Two of a window of drift. A person sees soon what a label changed."""

_MAX_IN_FLIGHT = 12
"""As many as the page's grid shows."""

_SPARE = 3
"""Times as many labels as are wanted may be requested: items can be skipped, and requests expire."""

_HISTORY_HOURS = 1.0
_SECRET_BYTES = 24


@dataclass(frozen=True)
class Desk:
    """Where the person labels, and the secrets of this run."""

    port: int = field(default_factory=free_port)
    token: str = field(default_factory=lambda: token_urlsafe(_SECRET_BYTES))
    label_key: str = field(default_factory=lambda: token_urlsafe(_SECRET_BYTES))

    @property
    def url(self) -> str:
        """Address of the labelling page."""
        return f"http://127.0.0.1:{self.port}{LABEL_PATH}"


def person_configuration(
    places: Places, desk: Desk, *, seconds: float, seed: int, labels: int
) -> dict[str, Any]:
    """The configuration for this many labels of one person.

    Windows and half-lives are those of a run of this many seconds. The only assessment looks for the weakest
    camera, as a person's labels are few.
    """
    document = configuration(places, seconds=seconds, seed=seed)
    model = document["models"][MODEL]
    weakest = model["assessments"][WEAKEST_CAMERA] | {
        "budget": {"labels": _SPARE * labels},
        "max_in_flight": _MAX_IN_FLIGHT,
    }
    # People take the time that they need.
    del weakest["lease_seconds"]
    model["assessments"] = {WEAKEST_CAMERA: weakest}
    document["http"]["history_hours"] = _HISTORY_HOURS
    document["schedule"]["tick_seconds"] = min(_TICK_SECONDS, document["schedule"]["tick_seconds"])
    team = {
        "token_sha256": [hashlib.sha256(desk.token.encode()).hexdigest()],
        "label_keys": [desk.label_key],
        "labelling_page": True,
    }
    return document | {"vendor_api": {"port": desk.port}, "vendors": {TEAM: team}}
