"""What is known of error rates, as document, sentence, problems, metrics and table of the terminal."""

from __future__ import annotations

import io

import pytest
from prometheus_client import CollectorRegistry
from rated_snapshots import error_rates, rated
from rich.console import Console
from snapshots import NOW

from service.app.status_command import status_view
from service.serving.documents.error_rates import error_rate_state
from service.serving.documents.models import model_state
from service.serving.prometheus import SnapshotCollector

MODEL = model_state(rated(), now=NOW, tick_seconds=5.0)
STATE = error_rate_state(error_rates())


@pytest.fixture(scope="module")
def registry() -> CollectorRegistry:
    found = CollectorRegistry()
    found.register(SnapshotCollector(lambda: [rated()], group_limit=10, clock=lambda: NOW))
    return found


def test_the_question_and_what_is_found_are_reported_in_words() -> None:
    (state,) = MODEL.assessments
    assert state.question == "How far apart are the error rates of every region?"
    assert state.found == (
        "Furthest apart: false positive rate, 20.0 points [10.0, 30.0], highest in north, lowest in south"
    )
    assert state.error_rates == STATE


def test_a_group_beyond_a_limit_comes_first() -> None:
    assert [one.group for one in STATE.groups] == ["north", "south"]
    assert STATE.groups[0].violated == ["false_positive_rate"]
    assert STATE.groups[0].confirmed == ["false_positive_rate"]


def test_groups_have_their_own_limits() -> None:
    assert [one.limits for one in STATE.groups] == [
        {"false_positive_rate": 0.3},
        {"false_positive_rate": 0.35},
    ]


def test_a_rate_that_counts_no_item_is_left_out() -> None:
    assert "precision" in STATE.groups[0].rates
    assert "precision" not in STATE.groups[1].rates


def test_problems_name_the_group_the_rate_and_the_target() -> None:
    found = {one.title: one for one in MODEL.problems}
    violated = found["False positive rate beyond its limit: region = north"]
    assert violated.alert == "CredenceErrorRateViolated"
    assert violated.sentence == (
        "False positive rate 45.0% (95% CI 40.0-50.0%), target at most 30%. 120 labels, 40.0% of traffic. "
        "Confirmed (e-value 500)."
    )
    differ = found["Groups are treated unequally: difference of false positive rate"]
    assert differ.sentence == (
        "Difference of false positive rate 20.0% (95% CI 10.0-30.0%), target at most 5%."
    )
    assert "Groups are treated unequally: ratio of selection rate" in found


@pytest.mark.parametrize(
    ("name", "rate", "group", "value"),
    [
        ("mean_ratio", "false_positive_rate", "north", 0.45),
        ("violated", "false_positive_rate", "north", 1.0),
        ("limit_ratio", "false_positive_rate", "north", 0.3),
        ("difference_violated", "false_positive_rate", None, 1.0),
        ("quotient_violated", "selection_rate", None, 1.0),
        ("labels", None, "north", 120.0),
        ("violated", "precision", "north", None),
        ("violated_evidence", "false_positive_rate", "north", pytest.approx(500)),
    ],
)
def test_prometheus_gets_rates_limits_and_what_is_beyond_them(
    registry: CollectorRegistry, name: str, rate: str | None, group: str | None, value: float | None
) -> None:
    labels = {"model": "m", "assessment": "fair", "grouping": "region", "rate": rate, "group": group}
    given = {label: of for label, of in labels.items() if of is not None}
    assert registry.get_sample_value(f"credence_error_rate_{name}", given) == value


def test_the_terminal_shows_the_rates_of_every_group() -> None:
    written = io.StringIO()
    Console(file=written, width=400).print(status_view([rated()], now=NOW, tick_seconds=5.0))
    lines = written.getvalue().rstrip().splitlines()
    assert any("fair: error rates for cat, %" in line for line in lines)
    assert "45.0 [40.0, 50.0]" in next(line for line in lines if line.strip().startswith("north"))


def terminal_rows() -> dict[str, tuple[str, str]]:
    """Rows of the table in the terminal, with the line below each, by their first word."""
    written = io.StringIO()
    Console(file=written, width=400).print(status_view([rated()], now=NOW, tick_seconds=5.0))
    lines = written.getvalue().rstrip().splitlines()
    begin = next(i for i, line in enumerate(lines) if "error rates for cat" in line)
    rows = lines[begin:]
    return {
        line.split()[0]: (line, "".join(rows[i + 1 : i + 2])) for i, line in enumerate(rows) if line.strip()
    }


def test_the_terminal_shows_limits_below_rates_and_what_is_confirmed() -> None:
    rows = terminal_rows()
    assert "at most 30%: confirmed" in rows["north"][1]
    assert "at most 35%" in rows["south"][1]
    assert "confirmed" not in rows["south"][1]


def test_the_terminal_shows_how_far_groups_are_apart() -> None:
    rows = terminal_rows()
    assert "20.0 [10.0, 30.0]" in rows["Difference"][0]
    assert "at most 5%" in rows["Difference"][1]
    assert "at least 95%" in rows["Ratio"][1]
