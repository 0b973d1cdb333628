"""Evidence from labels that nobody requested: an even sample of all traffic is one of every group."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traffic_tables import every_cell, traffic_of

from service.config.model import ModelSettings
from service.config.unrequested import ChosenBy
from service.domain.cells import CellSpace, definitions
from service.domain.groupings import ALL, ByAttribute, ByClass, Everything
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import due_checkpoint, model_evidence
from service.monitoring.outcome_aggregates import EXPIRED_CLASS
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.weighted_labels import weigh_labels
from service.store.checkpoints import EvidenceCheckpoint
from service.store.outcome_entries import OutcomeEntry
from service.store.records import ABSENT, EXPIRED, Fact, LabelFact

REGIONS = ("north", "south")
SPACE = CellSpace(
    ("cat", "dog"),
    (0.5,),
    {ALL: Everything(ALL), "region": ByAttribute("region", "region"), "class": ByClass("class")},
)
MODEL = ModelSettings.model_validate(
    {
        "classes": ["cat", "dog"],
        "alerts": {"min_accuracy": 0.8},
        "reference": {"labels": 20},
        "groupings": {"region": {"by": "attribute", "attribute": "region"}},
        "assessments": {"ask": {"grouping": "region", "budget": {"labels": 9}}},
    }
)
LIMIT = 40
RETRACTED = "retracted"


def entry(
    number: int,
    right: bool | None,
    *,
    region: str = "",
    requested: bool = False,
    item: int = -1,
    ago: float = 1_000.0,
) -> OutcomeEntry:
    """An outcome of second `number`; None without a label. It was predicted `ago` seconds before `item`."""
    region, item = region or REGIONS[number % 2], number if item < 0 else item
    drawn = (f"r{number}", f"i{item}", "region", region) if requested else ("", f"i{item}", ALL, ALL)
    definition = definitions(SPACE)["region"] if requested else b""
    predicted = item - ago
    arrived = float(number) if requested else predicted + 1
    fact = Fact(*drawn, "cat", 0.7, {"region": region}, predicted, arrived, definition=definition)
    label = LabelFact("cat" if right else "dog", float(number), "")
    if right is None:
        label = LabelFact("", float(number), "", unanswered=ABSENT)
    position = (1_000 * number, 0)
    return OutcomeEntry(position, position, "ask" if requested else "", fact, label)


def ledger_of(entries: list[OutcomeEntry], items: ChosenBy = "census") -> OutcomeLedger:
    ledger = OutcomeLedger(SPACE, unrequested=items)
    ledger.fold(entries)
    ledger.place()
    return ledger


def index_of(ledger: OutcomeLedger) -> GroupIndex:
    cells = every_cell(SPACE, [(region,) for region in REGIONS])
    return GroupIndex(SPACE, traffic_of(SPACE, cells), ledger.cells)


def evidence(
    ledger: OutcomeLedger, checkpoint: EvidenceCheckpoint | None = None
) -> dict[str, GroupingEvidence]:
    return model_evidence(
        settings=MODEL,
        index=index_of(ledger),
        ledger=ledger,
        open_requests={},
        reference=None,
        checkpoint=checkpoint,
        before={},
    )


def confirmed(found: dict[str, GroupingEvidence], name: str = "region") -> dict[str, bool]:
    """Whether each group's accuracy is confirmed to be below the threshold."""
    low = found[name].confirmed["below_threshold"].tolist()
    return dict(zip(found[name].groups, low, strict=True))


def test_a_group_is_confirmed_from_labels_that_nobody_requested() -> None:
    entries = [entry(number, number % 2 == 0 or number % 4 == 1) for number in range(400)]
    found = evidence(ledger_of(entries))
    assert found.keys() == {ALL, "region", "class"}
    assert confirmed(found) == {"north": False, "south": True}


def test_self_selected_labels_are_no_evidence() -> None:
    entries = [entry(number, False) for number in range(400)]
    assert evidence(ledger_of(entries, "unknown")) == {}


def test_requests_are_evidence_as_if_there_were_no_self_selected_labels() -> None:
    requested = [entry(number, number % 3 > 0, requested=True) for number in range(0, 60, 2)]
    others = [entry(number, True) for number in range(1, 60, 2)]
    mixed = sorted(requested + others, key=lambda each: each.position)
    found, alone = evidence(ledger_of(mixed, "unknown")), evidence(ledger_of(requested, "unknown"))
    assert found.keys() == alone.keys() == {"region"}
    for name, values in vars(found["region"].state).items():
        np.testing.assert_allclose(values, getattr(alone["region"].state, name), err_msg=name)


@pytest.mark.parametrize("reason", [EXPIRED, RETRACTED])
def test_complaints_about_requests_that_ended_without_a_label_are_no_evidence(reason: str) -> None:
    entries, answered = list[OutcomeEntry](), list[OutcomeEntry]()
    for number in range(0, 600, 6):
        asked = entry(number, number % 30 > 0, requested=True)
        if number % 12:
            answered.append(asked)
        elif reason == EXPIRED:
            label = LabelFact("", float(number), "", unanswered=EXPIRED)
            asked = OutcomeEntry(asked.position, asked.of, asked.assessment, asked.fact, label)
        entries.append(asked)
        if number % 12 == 0 and reason == RETRACTED:
            retracted = LabelFact("", number + 1.0, "")
            entries.append(
                OutcomeEntry((1_000 * number + 1, 0), asked.position, "ask", asked.fact, retracted)
            )
        entries.append(entry(number + 1, None if number % 12 else False, region="north", item=number))
    ledger, alone = ledger_of(entries, "unknown"), ledger_of(answered, "unknown")
    found, expected = evidence(ledger), evidence(alone)
    assert found["region"].state.labels.sum() == 50
    for name, values in vars(found["region"].state).items():
        np.testing.assert_allclose(values, getattr(expected["region"].state, name), err_msg=name)
    weights = weigh_labels(index_of(ledger), ledger, decay=0.0, run_length=100.0, now=1e9)
    others = weigh_labels(index_of(alone), alone, decay=0.0, run_length=100.0, now=1e9)
    np.testing.assert_allclose(weights.changed["region"], others.changed["region"])


def test_a_complaint_replaces_the_worst_case_of_its_request() -> None:
    asked = entry(0, True, requested=True)
    label = LabelFact("", 0.0, "", unanswered=EXPIRED)
    asked = OutcomeEntry(asked.position, asked.of, asked.assessment, asked.fact, label)
    ledger = ledger_of([asked, entry(1, False, region="north", item=0)], "unknown")
    assert not len(ledger.label_sequence("region").places)
    sequence = ledger.label_sequence("region", unanswered={EXPIRED_CLASS})
    assert (sequence.unanswered.tolist(), sequence.correct.tolist()) == ([False], [False])


def test_absent_labels_lower_evidence_at_least_as_much_as_any_labels_would() -> None:
    said = [False, False, True, None, False, False, None, False, None, False, False, False] * 2
    absent = [number for number, right in enumerate(said) if right is None][:3]
    entries = [entry(2 * number, right) for number, right in enumerate(said)]
    with_absent = evidence(ledger_of(entries))["region"].state
    for labels in product((False, True), repeat=len(absent)):
        known = dict(zip(absent, labels, strict=True))
        tried = [entry(2 * number, known.get(number, right)) for number, right in enumerate(said)]
        state = evidence(ledger_of(tried))["region"].state
        assert with_absent.below[0] <= state.below[0] + 1e-9  # of the only region with labels
        assert with_absent.lower[0] <= state.lower[0] + 1e-9
        assert with_absent.upper[0] >= state.upper[0] - 1e-9


def test_a_label_with_two_sources_counts_once() -> None:
    both = [
        each
        for number in range(0, 120, 2)
        for each in (
            entry(number, number % 3 > 0, requested=True, region="north"),
            entry(1_000 + number, number % 3 > 0, item=number, region="north"),
        )
    ]
    both.sort(key=lambda each: each.position)
    requested = [each for each in both if not each.is_unrequested]
    found, alone = evidence(ledger_of(both)), evidence(ledger_of(requested))
    for name, values in vars(found["region"].state).items():
        np.testing.assert_allclose(values, getattr(alone["region"].state, name), err_msg=name)
    assert found["class"].state.labels.sum() == 60


def test_a_change_is_dated_by_predictions() -> None:
    entries = [entry(number, number < 600 or number % 3 == 0) for number in range(1_200)]
    (change,) = evidence(ledger_of(entries))[ALL].changes.values()
    assert change.at == change.predicted_at
    assert abs(change.at - (600 - 1_000)) < 20


def test_changes_are_sought_in_even_samples_alone() -> None:
    entries = [entry(number, number < 300) for number in range(600)]
    for items, expected in (("census", {ALL, "region", "class"}), ("unknown", set())):
        ledger = ledger_of(entries, items)  # type: ignore[arg-type]
        found = weigh_labels(index_of(ledger), ledger, decay=0.0, run_length=1_000.0, now=1e9)
        assert set(found.change_points) == expected


labels = st.lists(
    st.tuples(st.sampled_from([True, False, None]), st.booleans()), min_size=LIMIT, max_size=4 * LIMIT
)


def rounds(
    entries: list[OutcomeEntry], limit: int, every: int
) -> Iterator[tuple[OutcomeLedger, EvidenceCheckpoint | None]]:
    """The ledger of a stream that keeps few outcomes, and the checkpoint, after each few entries."""
    checkpoint, ledger = None, OutcomeLedger(SPACE, unrequested="census", outcome_limit=limit)
    for begin in range(0, len(entries), every):
        ledger.fold(entries[begin : begin + every])
        if begin + every < len(entries):
            ledger.forget(entries[max(0, begin + every - limit)].position)
        ledger.place()
        due = due_checkpoint(
            settings=MODEL,
            index=index_of(ledger),
            ledger=ledger,
            open_requests={},
            reference=None,
            checkpoint=checkpoint,
            outcome_limit=limit,
        )
        if due is not None:  # as it is stored
            checkpoint = msgspec.msgpack.decode(msgspec.msgpack.encode(due), type=EvidenceCheckpoint)
        yield ledger, checkpoint


def trimmed_evidence(entries: list[OutcomeEntry], every: int) -> dict[str, GroupingEvidence]:
    """From a stream that keeps few outcomes, and the checkpoint."""
    *_, (ledger, checkpoint) = rounds(entries, LIMIT, every)
    return evidence(ledger, checkpoint)


@settings(deadline=None, max_examples=25)
@given(labels, st.integers(3, 11))
def test_what_the_stream_lets_go_of_goes_on_to_count(
    said: list[tuple[bool | None, bool]], every: int
) -> None:
    entries = [
        entry(number, right, requested=requested, ago=0.0) for number, (right, requested) in enumerate(said)
    ]
    found, expected = trimmed_evidence(entries, every), evidence(ledger_of(entries))
    assert found.keys() == expected.keys()
    for name, there in found.items():
        assert there.watched.numbers.tolist() == expected[name].watched.numbers.tolist()
        for column, values in vars(there.state).items():
            estimated = getattr(expected[name].state, column)
            assert values == pytest.approx(estimated, nan_ok=True, rel=1e-9, abs=1e-9), column


@pytest.mark.parametrize("lag", [1, 3, 8, 15, 30, 60])
@pytest.mark.parametrize("census_first", [False, True])
def test_a_prediction_of_which_one_outcome_was_trimmed_counts_once(lag: int, *, census_first: bool) -> None:
    entries = [
        each
        for item in range(0, 400, 2)
        for each in (
            entry(item, item % 3 > 0, requested=not census_first, region="north", item=item, ago=0.0),
            entry(
                item + 2 * lag + 1, item % 3 > 0, requested=census_first, region="north", item=item, ago=0.0
            ),
        )
    ]
    entries.sort(key=lambda each: each.position)
    found = trimmed_evidence(entries, 5)
    assert found["region"].state.labels.max() <= 200
    assert found["class"].state.labels.max() == 200  # nobody requests labels by class
    if not census_first or lag <= 3:
        assert found["region"].state.labels.max() == 200


@pytest.mark.parametrize("ago", [10, 60, 130, 190, 500])
def test_an_outcome_that_has_counted_goes_on_to_count(ago: int) -> None:
    """In a grouping that labels are requested for, where the census comes so many outcomes late."""
    limit, counted = 200, 0.0
    entries = [entry(number, True, region="north", ago=float(ago)) for number in range(1_000)]
    for ledger, checkpoint in rounds(entries, limit, 20):
        found = evidence(ledger, checkpoint).get("region")
        now = 0.0 if found is None else float(found.state.labels.sum())
        assert now >= counted
        counted = now
    # Before the first ones there was nothing that could be trimmed.
    assert counted == (len(entries) if ago <= limit / 8 else limit / 8 + 1)
