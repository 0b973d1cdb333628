"""Shows a run while it goes on: a line for each event, and below them a live view in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

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
        stage: of the run. Its console shows every event of the story; a terminal, frames below them too.
        children: processes of the run.
        observer: is refreshed at each look.
        goes_on: asked before each look.
        frame: what a terminal shows now.

    Raises:
        ChildDiedError: a process ended.
        Stopped: a signal came.
    """
    with (
        Live(console=stage.console, auto_refresh=False)
        if stage.console.is_terminal
        else nullcontext() as live
    ):
        while goes_on():
            children.pause(POLL_SECONDS)
            children.check()
            observer.refresh()
            for event in observer.story.new_events():
                stage.print(event.line(observer.history.streaming_at))
            if live is not None:
                live.update(frame(), refresh=True)
