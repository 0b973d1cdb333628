"""What labels that nobody requested weigh, and what is imputed if they are self-selected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from traffic_tables import JointCell, traffic_of

from service.config.unrequested import ChosenBy
from service.domain.cells import CellSpace
from service.domain.groupings import ALL, ByAttribute, Everything
from service.domain.traffic import Traffic
from service.domain.traffic_counts import TrafficCounts
from service.monitoring.absent_learning import LearnedAccuracies, learn_accuracies, requested_items
from service.monitoring.change_discounting import ChangeDiscounts
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_aggregates import ABSENT as ABSENT_CLASSES
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groups
from service.monitoring.traffic_windows import traffic_history
from service.monitoring.weighted_labels import WeightedLabels, _weigh, weigh_labels
from service.statistics.mixed_beliefs import mixed_beliefs
from service.store.outcome_entries import OutcomeEntry
from service.store.records import ABSENT, SKIPPED, Fact, LabelFact

SPACE = CellSpace(("cat", "dog"), (), {ALL: Everything(ALL), "region": ByAttribute("region", "region")})
NORTH, SOUTH = "north", "south"


def entries_of(
    region: str, labels: Sequence[str], *, items: Sequence[int], requested: bool = False, at: float = 7.0
) -> list[OutcomeEntry]:
    """Outcomes of a region: each a class, or why there is none."""
    made = []
    for item, label in zip(items, labels, strict=True):
        name = f"{region}-{item}"
        drawn = (f"r-{name}", name, "region", region) if requested else ("", name, ALL, ALL)
        fact = Fact(*drawn, "cat", 0.5, {"region": region}, at, at)
        given = LabelFact(label if label in SPACE.classes else "", 9.0, "")
        if not given.true_class:
            given = LabelFact("", 9.0, "", unanswered=label)
        made.append(OutcomeEntry((0, 0), (0, 0), "ask" if requested else "", fact, given))
    return made


def weighed(
    entries: list[OutcomeEntry],
    items: ChosenBy,
    *,
    traffic: dict[str, int],
    before: dict[str, int] | None = None,
    unanswered: frozenset[int] = frozenset(),
    trimmed: int = 0,
) -> tuple[WeightedLabels, GroupIndex]:
    """Labels with their weights; `before` is the traffic until second 5.

    The first `trimmed` entries are read, and then forgotten.
    """
    ledger = OutcomeLedger(SPACE, unrequested=items)
    ledger.fold(
        [
            OutcomeEntry((number, 0), (number, 0), each.assessment, each.fact, each.label)
            for number, each in enumerate(entries)
        ]
    )
    ledger.place()
    ledger.forget((trimmed, 0))
    ledger.place()
    seen, history = counted(traffic), None
    if before is not None:
        history = traffic_history([5.0], {5.0: TrafficCounts.of(counted(before))}, TrafficCounts.of(seen))
    index = GroupIndex(SPACE, seen, ledger.cells, history)
    absent = learned(index, ledger, unanswered) if items == "unknown" else None
    found = weigh_labels(
        index, ledger, decay=0.0, run_length=None, now=1e9, unanswered=unanswered, absent=absent
    )
    return found, index


def learned(index: GroupIndex, ledger: OutcomeLedger, unanswered: frozenset[int]) -> LearnedAccuracies | None:
    """What all answered requests say of items without a label."""
    unchanged = ChangeDiscounts(None, {})
    weighed = _weigh(index, ledger, unchanged, decay=0.0, now=1e9, unanswered=unanswered | ABSENT_CLASSES)
    found = requested_items(index, ledger, weighed.sums, any_class=unanswered, at=1e9)
    return None if found is None else learn_accuracies(found)


def counted(traffic: dict[str, int]) -> Traffic:
    cells = [JointCell((name,), 0, 0, count, float(count), count / 2) for name, count in traffic.items()]
    return traffic_of(SPACE, cells)


def share_of(found: WeightedLabels, index: GroupIndex, region: str) -> float:
    """Share of the weight of all labels that a region's have."""
    labels, groups = found.labels, index["region"]
    worth = labels.weights * labels.freshness
    return float(worth[groups.cells[labels.cells] == groups.names.index(region)].sum() / worth.sum())


TRAFFIC = {NORTH: 900, SOUTH: 100}


@pytest.mark.parametrize("items", ["census", "sampled", "unknown"])
def test_requests_of_items_that_waited_too_do_not_change_weights(items: ChosenBy) -> None:
    entries = entries_of(NORTH, ["cat"] * 90, items=range(90)) + entries_of(
        SOUTH, ["dog"] * 10, items=range(10)
    )
    requested = entries_of(SOUTH, ["dog"] * 8, items=range(8), requested=True)
    found, index = weighed(entries + requested, items, traffic=TRAFFIC)
    assert found.count == 100
    assert share_of(found, index, SOUTH) == pytest.approx(0.1)


def test_other_requests_are_one_more_sample() -> None:
    entries = entries_of(NORTH, ["cat"] * 90, items=range(90)) + entries_of(
        SOUTH, ["dog"] * 10, items=range(10)
    )
    requested = entries_of(SOUTH, ["dog"] * 40, items=range(100, 140), requested=True)
    found, index = weighed(entries + requested, "census", traffic=TRAFFIC)
    # Of the south 100 labels per share of traffic of the one sample, and 40 / 0.1 of the other.
    weights = dict(
        zip(index["region"].cells[found.labels.cells].tolist(), found.labels.weights, strict=False)
    )
    assert weights[0] / weights[1] == pytest.approx(5.0)
    assert share_of(found, index, SOUTH) == pytest.approx(0.1)


@pytest.mark.parametrize(("first", "then"), [(100, 40), (10, 400), (300, 4)])
def test_the_rate_of_the_sample_may_change(first: int, then: int) -> None:
    before, now = {NORTH: 10_000, SOUTH: 10_000}, {NORTH: 40_000, SOUTH: 20_000}
    entries = [
        *entries_of(NORTH, ["cat"] * first, items=range(first), at=1.0),
        *entries_of(SOUTH, ["dog"] * first, items=range(first), at=1.0),
        *entries_of(NORTH, ["cat"] * (3 * then), items=range(1_000, 1_000 + 3 * then)),
        *entries_of(SOUTH, ["dog"] * then, items=range(1_000, 1_000 + then)),
    ]
    found, index = weighed(entries, "census", traffic=now, before=before)
    assert share_of(found, index, NORTH) == pytest.approx(0.75, abs=0.01)  # of the newest traffic


def ends(found: WeightedLabels, index: GroupIndex, grouping: str = ALL) -> tuple[np.ndarray, np.ndarray]:
    beliefs = [
        assess_groups(index[grouping], index.cells.bins, each, prior="learned") for each in found.imputed
    ]
    lower, upper = mixed_beliefs(beliefs).accuracy.interval(0.95)
    return lower, upper


def test_without_absent_items_nothing_is_imputed() -> None:
    found, _ = weighed(entries_of(NORTH, ["cat"] * 30, items=range(30)), "unknown", traffic=TRAFFIC)
    assert not found.is_selected
    assert found.imputed == ()


def test_without_requests_absent_items_may_all_be_correct_or_all_incorrect() -> None:
    labels = ["cat"] * 450 + ["dog"] * 50 + [ABSENT] * 500
    found, index = weighed(entries_of(NORTH, labels, items=range(1_000)), "unknown", traffic={NORTH: 1_000})
    lower, upper = ends(found, index)
    assert lower[0] == pytest.approx(0.45, abs=0.03)
    assert upper[0] == pytest.approx(0.95, abs=0.03)


def test_with_many_requests_absent_items_are_like_those_that_were_requested() -> None:
    labels = ["cat"] * 2_850 + ["dog"] * 150 + [ABSENT] * 3_000
    answers = ["cat"] * 600 + ["dog"] * 400
    entries = entries_of(NORTH, labels, items=range(6_000))
    entries += entries_of(NORTH, answers, items=range(3_000, 4_000), requested=True)
    found, index = weighed(entries, "unknown", traffic={NORTH: 6_000})
    lower, upper = ends(found, index)
    error = 0.5 * np.sqrt(0.6 * 0.4 / 1_000)
    assert (lower[0] + upper[0]) / 2 == pytest.approx(0.5 * 0.95 + 0.5 * 0.6, abs=0.005)
    # A third of the absent items were requested (Hansen and Hurwitz, 1946).
    variance = 0.775 * 0.225 / 6_000 + 2 / 3 * error**2
    assert upper[0] - lower[0] == pytest.approx(3.92 * np.sqrt(variance), rel=0.1)
    bias = found.selection_bias
    assert bias is not None
    assert bias.mean() == pytest.approx(0.5 * (0.95 - 0.6), abs=0.005)
    assert bias.std() == pytest.approx(error, rel=0.3)


def test_requests_that_did_not_wait_say_as_much_as_alone() -> None:
    labels = ["cat"] * 2_850 + ["dog"] * 150 + [ABSENT] * 3_000
    entries = entries_of(NORTH, labels, items=range(6_000))
    answers = ["cat"] * 775 + ["dog"] * 225
    entries += entries_of(NORTH, answers, items=range(6_000, 7_000), requested=True)
    found, index = weighed(entries, "unknown", traffic={NORTH: 6_000})
    lower, upper = ends(found, index)
    assert (lower[0] + upper[0]) / 2 == pytest.approx(0.775, abs=0.007)
    assert upper[0] - lower[0] < 1.1 * 3.92 * np.sqrt(0.775 * 0.225 / 1_000)


def test_labels_count_as_they_are_in_every_imputation() -> None:
    labels = ["cat"] * 60 + ["dog"] * 20 + [ABSENT] * 20
    entries = entries_of(NORTH, labels, items=range(100))
    entries += entries_of(NORTH, ["cat"] * 6 + ["dog"] * 4, items=range(80, 90), requested=True)
    found, _ = weighed(entries, "unknown", traffic={NORTH: 100})
    for each in found.imputed:
        worth = each.weights * each.freshness
        assert each.freshness.sum() == pytest.approx(100)
        assert 66 <= (each.freshness * each.correct).sum() <= 76
        assert worth.sum() == pytest.approx(1.0)


def test_requests_that_were_skipped_may_have_any_true_class() -> None:
    entries = entries_of(NORTH, ["cat"] * 500 + [ABSENT] * 500, items=range(1_000))
    answers = ["cat"] * 200 + [SKIPPED] * 200
    entries += entries_of(NORTH, answers, items=range(500, 900), requested=True)
    skipped = frozenset({-3, -6})
    found, index = weighed(entries, "unknown", traffic={NORTH: 1_000}, unanswered=skipped)
    lower, upper = ends(found, index)
    assert lower[0] == pytest.approx(0.75, abs=0.04)
    assert upper[0] > 0.98
    assert found.requested is not None
    assert (found.requested.true_classes < -1).sum() == 0 or found.requested.counts is not None


def test_the_same_outcomes_are_imputed_alike() -> None:
    entries = entries_of(NORTH, ["cat"] * 50 + [ABSENT] * 50, items=range(100))
    first, again = (weighed(entries, "unknown", traffic={NORTH: 100})[0] for _ in range(2))
    for one, other in zip(first.imputed, again.imputed, strict=True):
        np.testing.assert_array_equal(one.freshness, other.freshness)


def test_imputations_do_not_depend_on_what_was_trimmed() -> None:
    regions = ["west", NORTH, "east", SOUTH, "centre"]
    trimmed = [each for region in reversed(regions) for each in entries_of(region, ["cat"], items=[0])]
    entries = list[OutcomeEntry]()
    for number, region in enumerate(regions, 1):
        entries += entries_of(region, ["cat"] * 20 + [ABSENT] * 20, items=range(100, 140))
        entries += entries_of(
            region, ["cat"] * (2 * number) + ["dog"] * 6, items=range(120, 126 + 2 * number), requested=True
        )
    traffic = dict.fromkeys(regions, 40)
    running, index = weighed(trimmed + entries, "unknown", traffic=traffic, trimmed=len(trimmed))
    restarted, fresh = weighed(entries, "unknown", traffic=traffic)
    for grouping in (ALL, "region"):
        for found, expected in zip(
            ends(running, index, grouping), ends(restarted, fresh, grouping), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=1e-9)
    assert running.selection_bias is not None
    assert restarted.selection_bias is not None
    np.testing.assert_allclose(running.selection_bias, restarted.selection_bias, atol=1e-9)


@pytest.mark.parametrize("answers", [[], ["dog"] * 10, ["cat"] * 10])
def test_if_no_answer_says_otherwise_ends_are_those_of_the_worst_case(answers: list[str]) -> None:
    labels = ["cat"] * 9_000 + ["dog"] * 1_000 + [ABSENT] * 10_000
    entries = entries_of(NORTH, labels, items=range(20_000))
    entries += entries_of(NORTH, answers, items=range(10_000, 10_000 + len(answers)), requested=True)
    found, index = weighed(entries, "unknown", traffic={NORTH: 20_000})
    (lower,), (upper,) = ends(found, index)
    assert found.selection_bias is not None
    bias = np.quantile(found.selection_bias, (0.025, 0.975))
    if "cat" not in answers:
        assert 0.435 < lower < 0.45
        assert 0.45 < bias[1] < 0.46
    if "dog" not in answers:
        assert 0.95 < upper < 0.96
        assert -0.06 < bias[0] < -0.05
    assert (upper - lower > 0.4) == (not answers)


def test_with_correct_and_incorrect_answers_no_end_is_the_worst_case() -> None:
    entries = entries_of(NORTH, ["cat"] * 500 + [ABSENT] * 500, items=range(1_000))
    entries += entries_of(NORTH, ["cat"] * 5 + ["dog"] * 5, items=range(500, 510), requested=True)
    found, index = weighed(entries, "unknown", traffic={NORTH: 1_000})
    (lower,), (upper,) = ends(found, index)
    assert 0.53 < lower < upper < 0.97
