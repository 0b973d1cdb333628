"""The story of a run: one line for each event, when it happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from service.demo.configuration import MIN_ACCURACY, WEAKEST_CAMERA
from service.demo.journal import History
from service.demo.metrics import CERTAIN, Findings, GroupReading, Reading, weakest_probability
from service.demo.world import CAMERAS, DEGRADED_CAMERA, RATE

DEMO, CREDENCE, PEOPLE, YOU = "demo", "Credence", "people", "you"
"""Who does or finds something. What the demo does, Credence has to find out."""

_ALL, _DEGRADED = ("all", "all"), ("camera", DEGRADED_CAMERA)
RECOVERY = "recovery"
"""The chapter that ends a run with a repair."""

_MOVED = 0.2
"""Requests have moved if the probability that the next one is for the degraded camera rose by this much."""


@dataclass(frozen=True)
class Event:
    """Something that happened once; its time is in seconds since the epoch."""

    time: float
    actor: str
    text: str

    def line(self, streaming_at: float | None) -> str:
        """The event in one line, with the seconds since the stream began."""
        return f"{self.time - (streaming_at or self.time):5.1f} s  {self.actor:<8}  {self.text}"


@dataclass(frozen=True)
class Scene:
    """What is known at one moment; times are in seconds since the epoch."""

    reading: Reading
    findings: Findings
    first: Reading  # the first one with estimates
    before: Reading  # the last one with estimates from before the camera degraded
    streaming_at: float
    degraded_at: float | None
    repaired_at: float | None

    @property
    def is_repaired(self) -> bool:
        """Whether the estimates are of the time since the camera was repaired."""
        return self.repaired_at is not None and self.reading.snapshot_time >= self.repaired_at

    @property
    def labels(self) -> int:
        """Answers in the metrics."""
        return self.reading.events.get("answered", 0)


@dataclass
class Story:
    """Gathers the events of a run, in the order in which they were noticed.

    Attributes:
        people: who gives the labels.
    """

    people: str = PEOPLE
    events: list[Event] = field(default_factory=list)
    first: Reading | None = None  # the first reading with estimates
    _before: Reading | None = None
    _reported: int = 0
    _chapters: set[str] = field(default_factory=set)

    def watch(self, reading: Reading, findings: Findings, history: History) -> None:
        """Read the newest metrics, once the findings have."""
        streaming_at, degraded_at, repaired_at = (
            history.streaming_at,
            history.degraded_at,
            history.repaired_at,
        )
        if streaming_at is None:
            return
        for time, done in ((streaming_at, _START), (degraded_at, _DEGRADATION), (repaired_at, _REPAIR)):
            if time is not None:
                self._add(done, time, DEMO, done)
        if not reading.groups.keys() >= {_ALL, _DEGRADED}:
            return
        self.first = self.first or reading
        if degraded_at is None or reading.snapshot_time < degraded_at:
            self._before = reading
        before = self._before or self.first
        scene = Scene(reading, findings, self.first, before, streaming_at, degraded_at, repaired_at)
        for name, (actor, tell) in _CHAPTERS.items():
            if name not in self._chapters and (text := tell(scene)) is not None:
                self._add(name, reading.time, self.people if actor == PEOPLE else actor, text)

    def new_events(self) -> list[Event]:
        """The events since the last call."""
        new = self.events[self._reported :]
        self._reported = len(self.events)
        return new

    def has(self, chapter: str) -> bool:
        """Whether a chapter has been told."""
        return chapter in self._chapters

    def _add(self, chapter: str, time: float, actor: str, text: str) -> None:
        if chapter not in self._chapters:
            self._chapters.add(chapter)
            self.events.append(Event(time, actor, text))


_START = f"streams {RATE} predictions a second: handwritten digits, from the cameras {' and '.join(CAMERAS)}"
_DEGRADATION = f"degrades {DEGRADED_CAMERA} with noise and blur; Credence does not know it"

_REPAIR = f"repairs {DEGRADED_CAMERA}; Credence does not know it"


def _first(scene: Scene) -> str | None:
    labels = "before any label" if not scene.labels else f"from {scene.labels} labels"
    return f"estimates the accuracy {labels}: {interval(scene.reading.groups[_ALL])}"


def _request(scene: Scene) -> str | None:
    return "requests the first labels" if scene.reading.events.get("issued") else None


def _label(scene: Scene) -> str | None:
    return "gave the first label; the metrics count it" if scene.labels else None


def _half(scene: Scene) -> str | None:
    groups = (reading.groups[_ALL] for reading in (scene.reading, scene.first))
    now, first = (100 * (group.upper - group.lower) for group in groups)
    if not scene.labels or now > first / 2:
        return None
    estimate = interval(scene.reading.groups[_ALL])
    return f"narrows the interval from {first:.0f} to {now:.0f} points with {scene.labels} labels: {estimate}"


def _drift(scene: Scene) -> str | None:
    if scene.findings.drifted_at is None or _DEGRADED not in scene.reading.drifted:
        return None
    expected = scene.reading.expected.get(_DEGRADED)
    so = "" if expected is None else f", expected accuracy {expected:.1%}"
    score = scene.reading.drifted[_DEGRADED]
    return f"suspects {DEGRADED_CAMERA} from scores, without labels: drift score {score:.2f}{so}"


def _move(scene: Scene) -> str | None:
    if scene.degraded_at is None or scene.reading.snapshot_time < scene.degraded_at:
        return None
    key = (WEAKEST_CAMERA, DEGRADED_CAMERA)
    before, now = (reading.next_requests.get(key, 0.0) for reading in (scene.before, scene.reading))
    if now < before + _MOVED:
        return None
    return f"moves label requests to {DEGRADED_CAMERA}: {now:.0%} of the next ones, {before:.0%} before"


def _weakest(scene: Scene) -> str | None:
    if scene.findings.weakest_at is None:
        return None
    probability = weakest_probability(scene.reading)
    return f"finds that {DEGRADED_CAMERA} is the weakest camera, with probability {probability:.2f}"


def _below(scene: Scene) -> str | None:
    if scene.findings.below_at is None:
        return None
    camera = scene.reading.groups[_DEGRADED]
    return (
        f"warns that {DEGRADED_CAMERA} is below {MIN_ACCURACY:.0%}, with probability {camera.below:.2f}: "
        f"{interval(camera)}"
    )


def _confirmation(scene: Scene) -> str | None:
    if scene.findings.confirmed_at is None:
        return None
    return f"confirms that {DEGRADED_CAMERA} got worse, by evidence that holds under continuous monitoring"


def _date(scene: Scene) -> str | None:
    if scene.findings.confirmed_at is None or scene.degraded_at is None:
        return None
    if not (changed_at := scene.reading.changed_at.get(_DEGRADED)):
        return None
    found, true = (moment - scene.streaming_at for moment in (changed_at, scene.degraded_at))
    return f"dates the change to {found:.1f} s; it happened at {true:.1f} s"


def _no_drift(scene: Scene) -> str | None:
    if not scene.is_repaired or scene.findings.drifted_at is None or _DEGRADED in scene.reading.drifted:
        return None
    return f"sees no drift of {DEGRADED_CAMERA} any more"


def _recovery(scene: Scene) -> str | None:
    camera = scene.reading.groups[_DEGRADED]
    if not scene.is_repaired or camera.below > 1 - CERTAIN:
        return None
    return (
        f"finds {DEGRADED_CAMERA} above {MIN_ACCURACY:.0%} again, with probability {1 - camera.below:.2f}: "
        f"{interval(camera)}"
    )


_CHAPTERS: dict[str, tuple[str, Callable[[Scene], str | None]]] = {
    "first estimates": (CREDENCE, _first),
    "request": (CREDENCE, _request),
    "label": (PEOPLE, _label),
    "half the width": (CREDENCE, _half),
    "drift": (CREDENCE, _drift),
    "requests move": (CREDENCE, _move),
    "weakest": (CREDENCE, _weakest),
    "below": (CREDENCE, _below),
    "confirmation": (CREDENCE, _confirmation),
    "date": (CREDENCE, _date),
    "no drift": (CREDENCE, _no_drift),
    RECOVERY: (CREDENCE, _recovery),
}


def interval(group: GroupReading) -> str:
    """A group's estimate and its interval."""
    return f"{group.mean:.1%} (95% CI {100 * group.lower:.1f}-{group.upper:.1%})"
