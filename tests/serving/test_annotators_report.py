"""People and vendors in API and terminal."""

from __future__ import annotations

import io
from dataclasses import replace

from labelled_models import annotated, labelling
from rich.console import Console
from snapshots import NOW, snapshot

from service.app.status_command import status_view
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.models import ModelState, model_state


def state_of(taken: ModelSnapshot) -> ModelState:
    return model_state(taken, now=NOW, tick_seconds=5.0)


def printed(taken: ModelSnapshot) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(status_view([taken], now=NOW, tick_seconds=5.0))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def named(name: str) -> ModelSnapshot:
    people = (("", name), ("", "ana"), ("", "ben"))
    return replace(snapshot(8), labelling=labelling(people, guessing="nobody"))


def test_vendors_and_people_are_listed_by_the_lower_end_of_reliability() -> None:
    state = state_of(annotated())
    for listed in (state.vendors, state.annotators):
        lower = [each.reliability.lower for each in listed]
        assert lower == sorted(lower)
    assert [each.vendor for each in state.vendors] == ["beta", "acme"]


def test_agreement_is_the_same_in_words_and_numbers() -> None:
    found = state_of(annotated()).label_agreement
    assert found is not None
    assert f"{100 * found.agreement.mean:.1f}%" in found.sentence
    assert found.alpha is not None
    assert f"{found.alpha.mean:.2f}" in found.sentence


def test_gold_labels_are_shown_with_the_share_that_is_wrong() -> None:
    state = state_of(annotated())
    assert sum(each.gold_labels for each in state.vendors) == 30
    beta = state.vendors[0].gold_wrong
    assert beta is not None
    assert beta.lower > 0.1
    text = printed(annotated())
    assert "gold" in text
    assert f"{100 * beta.mean:.1f}" in text


def test_the_problem_of_a_vendor_names_its_threshold_and_its_alert() -> None:
    (problem,) = state_of(annotated()).problems
    assert (problem.kind, problem.subject, problem.threshold) == ("vendor_unreliable", "beta", 0.8)
    assert problem.alert == "CredenceVendorReliabilityLow"


def test_a_vendor_with_few_labels_is_no_problem() -> None:
    assert state_of(annotated(min_labels=1_000)).problems == []


def test_no_vendor_is_a_problem_without_a_threshold() -> None:
    assert state_of(annotated(min_reliability=None)).problems == []


def test_the_terminal_lists_vendors_and_people() -> None:
    text = printed(annotated())
    assert "vendors, sorted by the lower end of reliability" in text
    assert "beta / p0" in text


def test_where_labels_are_the_truth_nobody_is_listed() -> None:
    state = state_of(snapshot(8))
    assert (state.vendors, state.annotators, state.label_agreement) == ([], [], None)
    assert "reliability" not in printed(snapshot(8))


def test_control_characters_in_a_name_do_not_reach_the_terminal() -> None:
    text = printed(named("\x1b[31mred\u202e"))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_markup_of_the_terminal_in_a_name_is_text() -> None:
    assert "[bold]ann[/bold]" in printed(named("[bold]ann[/bold]"))
