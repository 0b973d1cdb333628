"""When Credence found what: a pure watcher of its readings."""

from __future__ import annotations

from service.demo.configuration import MIN_ACCURACY, WEAKEST_CAMERA
from service.demo.reading import Reading
from service.demo.world import CAMERAS, DEGRADED_CAMERA

CERTAIN = 0.9
"""Probability above which the demo says that Credence has found something."""


class Findings:
    """Remembers when each thing was first found.

    Attributes:
        drifted_at: when it was known that the degraded camera's traffic has drifted, without labels, seconds
            since the epoch.
        weakest_at: when the degraded camera was known to be the weakest, seconds since the epoch.
        below_at: when it was known to be below the minimum accuracy, seconds since the epoch.
        confirmed_at: when evidence confirmed that it is, or has declined, seconds since the epoch.
        lines: what changed, to be shown, with seconds since the epoch.
    """

    def __init__(self) -> None:
        self.drifted_at: float | None = None
        self.weakest_at: float | None = None
        self.below_at: float | None = None
        self.confirmed_at: float | None = None
        self.lines: list[tuple[float, str]] = []
        self._has_seen: set[str] = set()

    def watch(self, reading: Reading, degraded_at: float | None) -> None:
        """Look at one reading.

        Args:
            reading: the newest.
            degraded_at: when the camera got worse, as the demo knows; beliefs from before find nothing.
        """
        if reading.events.get("answered"):
            self._say_once("answered", reading.time, "the first label came back and is in the metrics")
        if degraded_at is None:
            return
        self._say_once("degraded", degraded_at, f"{DEGRADED_CAMERA} degraded (the demo knows)")
        if reading.snapshot_time < degraded_at:
            return
        distance = reading.drifted.get(("camera", DEGRADED_CAMERA))
        if self.drifted_at is None and distance is not None:
            self.drifted_at = reading.time
            self._say_once(
                "drifted",
                reading.time,
                f"{DEGRADED_CAMERA} has drifted from its reference, surely by {distance:.2f} "
                "(Credence found, without labels)",
            )
        probability = weakest_probability(reading)
        if self.weakest_at is None and is_weakest(reading):
            self.weakest_at = reading.time
            self._say_once(
                "weakest",
                reading.time,
                f"{DEGRADED_CAMERA} is the weakest camera with probability {probability:.2f} "
                "(Credence found)",
            )
        camera = reading.groups.get(("camera", DEGRADED_CAMERA))
        if self.below_at is None and camera is not None and camera.below > CERTAIN:
            self.below_at = reading.time
            self._say_once(
                "below",
                reading.time,
                f"{DEGRADED_CAMERA} fell below {MIN_ACCURACY:.0%} with probability {camera.below:.2f} "
                "(Credence found)",
            )

        if self.confirmed_at is None and ("camera", DEGRADED_CAMERA) in reading.confirmed:
            self.confirmed_at = reading.time
            self._say_once(
                "confirmed",
                reading.time,
                f"evidence confirms that {DEGRADED_CAMERA} has got worse (Credence found)",
            )

    def _say_once(self, what: str, moment: float, line: str) -> None:
        if what not in self._has_seen:
            self._has_seen.add(what)
            self.lines.append((moment, line))


def weakest_probability(reading: Reading) -> float:
    """Probability that the degraded camera is the weakest."""
    return reading.extremes.get((WEAKEST_CAMERA, DEGRADED_CAMERA), 0.0)


def is_weakest(reading: Reading) -> bool:
    """Whether the degraded camera is known to be the weakest, and looks weaker than the others."""
    means = {camera: reading.groups.get(("camera", camera)) for camera in CAMERAS}
    degraded = means.pop(DEGRADED_CAMERA)
    return (
        weakest_probability(reading) > CERTAIN
        and degraded is not None
        and all(other is not None and degraded.mean < other.mean for other in means.values())
    )
