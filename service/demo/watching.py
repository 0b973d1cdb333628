"""Shows a run in the terminal while it goes on: a live view, or a line for each event."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import RenderableType
from rich.live import Live

from service.demo.children import Children
from service.demo.observer import Observer
from service.demo.stage import POLL_SECONDS, Stage


def watch(
    stage: Stage,
    children: Children,
    observer: Observer,
    *,
    goes_on: Callable[[], bool],
    frame: Callable[[], RenderableType],
) -> None:
    """Observe and show a run as long as it goes on.

    Args:
        stage: of the run. Its console shows frames if it is a terminal, else the events of the story.
        children: processes of the run.
        observer: is refreshed before each look.
        goes_on: asked before each look.
        frame: what the live view shows now.

    Raises:
        ChildDiedError: a process ended.
        Stopped: a signal came.
    """
    if not stage.console.is_terminal:
        shown = 0
        while goes_on():
            _look(children, observer)
            for event in observer.story.events[shown:]:
                stage.print(event.line(observer.history.streaming_at))
            shown = len(observer.story.events)
        return
    with Live(console=stage.console, auto_refresh=False) as live:
        while goes_on():
            _look(children, observer)
            live.update(frame(), refresh=True)


def _look(children: Children, observer: Observer) -> None:
    children.pause(POLL_SECONDS)
    children.check()
    observer.refresh()
