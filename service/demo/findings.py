"""When Credence found what, from its metrics."""

from __future__ import annotations

from service.demo.configuration import MIN_ACCURACY, WEAKEST_CAMERA
from service.demo.reading import Reading
from service.demo.world import CAMERAS, DEGRADED_CAMERA

CERTAIN = 0.9  # probability above which the demo says that Credence has found something


class Findings:
    """Remembers when each thing was first found, in seconds since the epoch, and lines to show."""

    def __init__(self) -> None:
        self.drifted_at: float | None = None  # the degraded camera's traffic has drifted, without labels
        self.weakest_at: float | None = None  # it is the weakest camera
        self.below_at: float | None = None  # it is below the minimum accuracy
        self.confirmed_at: float | None = None  # evidence confirms that, or that it has declined
        self.lines: list[tuple[float, str]] = []
        self._is_answered, self._is_degraded = False, False

    def watch(self, reading: Reading, degraded_at: float | None) -> None:
        """Read the newest metrics; estimates from before the camera degraded find nothing."""
        now, key = reading.time, ("camera", DEGRADED_CAMERA)
        if reading.events.get("answered") and not self._is_answered:
            self._is_answered = True
            self.lines.append((now, "the first label came back and is in the metrics"))
        if degraded_at is None:
            return
        if not self._is_degraded:
            self._is_degraded = True
            self.lines.append((degraded_at, f"{DEGRADED_CAMERA} degraded (the demo knows)"))
        if reading.snapshot_time < degraded_at:
            return
        if self.drifted_at is None and (score := reading.drifted.get(key)) is not None:
            self.drifted_at = now
            self._find(now, f"{DEGRADED_CAMERA} drifted, without labels (drift score {score:.2f})")
        if self.weakest_at is None and is_weakest(reading):
            self.weakest_at = now
            probability = weakest_probability(reading)
            self._find(now, f"{DEGRADED_CAMERA} is the weakest camera with probability {probability:.2f}")
        below = reading.groups[key].below if key in reading.groups else 0.0
        if self.below_at is None and below > CERTAIN:
            self.below_at = now
            self._find(now, f"{DEGRADED_CAMERA} fell below {MIN_ACCURACY:.0%} with probability {below:.2f}")
        if self.confirmed_at is None and key in reading.confirmed:
            self.confirmed_at = now
            self._find(now, f"evidence confirms that {DEGRADED_CAMERA} got worse")

    def _find(self, moment: float, line: str) -> None:
        self.lines.append((moment, f"{line} (Credence found)"))


def weakest_probability(reading: Reading) -> float:
    """Probability that the degraded camera is the weakest."""
    return reading.extremes.get((WEAKEST_CAMERA, DEGRADED_CAMERA), 0.0)


def is_weakest(reading: Reading) -> bool:
    """Whether the degraded camera is the weakest with certainty, and has a lower mean than the others."""
    means = {camera: reading.groups.get(("camera", camera)) for camera in CAMERAS}
    degraded = means.pop(DEGRADED_CAMERA)
    return (
        weakest_probability(reading) > CERTAIN
        and degraded is not None
        and all(other is not None and degraded.mean < other.mean for other in means.values())
    )
