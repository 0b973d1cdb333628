from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from service.demo.journal import LABELLER_FILE, Journal, JournalReader, LabelSent, RequestReceived
from service.demo.labeller import Intention, Labeller, human_plan, intentions
from service.demo.world import CLASSES, World, item_id, load_split
from service.domain.messages import LabelRequest

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LEASE_SECONDS = 6.0


def request(number: int = 17, *, attempt: int = 1) -> LabelRequest:
    return LabelRequest(
        request_id=f"r{number}",
        model="digits",
        item_id=item_id(number),
        classes=list(CLASSES),
        requested_at=NOW,
        deadline=NOW + timedelta(seconds=LEASE_SECONDS),
        attempt=attempt,
    )


def many_plans(*, attempt: int = 1) -> list[list[Intention]]:
    rng = np.random.default_rng(5)
    return [intentions(request(attempt=attempt), "3", rng) for _ in range(2_000)]


def kinds(plan: list[Intention]) -> tuple[str, ...]:
    return tuple(intention.kind for intention in plan)


def test_most_requests_are_answered_once_in_time_and_rightly() -> None:
    prompt = [
        plan
        for plan in many_plans()
        if kinds(plan) == ("answer",) and plan[0].true_class == "3" and plan[0].after_seconds <= 1.0
    ]
    assert 0.8 < len(prompt) / 2_000 < 0.9


def test_some_answers_come_after_the_deadline_but_only_at_the_first_attempt() -> None:
    def late(plans: list[list[Intention]]) -> int:
        return sum(plan[0].after_seconds > LEASE_SECONDS for plan in plans)

    assert late(many_plans()) > 20
    assert late(many_plans(attempt=2)) == 0


def test_some_answers_are_given_twice_some_requests_skipped_and_some_answers_corrected() -> None:
    plans = many_plans()
    seen = {kinds(plan) for plan in plans}
    assert seen == {("answer",), ("answer", "answer"), ("skip",), ("answer", "correction")}
    for plan in plans:
        if kinds(plan) == ("answer", "correction"):
            assert plan[0].true_class != "3"
            assert plan[1].true_class == "3"
            assert plan[1].after_seconds > plan[0].after_seconds
        if kinds(plan) == ("answer", "answer"):
            assert plan[0].true_class == plan[1].true_class == "3"


@pytest.fixture(scope="module")
def world() -> World:
    return World(1, load_split(1))


def test_labels_leave_the_desk_when_due_and_are_written_down_once_as_first(tmp_path: Path) -> None:
    with Journal(tmp_path / LABELLER_FILE) as journal:
        desk = Labeller(human_plan(1), journal)
        for number in range(300):
            desk.take(request(number), now=1_000.0)
        assert list(desk.labels(1_000.1)) == []
        prompt = list(desk.labels(1_001.0))
        rest = list(desk.labels(1_100.0))
    assert len(prompt) > 200
    assert rest
    entries = JournalReader(tmp_path / LABELLER_FILE).new_entries()
    answered = [entry for entry in entries if isinstance(entry, LabelSent)]
    assert sum(isinstance(entry, RequestReceived) for entry in entries) == 300
    assert len(answered) == len(prompt) + len(rest)
    answers = {label.request_id for label in [*prompt, *rest] if label.kind == "answer"}
    assert sum(entry.is_first for entry in answered) == len(answers)


def test_the_last_word_on_every_item_is_the_truth(world: World, tmp_path: Path) -> None:
    with Journal(tmp_path / LABELLER_FILE) as journal:
        desk = Labeller(human_plan(1), journal)
        for number in range(300):
            desk.take(request(number), now=0.0)
        last = {label.item_id: label for label in desk.labels(100.0) if label.kind != "skip"}
    assert len(last) > 250
    for number in range(300):
        if item_id(number) in last:
            assert last[item_id(number)].true_class == world.true_class(number)


def test_a_half_written_journal_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    reader = JournalReader(path)
    assert reader.new_entries() == []
    line = b'{"type":"asked","time":1.0,"request_id":"r1","attempt":1}\n'
    path.write_bytes(line + line[:20])
    assert reader.new_entries() == [RequestReceived(1.0, "r1", 1)]
    with path.open("ab") as file:
        file.write(line[20:])
    assert reader.new_entries() == [RequestReceived(1.0, "r1", 1)]
    assert reader.new_entries() == []
