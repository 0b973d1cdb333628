"""What evidence says, as documents, sentences, samples and on the terminal."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from functools import cache

import pytest
from prometheus_client import CollectorRegistry
from rich.console import Console
from snapshots import NOW, snapshot

from service.app.status_command import status_view
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.problems import problems
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.groups import group_state
from service.serving.documents.models import model_state
from service.serving.documents.problems import ProblemState, problem_states
from service.serving.documents.references import reference_summary
from service.serving.metric_selection import shown_groups
from service.serving.prometheus import SnapshotCollector
from service.statistics.label_errors import GoldCounts, learned

# Labels come class by class, so score bins seem to change; here nothing is to be forgotten for that.
NOTHING_FORGOTTEN = {"after_change": False}


@cache
def declined() -> ModelSnapshot:
    """Dogs are below the threshold, and owls have changed."""
    return snapshot(
        200,
        alerts={"min_accuracy": 0.8, "max_ece": 0.1},
        reference={"labels": 20},
        changed="owl",
        forgetting=NOTHING_FORGOTTEN,
    )


def by_class() -> GroupingSnapshot:
    return declined().groupings["class"]


def dog() -> int:
    return by_class().groups.index("dog")


def sample(taken: ModelSnapshot, name: str, *, group_limit: int = 200, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: [taken], group_limit=group_limit, clock=lambda: NOW))
    return registry.get_sample_value(name, {"model": "m", "grouping": "class", **labels})


def test_a_group_shows_its_evidence() -> None:
    evidence = by_class().evidence
    assert evidence is not None
    shown = group_state(declined(), "class", by_class(), dog()).evidence
    assert shown is not None
    below = next(claim for claim in shown.claims if claim.kind == "below_threshold")
    assert below.confirmed
    assert below.log10_e == pytest.approx(evidence.log_e["below_threshold"][dog()] / math.log(10))
    assert (shown.lower, shown.upper) == (evidence.state.lower[dog()], evidence.state.upper[dog()])
    assert shown.labels == evidence.state.labels[dog()]
    assert shown.sentences[0] == (
        f"Evidence confirms that its accuracy is below 80%: e-value 10^{below.log10_e:.1f}."
    )
    assert "at most 5%, under continuous monitoring" in shown.sentences[-1]


def of_people_who_err(**labels_per_item: object) -> ModelSnapshot:
    alerts = {"min_accuracy": 0.9}
    return snapshot(
        200, alerts=alerts, labels_per_item={"most": 3} | labels_per_item, reference={"labels": 20}
    )


def test_evidence_says_how_many_labels_may_be_wrong() -> None:
    taken = of_people_who_err(max_error=0.02)
    groups = taken.groupings["class"]
    shown = group_state(taken, "class", groups, groups.groups.index("dog")).evidence
    assert shown is not None
    assert {claim.kind for claim in shown.claims} == {"below_threshold", "declined", "changed"}
    assert shown.sentences[-1].endswith("continuous monitoring, if at most 2% of the labels are wrong.")


LEARNED = {"max_error": "learned", "gold": {"file": "gold.jsonl"}}


def test_without_gold_labels_it_is_said_why_there_is_no_evidence_yet() -> None:
    taken = of_people_who_err(**LEARNED)
    found = model_state(taken, now=taken.taken_at, tick_seconds=5.0).label_errors
    assert found is not None
    assert (found.of_correct.labels, found.of_correct.bound) == (0, None)
    assert found.sentence == (
        "No evidence against the accuracy threshold yet: over 30% of the first labels about correct "
        "predictions may be wrong (0 gold labels, 0 of them wrong)."
    )


def test_a_learned_bound_is_shown_with_the_labels_that_it_is_learned_from() -> None:
    gold = GoldCounts(400, 8, 30, 3)
    taken = replace(of_people_who_err(**LEARNED), gold=gold, wrong_labels=learned(gold, 0.05))
    found = model_state(taken, now=taken.taken_at, tick_seconds=5.0).label_errors
    assert found is not None
    assert (found.of_correct.bound, found.of_incorrect.labels) == (0.0575, 30)
    assert found.sentence == (
        "Evidence allows for 5.75% wrong first labels about correct predictions, learned from 400 gold "
        "labels, 8 of them wrong."
    )


def test_without_a_bound_on_wrong_labels_there_is_none_and_the_reference_says_so() -> None:
    taken = of_people_who_err()
    assert all(grouping.evidence is None for grouping in taken.groupings.values())
    assert reference_summary(taken).sentence == (
        "No reference for declines: labels may be wrong, and labels_per_item.max_error is not set."
    )


def test_a_grouping_that_asked_for_nothing_has_none() -> None:
    assert group_state(declined(), "all", declined().groupings["all"], 0).evidence is None


def test_of_a_group_that_meets_its_threshold_nothing_is_confirmed() -> None:
    shown = group_state(declined(), "class", by_class(), by_class().groups.index("cat")).evidence
    assert shown is not None
    assert not any(claim.confirmed for claim in shown.claims if claim.kind == "below_threshold")


def found() -> dict[tuple[str, str | None, str | None], ProblemState]:
    """The problems, by kind, grouping and group."""
    states = problem_states(problems(declined(), NOW))
    return {(one.kind, one.grouping, one.group): one for one in states}


def test_a_problem_says_whether_evidence_confirms_it() -> None:
    dog = found()["accuracy_low", "class", "dog"]
    assert dog.sentence.endswith(f"Confirmed (e-value 10^{dog.log10_e:.0f}).")
    others = [one for (_, grouping, _), one in found().items() if grouping == "all"]
    assert others
    assert not any("onfirmed" in one.sentence for one in others)


def test_a_change_is_a_problem_with_its_time() -> None:
    evidence = by_class().evidence
    assert evidence is not None
    change = evidence.changes[by_class().groups.index("owl")]
    owl = found()["less_accurate", "class", "owl"]
    assert (owl.since, owl.since_or_earlier) == (change.at, False)
    assert owl.title == "Less accurate than before: class = owl"
    assert " Accuracy fell at about " in owl.sentence


def test_the_terminal_shows_changes_and_what_is_confirmed() -> None:
    console = Console(file=io.StringIO(), width=400)
    console.print(status_view([declined()], now=NOW, tick_seconds=5.0))
    text = console.file.getvalue()
    assert "! Less accurate than before: class = owl (critical)" in text
    assert "Confirmed (e-value 10^" in text
    assert "Runbook: CredenceGroupAccuracyLowConfirmed." in text


def test_e_values_are_samples_by_kind() -> None:
    evidence = by_class().evidence
    assert evidence is not None
    found = sample(declined(), "credence_group_evidence_log10", group="dog", kind="below_threshold")
    assert found == pytest.approx(evidence.log_e["below_threshold"][dog()] / math.log(10))
    assert sample(declined(), "credence_group_evidence_confirmed", group="dog", kind="below_threshold") == 1
    assert sample(declined(), "credence_group_evidence_confirmed", group="cat", kind="below_threshold") == 0


def test_groups_that_alarm_are_reported_one_by_one_and_the_others_by_the_highest() -> None:
    taken = snapshot(200, alerts={"min_accuracy": 0.8}, forgetting=NOTHING_FORGOTTEN)
    evidence = taken.groupings["class"].evidence
    assert evidence is not None
    assert shown_groups(taken, limit=1, before={})["class"].names == ["dog"]
    others = [g for g, name in enumerate(evidence.groups) if name != "dog"]
    at = {"group": "other", "kind": "below_threshold"}
    assert sample(taken, "credence_group_evidence_log10", group_limit=1, **at) == (
        pytest.approx(evidence.log_e["below_threshold"][others].max() / math.log(10))
    )
    assert sample(taken, "credence_group_evidence_confirmed", group_limit=1, **at) == 0


def test_the_sentence_names_the_threshold_of_the_group() -> None:
    of_class = {"class": {"groups": {"dog": {"min_accuracy": 0.85}}}}
    taken = snapshot(200, alerts={"min_accuracy": 0.3, "groupings": of_class}, reference={"labels": 20})
    groups = taken.groupings["class"]
    shown = group_state(taken, "class", groups, groups.groups.index("dog")).evidence
    assert shown is not None
    assert shown.sentences[0].startswith("Evidence confirms that its accuracy is below 85%")
