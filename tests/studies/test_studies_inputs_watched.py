"""Looks at streams of predictions whose inputs change, without labels."""

from __future__ import annotations

import numpy as np
import pytest
from replay_examples import recording
from traffic_tables import JointCell, traffic_of

from benchmarks.studies.inputs_items import Change, Items
from benchmarks.studies.inputs_watched import (
    CHANGED,
    CHANGING,
    DRIFT,
    HEALTHY,
    MEASURES,
    ROUND,
    WINDOW,
    Stream,
    Watched,
    watch,
)
from service.config.settings import Settings
from service.domain.traffic_counts import TrafficCounts
from service.domain.traffic_marks import SLOTS_PER_WINDOW, Mark, Timeline, open_mark
from service.monitoring.drift import GroupingDrift, model_drift
from service.monitoring.group_index import GroupIndex
from service.monitoring.label_encoding import LabelCells
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groupings
from service.monitoring.traffic_windows import compared_traffic, traffic_windows
from service.replay.recording import Recording
from service.store.references import ReferenceWindow

GROUPS = 4
CLASSES = 3

BEGAN = 92_593 * 10_800.0
EVERY = DRIFT.slots.seconds
REFERENCE = ReferenceWindow(-np.inf, BEGAN + (SLOTS_PER_WINDOW - 1) * EVERY, BEGAN)
"""Traffic of a first window, at the end of which the service looks for the eighth time."""


def of_classes(counts: list[int]) -> Recording:
    """So many items of every class, whose score tells the class; a fifth of them are wrong."""
    predicted = np.repeat(np.arange(CLASSES), counts)
    scores = np.array([0.55, 0.75, 0.95])[predicted]
    probabilities = np.repeat((1 - scores)[:, None] / (CLASSES - 1), CLASSES, axis=1)
    probabilities[np.arange(len(predicted)), predicted] = scores
    wrong = np.arange(len(predicted)) % 5 == 0
    return Recording("model", probabilities, np.where(wrong, (predicted + 1) % CLASSES, predicted))


ITEMS = Items.of(of_classes([20, 30, 50]), [of_classes([50, 30, 20])], bin_count=10, binning="equal_width")
TURNED = ITEMS.of_recording("turned", 1, 1.0)


def stream(change: Change, seed: int = 0) -> Stream:
    return Stream(ITEMS, change, GROUPS, (seed,))


def test_every_round_has_as_many_predictions_spread_over_all_groups() -> None:
    for counts in stream(TURNED).traffic():
        assert (counts.sum(axis=(1, 2)) == ROUND).all()
        shares = counts.sum(axis=(0, 2)) / (ROUND * (HEALTHY + CHANGED))
        assert shares == pytest.approx(1 / GROUPS, abs=0.01)


def test_only_one_group_changes_and_only_then() -> None:
    _, classes = stream(TURNED).traffic()
    after = classes[HEALTHY:].sum(axis=0)
    np.testing.assert_allclose(after[CHANGING] / after[CHANGING].sum(), [0.5, 0.3, 0.2], atol=0.02)
    others = classes.sum(axis=0)[CHANGING + 1 :].sum(axis=0) + classes[:HEALTHY, CHANGING].sum(axis=0)
    np.testing.assert_allclose(others / others.sum(), [0.2, 0.3, 0.5], atol=0.01)


COMPARED = range(HEALTHY, HEALTHY + CHANGED, SLOTS_PER_WINDOW - 1)
"""Looks at full windows; so far apart that they are at all times of a window."""


def in_service(made: Stream) -> dict[int, tuple[GroupingDrift, GroupingDrift]]:
    """Estimates of the groups, and of all traffic, at the looks that are compared."""
    names = [f"c{place}" for place in range(CLASSES)]
    settings = Settings.model_validate(
        {
            "models": {
                "m": {
                    "classes": names,
                    "groupings": {
                        "region": {"by": "attribute", "attribute": "region"},
                        "class": {"by": "predicted_class"},
                    },
                    "traffic_half_life_days": None,
                }
            }
        }
    )
    model, space = settings.models["m"], settings.cell_space("m")
    of_bin = np.array([5, 7, 9])
    counts = np.zeros((GROUPS, CLASSES, 10), np.int64)
    marks: dict[Mark, TrafficCounts] = {}
    found: dict[int, tuple[GroupingDrift, GroupingDrift]] = {}
    for number, classes in enumerate(made.traffic()[1]):
        for place, score_bin in enumerate(of_bin):
            counts[:, place, score_bin] += classes[:, place]
        now = BEGAN + number * EVERY
        traffic = traffic_of(
            space,
            [
                JointCell((f"r{group}",), place, score_bin, int(count), float(count), float(count))
                for (group, place, score_bin), count in np.ndenumerate(counts)
            ],
            landmark=now,
        )
        counted = TrafficCounts.of(traffic)
        marks[Mark(now, now, counted.predictions)] = counted
        if number not in COMPARED:
            continue
        index = GroupIndex(space, traffic, LabelCells(space))
        groupings = assess_groupings(
            settings=model,
            index=index,
            probability_sums={},
            ledger=OutcomeLedger(space),
            at=now,
        )
        timeline = Timeline({0: (*marks, open_mark(now, counted.predictions))})
        windows = traffic_windows(timeline, REFERENCE, model.drift, now=now)
        assert windows is not None
        at = {mark.until: before for mark, before in marks.items()}
        drift = model_drift(
            index=index,
            settings=model.drift,
            compared=None if windows is None else compared_traffic(windows, at, counted, now=now),
            groupings=groupings,
            now=now,
        )
        assert drift is not None
        found[number] = drift.groupings["region"], drift.groupings["all"]
    return found


def test_a_look_tells_what_the_service_would_of_the_same_traffic() -> None:
    made = stream(TURNED)
    seen = watch(made)
    for number, (region, everything) in in_service(made).items():
        np.testing.assert_allclose(seen.excess["scores"][number], region.mixes["score"].excess)
        np.testing.assert_allclose(seen.excess["classes"][number], region.mixes["predicted_class"].excess)
        np.testing.assert_array_equal(seen.flagged("any")[number], region.drifted)
        np.testing.assert_allclose(seen.all_traffic[number], everything.score[0])


def test_nothing_has_drifted_before_there_is_a_window_to_compare() -> None:
    seen = watch(stream(TURNED))
    early = 2 * SLOTS_PER_WINDOW - 1
    assert not seen.drift_scores[:early].any()
    assert not seen.expected[:early].any()
    assert seen.expected[early:].all()


def test_a_group_whose_inputs_change_has_drifted_within_a_window_and_no_other() -> None:
    seen = watch(stream(TURNED))
    for measure in MEASURES:
        flagged = seen.flagged(measure)
        assert flagged[HEALTHY + SLOTS_PER_WINDOW :, CHANGING].all()
        assert not flagged[:HEALTHY].any()
        assert not flagged[:, CHANGING + 1 :].any()


def test_scores_promise_what_their_bins_reach_once_a_window_is_of_new_items() -> None:
    seen = watch(stream(TURNED))
    promised = ITEMS.by_bin(TURNED) @ ITEMS.bin_accuracies
    # Five standard errors of a window's group.
    late = 5 * 0.5 / np.sqrt(WINDOW / GROUPS)
    assert seen.expected[HEALTHY + SLOTS_PER_WINDOW :, CHANGING] == pytest.approx(promised, abs=late)


def test_labels_that_turn_change_nothing_that_is_seen_without_them() -> None:
    silent = ITEMS.labels_alone(0.3)
    assert silent is not None
    found: list[Watched] = [watch(stream(change)) for change in (silent, ITEMS.healthy)]
    np.testing.assert_array_equal(found[0].drift_scores, found[1].drift_scores)
    assert not found[0].drift_scores.any()


def test_the_seed_alone_decides() -> None:
    one, same, other = (watch(stream(TURNED, seed)).drift_scores for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_recorded_bins_without_an_item_make_no_comparison() -> None:
    made = Items.of(recording([30, 30]), [], bin_count=10, binning="equal_width")
    bins = np.unique(made.bins).size
    assert bins < made.bin_count
    assert Stream(made, made.healthy, GROUPS, (0,)).comparisons == 3 * (GROUPS + bins + 2 + 1)
