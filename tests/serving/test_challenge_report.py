"""How a challenger stands, as document, sentence and table of the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from snapshots import challenge, challenged

from service.app.status_command import status_view
from service.serving.documents.models import model_state

(STATE,) = model_state(challenged()).assessments


def test_the_question_and_what_is_found_are_reported_in_words() -> None:
    assert STATE.question == "Is v2 better than the model, by more than 1 percentage points?"
    assert STATE.found.startswith("v2 is better (")
    assert "worse in owl (" in STATE.found
    assert STATE.policy == "planned"


def test_all_traffic_comes_first_and_then_who_differs_most_surely() -> None:
    there = challenge()
    assert [one.overall for one in STATE.challenge] == [True, False, False, False]
    surest = [max(one.better, one.worse) for one in STATE.challenge[1:]]
    assert surest == sorted(surest, reverse=True)
    for one in STATE.challenge:
        at = there.groups.index(one.group)
        assert one.difference.mean == pytest.approx(there.difference.mean[at])
        assert one.evidence_worse == pytest.approx(there.evidence_worse[at])


def test_the_terminal_shows_every_group_of_a_challenge() -> None:
    written = io.StringIO()
    Console(file=written, width=400).print(status_view([challenged()]))
    lines = written.getvalue().rstrip().splitlines()
    assert any("next: accuracy of challenger minus model, in points" in line for line in lines)
    assert {line.split()[0] for line in lines[-4:]} == {"all", "cat", "dog", "owl"}
