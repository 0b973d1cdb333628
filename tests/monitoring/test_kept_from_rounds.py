"""What a round keeps of the last one: evidence and changes are as if all labels were looked at anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traffic_tables import every_cell, traffic_of

from service.config.model import ModelSettings
from service.domain.cells import CellSpace
from service.domain.groupings import ByAttribute, ByClass, Everything
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import model_evidence
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.weighted_labels import WeightedLabels, weigh_labels
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact
from service.store.references import ReferenceWindow

CLASSES = ("cat", "dog")
REGIONS = ("north", "south", "west")
SPACE = CellSpace(
    CLASSES,
    (0.5,),
    {
        "region": ByAttribute("region", "region"),
        "class": ByClass("class"),
        "all": Everything("all"),
    },
)
MODEL = ModelSettings.model_validate(
    {
        "classes": list(CLASSES),
        "alerts": {"min_accuracy": 0.8},
        "reference": {"labels": 4},
        # So much that some is confirmed of a few labels.
        "evidence": {"alpha": 0.5},
    }
)
COMBINATIONS = [("__other__",), *((name,) for name in REGIONS)]
TRAFFIC = [
    traffic_of(SPACE, every_cell(SPACE, seen))
    for seen in (COMBINATIONS[:3], COMBINATIONS, [COMBINATIONS[0], *COMBINATIONS[:0:-1]])
]
"""Without the west, with it, and all of them lost and found in another order."""

WINDOWS = (None, ReferenceWindow(20.0, 60.0, 0.0), ReferenceWindow(-np.inf, 50.0, 0.0))
RUN_LENGTH = 50


class Step(NamedTuple):
    """What becomes of the facts before a round: entries that come and go, and what else is there."""

    coming: int
    going: int
    traffic: int
    window: int


class Entry(NamedTuple):
    """What becomes of one item, or of one so many before it."""

    back: int | None
    region: int
    asked_by: str
    said: str


def stream(history: list[Entry]) -> list[OutcomeEntry]:
    """Entries in which every label may be corrected or retracted by a later one."""
    entries: list[OutcomeEntry] = []
    outcomes: list[OutcomeEntry] = []
    for number, estimated in enumerate(history):
        given_at = LabelFact(estimated.said, float(number), "")
        if estimated.back is not None and outcomes:
            of = outcomes[-1 - estimated.back % len(outcomes)]
            entries.append(OutcomeEntry((number, 0), of.of, of.assessment, of.fact, given_at))
            continue
        fact = Fact(
            request_id=f"request-{number}",
            item_id=f"item-{number}",
            grouping=estimated.asked_by,
            group="",
            predicted_class=CLASSES[number % 7 == 0],
            score=0.4 + number % 5 / 10,
            attributes={"region": REGIONS[estimated.region]},
            # Not in the order in which labels come.
            predicted_at=float(number * 37 % 101),
            requested_at=float(number),
        )
        outcomes.append(OutcomeEntry((number, 0), (number, 0), "a", fact, given_at))
        entries.append(outcomes[-1])
    return entries


def index_of(ledger: OutcomeLedger, number: int) -> GroupIndex:
    return GroupIndex(SPACE, TRAFFIC[number], ledger.cells)


def known(ledger: OutcomeLedger, traffic: int) -> WeightedLabels:
    index = index_of(ledger, traffic)
    return weigh_labels(index, ledger, decay=0.01, run_length=RUN_LENGTH, now=1e3)


def evidence(
    ledger: OutcomeLedger, traffic: int, window: int, before: Mapping[str, GroupingEvidence]
) -> dict[str, GroupingEvidence]:
    return model_evidence(
        settings=MODEL,
        index=index_of(ledger, traffic),
        ledger=ledger,
        open_requests={},
        reference=WINDOWS[window],
        checkpoint=None,
        before=before,
    )


def assert_same_evidence(
    found: Mapping[str, GroupingEvidence], expected: Mapping[str, GroupingEvidence]
) -> None:
    assert found.keys() == expected.keys()
    for name, there in found.items():
        anew = expected[name]
        assert there.groups == anew.groups
        for column, values in vars(there.state).items():
            assert values == pytest.approx(getattr(anew.state, column), nan_ok=True, rel=1e-12, abs=1e-12)
        assert there.changes == anew.changes
        np.testing.assert_array_equal(there.labels.counts, anew.labels.counts)
        np.testing.assert_array_equal(there.labels.marks, anew.labels.marks)
        for kind, confirmed in there.confirmed.items():
            assert confirmed.tolist() == anew.confirmed[kind].tolist()


def rows_of(ledger: OutcomeLedger, labels: WeightedLabels) -> list[tuple[float, ...]]:
    """What is known of every sum, whatever the order in which they are numbered."""
    estimated, cells = labels.labels, ledger.cells
    names, regions = cells.values("region")
    columns = [np.array([REGIONS.index(name) for name in names], np.intp)[regions], cells.classes, cells.bins]
    columns = [column[estimated.cells] for column in columns] + [estimated.correct]
    columns += [estimated.true_classes, estimated.freshness, estimated.weights]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


steps = st.lists(
    st.builds(Step, st.integers(0, 40), st.integers(0, 8), st.integers(0, 2), st.integers(0, 2)), max_size=6
)
entries = st.builds(
    Entry,
    st.one_of(st.none(), st.none(), st.none(), st.integers(0, 9)),
    st.integers(0, len(REGIONS) - 1),
    st.sampled_from(["region", "region", "region", "class", "gone"]),
    st.sampled_from(["cat", "cat", "dog", ""]),
)


@settings(deadline=None, max_examples=60)
@given(history=st.lists(entries, max_size=150), rounds=steps)
def test_a_round_after_others_finds_what_one_finds_that_looks_at_all_labels_anew(
    history: list[Entry], rounds: list[Step]
) -> None:
    estimated, ledger = stream(history), OutcomeLedger(SPACE)
    read = gone = 0
    before: dict[str, GroupingEvidence] = {}
    for step in rounds:
        ledger.fold(estimated[read : read + step.coming])
        read = min(len(estimated), read + step.coming)
        gone = min(gone + step.going, max(0, read - 1))
        ledger.forget((gone, 0))
        ledger.place()
        anew = OutcomeLedger(SPACE)
        anew.fold(estimated[gone:read])
        anew.place()

        before = evidence(ledger, step.traffic, step.window, before)
        assert_same_evidence(before, evidence(anew, step.traffic, step.window, {}))
        kept, fresh = known(ledger, step.traffic), known(anew, step.traffic)
        assert (kept.count, kept.label_counts, kept.change_points) == (
            fresh.count,
            fresh.label_counts,
            fresh.change_points,
        )
        np.testing.assert_allclose(rows_of(ledger, kept), rows_of(anew, fresh), rtol=1e-12)


def test_only_groups_with_other_labels_than_before_are_looked_at() -> None:
    estimated = stream([Entry(None, number % 3, "region", "cat") for number in range(60)])
    ledger = OutcomeLedger(SPACE)
    ledger.fold(estimated[:57])
    ledger.place()
    before = evidence(ledger, 1, 0, {})["region"]
    # Of what is known of the others nothing is computed anew, so what is wrong stays so.
    for column in (before.state.below, before.state.gains):
        column[:] = 5.0
    ledger.fold(estimated[57:58])
    ledger.place()
    after = evidence(ledger, 1, 0, {"region": before})["region"]
    there = [name == REGIONS[0] for name in after.groups]
    assert (after.state.below != 5.0).tolist() == there
    assert (after.state.gains != 5.0).any(axis=1).tolist() == there
