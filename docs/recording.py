"""Records the demo as an animated picture: `python -m docs.recording`.

It plays `credence demo`, keeps the lines of its story with their times and the estimates of three groups, and
draws them as an SVG. `--draw` draws the recording that is there, without a run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from docs.animation import Frame, Line, Recording, draw

FOLDER = Path(__file__).parent / "images"
LOG, PICTURE = FOLDER / "demo.json", FOLDER / "demo.svg"
GROUPS = {"all traffic": ("all", "all"), "camera gate": ("camera", "gate"), "camera dock": ("camera", "dock")}
KEPT = ("truth inside", "labels used", "The loop closed")
"""Beginnings of the last lines that the picture shows."""

EVENT = re.compile(r"^ *(?P<seconds>[\d.]+) s  (?P<actor>\w+) +(?P<text>.+)$")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
_GAP = re.compile(r" {2,}")  # between the columns of the report
_LIST, _BETWEEN = re.compile(r"\[\s+([^\[\]{}]+?)\s+\]"), re.compile(r",\n\s+")
_LOOK_SECONDS = 1.0
_WIDE = "200"


class Estimates:
    """Reads the estimates of all groups from the status page's API until it is stopped."""

    def __init__(self, url: str) -> None:
        self.points: dict[str, list[Mapping[str, Any]]] = {}
        self._url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def stop(self) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            for name, (grouping, group) in GROUPS.items():
                path = f"/api/v1/models/digits/timeline?grouping={grouping}&group={group}"
                try:
                    with urllib.request.urlopen(f"{self._url}{path}", timeout=_LOOK_SECONDS) as answer:  # noqa: S310 - of this machine
                        self.points[name] = json.load(answer)["points"]
                except (urllib.error.URLError, TimeoutError):
                    # Before the first estimates, and when the demo has ended: the next look decides.
                    break


def record(seconds: float, seed: int) -> Recording:
    """Play the demo and record it.

    Raises:
        SystemExit: the demo failed.
    """
    command = [
        sys.executable,
        "-m",
        "service.app.cli",
        "demo",
        "--seconds",
        f"{seconds:g}",
        "--seed",
        str(seed),
    ]
    environment = os.environ | {"COLUMNS": _WIDE}
    events: list[Line] = []
    last: list[str] = []
    began, estimates = float("inf"), None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        for text in process.stdout or ():
            print(text, end="")
            if found := EVENT.match(text):
                event = Line(float(found["seconds"]), found["actor"], found["text"].rstrip())
                events.append(event)
                began = min(began, time.time() - event.seconds)
            elif estimates is None and (address := _ADDRESS.search(text)):
                estimates = Estimates(address[0])
            elif text.startswith(KEPT):
                last.append(_GAP.sub("  ", text.rstrip()))
        if estimates is not None:
            estimates.stop()
    if process.returncode or estimates is None:
        raise SystemExit(f"the demo failed with code {process.returncode}")
    frames = {name: frames_of(points, began) for name, points in estimates.points.items()}
    return Recording(seconds, tuple(events), frames, tuple(last))


def frames_of(points: Iterable[Mapping[str, Any]], began: float) -> tuple[Frame, ...]:
    """A group's estimates with the seconds since the stream began, at a time in seconds since the epoch."""
    return tuple(
        Frame(
            round(max(point["time"] - began, 0.0), 2),
            *(round(point["accuracy"][end], 4) for end in ("lower", "mean", "upper")),
        )
        for point in points
    )


def load(path: Path) -> Recording:
    """A recording that `save` has written."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return Recording(
        content["seconds"],
        tuple(Line(*each) for each in content["events"]),
        {name: tuple(Frame(*each) for each in frames) for name, frames in content["frames"].items()},
        tuple(content["last"]),
    )


def save(recording: Recording, path: Path) -> None:
    """Write a recording as JSON, one event or estimate in a line."""
    content = {
        "seconds": recording.seconds,
        "events": [list(event) for event in recording.events],
        "frames": {name: [list(frame) for frame in frames] for name, frames in recording.frames.items()},
        "last": list(recording.last),
    }
    text = json.dumps(content, indent=1, ensure_ascii=False)
    # A list of values in one line.
    text = _LIST.sub(lambda found: f"[{_BETWEEN.sub(', ', found[1])}]", text)
    path.write_text(f"{text}\n", encoding="utf-8")


def main() -> None:
    """Record and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draw", action="store_true", help="draw the recording that is there")
    parser.add_argument("--seconds", type=float, default=90.0, help="of the run (default: 90)")
    parser.add_argument("--seed", type=int, default=1, help="of the run (default: 1)")
    options = parser.parse_args()
    if not options.draw:
        save(record(options.seconds, options.seed), LOG)
    PICTURE.write_text(draw(load(LOG)), encoding="utf-8")
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
