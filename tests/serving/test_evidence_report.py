"""What evidence says, as documents, sentences, samples and on the terminal."""

from __future__ import annotations

import io
import math

import pytest
from prometheus_client import CollectorRegistry
from rich.console import Console
from snapshots import snapshot

from service.app.status_command import status_view
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.evidence import changes
from service.serving.documents.findings import findings
from service.serving.documents.groups import group_state
from service.serving.metric_selection import shown_groups
from service.serving.prometheus import SnapshotCollector

# Labels come class by class, so score bins seem to change; here nothing is to be forgotten for that.
NOTHING_FORGOTTEN = {"after_change": False}
TAKEN = snapshot(
    200,
    alerts={"min_accuracy": 0.8, "max_ece": 0.1},
    reference={"labels": 20},
    changed="owl",
    forgetting=NOTHING_FORGOTTEN,
)
GROUPING = TAKEN.groupings["class"]
EVIDENCE = GROUPING.evidence
DOG = GROUPING.groups.index("dog")


def sample(taken: ModelSnapshot, name: str, *, group_limit: int = 200, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: [taken], group_limit=group_limit))
    return registry.get_sample_value(name, {"model": "m", "grouping": "class", **labels})


def test_a_group_shows_its_evidence() -> None:
    assert EVIDENCE is not None
    told = group_state(TAKEN, "class", GROUPING, DOG).evidence
    assert told is not None
    below = next(claim for claim in told.claims if claim.kind == "below_threshold")
    assert below.confirmed
    assert below.log10_e == pytest.approx(EVIDENCE.log_e["below_threshold"][DOG] / math.log(10))
    assert (told.lower, told.upper) == (EVIDENCE.known.lower[DOG], EVIDENCE.known.upper[DOG])
    assert told.labels == EVIDENCE.known.labels[DOG]
    assert told.sentences[0] == (
        f"Evidence confirms that its accuracy is below 80%: 10^{below.log10_e:.1f} to one."
    )
    assert "at most 5% is false on average" in told.sentences[-1]


def test_a_grouping_that_asked_for_nothing_has_none() -> None:
    assert group_state(TAKEN, "all", TAKEN.groupings["all"], 0).evidence is None


def test_of_a_group_that_meets_its_threshold_nothing_is_confirmed() -> None:
    told = group_state(TAKEN, "class", GROUPING, GROUPING.groups.index("cat")).evidence
    assert told is not None
    assert not any(claim.confirmed for claim in told.claims if claim.kind == "below_threshold")


def test_a_finding_says_whether_evidence_confirms_it() -> None:
    found = {(one.kind, one.grouping, one.group): one for one in findings(TAKEN)}
    dog = found["accuracy_low", "class", "dog"]
    assert dog.confirmed
    assert dog.sentence.endswith("Evidence confirms it.")
    others = [one for one in found.values() if one.grouping == "all"]
    assert others
    assert not any(one.confirmed for one in others)


def test_changes_are_reported_with_their_times() -> None:
    assert EVIDENCE is not None
    change = EVIDENCE.changes[GROUPING.groups.index("owl")]
    found = next(one for one in changes(TAKEN) if one.grouping == "class")
    assert found.group == "owl"
    assert (found.at, found.earliest, found.latest) == (change.at, change.earliest, change.latest)
    assert found.sentence.startswith("Class owl has been less accurate since about ")


def test_the_terminal_shows_changes_and_what_is_confirmed() -> None:
    console = Console(file=io.StringIO(), width=300)
    console.print(status_view([TAKEN]))
    text = console.file.getvalue()
    assert changes(TAKEN)[0].sentence in text
    assert "Evidence confirms it." in text


def test_e_values_are_samples_by_kind() -> None:
    assert EVIDENCE is not None
    found = sample(TAKEN, "credence_group_evidence_log10", group="dog", kind="below_threshold")
    assert found == pytest.approx(EVIDENCE.log_e["below_threshold"][DOG] / math.log(10))
    assert sample(TAKEN, "credence_group_evidence_confirmed", group="dog", kind="below_threshold") == 1
    assert sample(TAKEN, "credence_group_evidence_confirmed", group="cat", kind="below_threshold") == 0


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
