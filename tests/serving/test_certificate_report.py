"""What page, API and `credence status` say of a certificate."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
from rich.console import Console
from snapshots import NOW, snapshot

from service.app.status_command import status_view
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.certificates import gate, grouping_certificate
from service.serving.documents.groups import group_table
from service.serving.documents.models import model_state
from service.statistics.certificates import Collected

TARGET = 0.8


def taken(log_e: tuple[float, float, float], correct: tuple[int, int, int] = (90, 90, 90)) -> ModelSnapshot:
    """A snapshot whose classes have so much evidence, and so many correct ones of 100 labels."""
    found = snapshot(30, alerts={"min_accuracy": TARGET})
    grouping = found.groupings["class"]
    evidence = grouping.evidence
    assert evidence is not None
    assert evidence.certificate is not None
    summed = (np.full(3, 100.0), np.array(correct, np.float64), np.array(log_e))
    collected: Collected = evidence.certificate.test.collected(*(column[None] for column in summed))
    none = {kind: np.zeros(3, np.bool_) for kind in evidence.confirmed}
    certificate = replace(evidence.certificate, collected=collected)
    evidence = replace(evidence, certificate=certificate, confirmed=none)
    return replace(found, groupings=found.groupings | {"class": replace(grouping, evidence=evidence)})


def sentence(snapshot: ModelSnapshot) -> str:
    found = grouping_certificate(snapshot, "class")
    assert found is not None
    return found.sentence


def test_a_certificate_says_which_share_of_traffic_it_covers_and_how_sure_it_is() -> None:
    assert sentence(taken((9.0, 9.0, 9.0))) == (
        "Certificate: All 3 groups are shown to meet 80%, 100.0% of the traffic. "
        "False in at most 5% of models, valid at every moment."
    )


def test_groups_that_lack_labels_are_named_those_that_lack_most_first() -> None:
    found = sentence(taken((9.0, 1.0, 0.0)))
    assert found.startswith("No certificate yet: 1 of 3 groups are shown to meet 80%. About ")
    assert found.index("owl (") < found.index("dog (")


def test_groups_that_are_not_expected_to_meet_the_threshold_are_named() -> None:
    found = sentence(taken((9.0, 9.0, 0.0), (90, 90, 40)))
    assert found == "No certificate yet: 2 of 3 groups are shown to meet 80%. Not expected to: owl."


def test_every_group_says_how_many_labels_it_lacks() -> None:
    groups = {one.group: one for one in group_table(taken((9.0, 1.0, 0.0), (90, 90, 40)), "class").groups}
    assert groups["cat"].certificate_labels == 0
    assert groups["dog"].certificate_labels is not None
    assert groups["dog"].certificate_labels > 0
    assert groups["owl"].certificate_labels is None


def test_without_a_threshold_there_is_no_certificate() -> None:
    state = model_state(snapshot(30), now=NOW, tick_seconds=5.0)
    assert {one.certificate for one in state.groupings} == {None}


def test_the_terminal_says_how_many_labels_are_lacking() -> None:
    console = Console(width=80, file=io.StringIO())
    console.print(status_view([taken((9.0, 1.0, 0.0))], now=NOW, tick_seconds=5.0))
    assert "No certificate yet" in console.file.getvalue()


def left_out(snapshot: ModelSnapshot, group: str) -> ModelSnapshot:
    """The same, where certificates leave out a class."""
    grouping = snapshot.groupings["class"]
    needed = np.array([name != group for name in grouping.groups])
    return replace(
        snapshot, groupings=snapshot.groupings | {"class": replace(grouping, in_certificate=needed)}
    )


def test_page_and_gate_leave_out_the_same_groups() -> None:
    found = left_out(taken((9.0, 9.0, 0.0)), "owl")
    assert sentence(found).startswith("Certificate: All 2 groups are shown to meet 80%")
    groups = {one.group: one.certificate_labels for one in group_table(found, "class").groups}
    assert groups == {"cat": 0, "dog": 0, "owl": None}


def test_groups_with_too_little_traffic_are_left_out_of_a_gate() -> None:
    found = taken((9.0, 9.0, 0.0))
    assert gate(found, ["class"]).outcome == "undecided"
    found = left_out(found, "owl")
    left = gate(found, ["class"])
    assert left.outcome == "shown"
    assert [one.outcome for one in left.groupings[0].group_certificates] == ["shown", "shown", "excluded"]


def test_several_groupings_are_shown_once_all_are() -> None:
    found = taken((9.0, 9.0, 9.0))
    assert gate(found, ["class"]).outcome == "shown"
    assert gate(found, ["class", "all"]).outcome == "undecided"


def test_sentences_name_the_threshold_of_the_group() -> None:
    groups = {"dog": {"min_accuracy": 0.4}, "owl": {"min_accuracy": None}}
    found = snapshot(200, alerts={"min_accuracy": 0.7, "groupings": {"class": {"groups": groups}}})
    (by_class,) = gate(found, ["class"]).groupings
    assert [(one.outcome, one.sentence) for one in by_class.group_certificates] == [
        ("shown", "Shown to meet 70%."),
        ("shown", "Shown to meet 40%."),
        ("excluded", "Left out: no threshold."),
    ]
    assert by_class.sentence.startswith(
        "Certificate: All 2 groups are shown to meet their thresholds of 40% to 70%, "
    )
