"""What a process says of itself at its beginning and at its end."""

from __future__ import annotations

from service.telemetry.health import Check, Health


def states(health: Health) -> dict[str, tuple[bool, bool, str]]:
    return {check.name: (check.alive, check.ready, check.state) for check in health.checks()}


def test_a_process_is_not_ready_before_all_its_parts_are_there_nor_once_it_ends() -> None:
    health = Health()
    part = {"part": (True, True, "running")}
    health.add(lambda: Check("part", alive=True, ready=True, state="running"))
    assert states(health) == part | {"process": (True, False, "starting")}
    health.started()
    assert states(health) == part
    health.stopping()
    assert states(health) == part | {"process": (True, False, "stopping")}
