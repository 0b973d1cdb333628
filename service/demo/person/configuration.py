"""The configuration of the demo that a person labels: that of the digits, and a team on the page."""

from __future__ import annotations

from typing import Any

from service.demo.configuration import WEAKEST_CAMERA, Places, configuration
from service.demo.desk import Desk
from service.demo.world import MODEL

FEWEST_LABELS = 10

_TICK_SECONDS = 2.5
"""Two of a window of drift. A person sees soon what a label changed."""

_MAX_IN_FLIGHT = 12
"""As many as the page's grid shows."""

_SPARE = 3
"""Times as many labels as are wanted may be requested: items can be skipped, and requests expire."""

_HISTORY_HOURS = 1.0


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
    return document | desk.settings
