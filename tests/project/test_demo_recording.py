"""The animated picture of the demo: drawn from its recording, small, and readable by everybody."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from docs.animation import Frame, Line, Recording, draw
from docs.recording import EVENT, LOG, PICTURE, load, save
from service.demo.story import Event

MEGABYTE = 1_000_000
SVG = "{http://www.w3.org/2000/svg}"
SMALL = Recording(
    90.0,
    (Line(0.0, "demo", "streams <digits>"), Line(41.5, "Credence", "suspects dock")),
    {"camera dock": (Frame(2.0, 0.6, 0.9, 0.97), Frame(42.0, 0.55, 0.65, 0.72))},
    ("The loop closed.",),
)


@pytest.fixture(scope="module")
def drawn() -> str:
    return PICTURE.read_text(encoding="utf-8")


def test_the_picture_is_what_the_recording_draws(drawn: str) -> None:
    assert drawn == draw(load(LOG)), "run `python -m docs.recording --draw`"


def test_the_picture_is_small_and_needs_nothing_from_elsewhere(drawn: str) -> None:
    assert len(drawn.encode()) < MEGABYTE
    assert re.findall(r"https?://[^\"' ]+", drawn) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|<image|<foreignObject|@import|url\(", drawn)


def test_a_recording_is_the_same_after_it_was_saved(tmp_path: Path) -> None:
    save(SMALL, tmp_path / "log.json")
    assert load(tmp_path / "log.json") == SMALL


def test_motion_and_dark_colours_are_for_those_who_want_them() -> None:
    style = ET.fromstring(draw(SMALL)).findtext(f"{SVG}style") or ""
    still, _, moving = style.partition("@media (prefers-reduced-motion: no-preference)")
    assert "@media (prefers-color-scheme: dark)" in still
    assert "animation" not in still
    assert "animation" in moving


def test_without_motion_each_group_shows_its_last_estimate() -> None:
    groups = [
        each for each in ET.fromstring(draw(SMALL)).iter(f"{SVG}g") if each.find(f"{SVG}circle") is not None
    ]
    shown = [each for each in groups if each.get("opacity") != "0"]
    assert [each.findtext(f"{SVG}text") for each in shown] == ["65.0% (55.0-72.0%)"]


def test_screen_readers_get_the_story() -> None:
    picture = ET.fromstring(draw(SMALL))
    assert picture.get("role") == "img"
    assert picture.findtext(f"{SVG}desc") == "0 s: demo streams <digits>. 42 s: Credence suspects dock."


def test_the_lines_of_a_log_are_recorded() -> None:
    found = EVENT.match(Event(1_036.0, "Credence", "suspects dock from scores").line(1_000.0))
    assert found is not None
    assert found.groupdict() == {"seconds": "36.0", "actor": "Credence", "text": "suspects dock from scores"}


@pytest.mark.parametrize(("upper", "state"), [(0.72, "fails"), (0.85, "open")])
def test_an_estimate_is_coloured_by_where_its_interval_is(upper: float, state: str) -> None:
    assert Frame(0.0, 0.6, 0.7, upper).state == state


def test_an_interval_above_the_threshold_meets_it() -> None:
    assert Frame(0.0, 0.81, 0.9, 0.95).state == "meets"
