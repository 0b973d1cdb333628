from __future__ import annotations

import io
import os
import signal
from pathlib import Path
from typing import Any, Self

import pytest
from rich.console import Console

from service.demo import children as demo_children
from service.demo.children import ChildDiedError, Children, Stopped
from service.demo.journal import Mark, PredictionsSent
from service.demo.metrics import GroupReading, Reading
from service.demo.observer import Observer
from service.demo.process import StopFlag
from service.demo.run import run_demo
from service.demo.stage import MISUSED
from service.demo.view import render


def test_a_run_that_is_too_short_is_refused_with_the_minimum() -> None:
    output = io.StringIO()
    assert run_demo(seconds=29.9, console=Console(file=output)) == MISUSED
    assert "at least 30 seconds" in output.getvalue()


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0])
def test_a_length_that_is_no_length_is_refused(seconds: float) -> None:
    assert run_demo(seconds=seconds, console=Console(file=io.StringIO())) == MISUSED


def test_a_child_that_dies_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    with Children(tmp_path, wait=StopFlag().wait) as children:
        child = children.start("the mayfly", "service.demo.no_such_module", [])
        child.process.wait()
        with pytest.raises(ChildDiedError, match="the mayfly ended unexpectedly with code 1") as died:
            children.check()
    assert "no_such_module" in died.value.tail


def test_a_command_that_fails_is_named_too(tmp_path: Path) -> None:
    with (
        Children(tmp_path, wait=StopFlag().wait) as children,
        pytest.raises(ChildDiedError, match="the mayfly ended unexpectedly"),
    ):
        children.finish("the mayfly", "service.demo.no_such_module", [])


def test_leaving_stops_every_child(tmp_path: Path) -> None:
    with Children(tmp_path, wait=StopFlag().wait) as children:
        child = children.start("a server", "http.server", ["--bind", "127.0.0.1", "0"])
        children.check()
    assert child.process.poll() is not None


def test_a_wait_ends_when_it_is_asked_to_stop_and_when_it_takes_too_long(tmp_path: Path) -> None:
    with Children(tmp_path, wait=lambda _: True) as stopping, pytest.raises(Stopped):
        stopping.wait_until(lambda: False, what="nothing", seconds=60)
    with (
        Children(tmp_path, wait=lambda _: False) as patient,
        pytest.raises(ChildDiedError, match="not ready after"),
    ):
        patient.wait_until(lambda: False, what="nothing", seconds=1)


def test_children_never_see_the_servers_that_the_users_variables_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, str]] = []

    class FakeChild:
        def __init__(self, *_: Any, environment: dict[str, str], **__: Any) -> None:
            seen.append(environment)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(demo_children, "Child", FakeChild)
    monkeypatch.setenv("CREDENCE_REDIS__URL", "redis://production.example:6379/0")
    with Children(tmp_path, wait=StopFlag().wait) as children:
        children.start("credence run", "service.app.cli", ["run"])
    assert "PATH" in seen[0]
    assert not [name for name in seen[0] if name.startswith("CREDENCE_")]


def test_a_signal_ends_a_wait_and_goes_back_to_its_former_handler_afterwards() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    stop = StopFlag(signal.SIGUSR1)
    try:
        assert not stop.wait(0.0)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert stop.wait(60.0)
    finally:
        stop.restore()
    assert signal.getsignal(signal.SIGUSR1) == before


def observed(folder: Path) -> Observer:
    seen = Observer(folder, monitoring_port=1)
    seen.history.add([Mark("streaming", 100.0), PredictionsSent(101.0, ["dock"], ["3"], [0.9], [True])])
    dock = GroupReading("camera", "dock", lower=0.2, mean=0.7, upper=0.75, share=0.25, labels=40, below=0.99)
    hidden = GroupReading(
        "score_bin", "[0.9,1]", lower=0.9, mean=0.95, upper=1.0, share=0.5, labels=20, below=0
    )
    seen.reading = Reading(
        time=140.0,
        groups={("camera", "dock"): dock, ("score_bin", "[0.9,1]"): hidden},
        events={"issued": 44, "answered": 40, "reissued": 2},
        budgets={"weakest-camera": 12},
    )
    seen.rate = 301.4
    seen.truths = {("camera", "dock"): 0.68}
    return seen


def test_the_live_view_shows_intervals_truth_and_labels(tmp_path: Path) -> None:
    output = io.StringIO()
    Console(file=output, width=120).print(render(observed(tmp_path), 140.0, 90.0))
    text = output.getvalue()
    assert "40 of 90 s" in text
    assert "301 predictions/s" in text
    assert "40 of 44 asked" in text
    assert "2 reissued" in text
    assert "20.0% - 75.0%" in text
    assert "68.0%" in text
    assert "[0.9,1]" not in text
