"""Labels of several people, from outcomes to imputations and estimates."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from benchmarks.several_labels import (
    NOW,
    People,
    World,
    labelled,
    learned,
    outcomes,
    predictions,
    settings_of,
    traffic_of,
)
from service.monitoring.imputed_labels import pooled
from service.monitoring.label_truth import IMPUTATIONS, LearnedTruth
from service.monitoring.weighted_labels import WeightedLabels, weigh_model_labels
from service.store.outcome_entries import OutcomeEntry

WORLD = World(labels=30)
SPACE = settings_of(WORLD).cell_space("m")
MODEL = settings_of(WORLD).models["m"]
ITEMS = predictions(WORLD, np.random.default_rng(1))
TRAFFIC = traffic_of(ITEMS, SPACE, WORLD)


def labels(count: int = 120) -> list[OutcomeEntry]:
    rng = np.random.default_rng(2)
    return outcomes(ITEMS, np.arange(count), People(WORLD, rng), SPACE)[0]


def learned_from(entries: list[OutcomeEntry]) -> LearnedTruth:
    truth = learned(*labelled(entries, SPACE, TRAFFIC), np.random.default_rng(3))
    assert truth is not None
    return truth


@cache
def truth_of_labels() -> LearnedTruth:
    return learned_from(labels())


def weighted(entries: list[OutcomeEntry]) -> WeightedLabels:
    ledger, index = labelled(entries, SPACE, TRAFFIC)
    return weigh_model_labels(MODEL, index, ledger, now=NOW, truth=truth_of_labels())


def test_every_imputation_has_every_item_once_with_the_weight_of_its_label() -> None:
    found = weighted(labels())
    assert len(found.imputed) == IMPUTATIONS
    plain = found.labels
    for each in found.imputed:
        assert len(each.cells) == found.count == 120
        assert (each.weights * each.freshness).sum() == pytest.approx((plain.weights * plain.freshness).sum())
        assert set(each.correct.tolist()) <= {0.0, 1.0}


def test_people_who_err_are_not_taken_at_their_word() -> None:
    found = weighted(labels())
    correct = np.array([each.correct for each in found.imputed])
    truth = ITEMS.correct[:120]
    # First labels say that more predictions are wrong than are.
    said = (found.labels.correct * found.labels.counts).sum() / found.count
    assert said < truth.mean() - 0.02
    assert correct.mean() == pytest.approx(truth.mean(), abs=0.04)
    assert ((correct.mean(axis=0) > 0.5) == truth).mean() > 0.9


def test_the_true_class_of_a_wrong_prediction_is_that_of_a_label() -> None:
    entries = labels()
    given: dict[str, set[str]] = {}
    for entry in entries:
        given.setdefault(entry.fact.item_id, set()).add(entry.label.true_class)
    for each in weighted(entries).imputed:
        for item, (correct, true) in enumerate(zip(each.correct, each.true_classes, strict=True)):
            predicted = int(ITEMS.predicted[item])
            if correct:
                assert true == predicted
            elif true >= 0:
                assert SPACE.classes[true] in given[f"i{item}"] - {SPACE.classes[predicted]}
            else:
                assert given[f"i{item}"] == {SPACE.classes[predicted]}


def test_items_are_imputed_alike_when_further_ones_come() -> None:
    entries = labels()
    few = [entry for entry in entries if int(entry.fact.item_id[1:]) < 50]
    before, after = weighted(few).imputed, weighted(entries).imputed
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.correct, other.correct[:50])


def test_imputations_pooled_count_once() -> None:
    found = weighted(labels())
    together = pooled(found.imputed)
    assert len(together.cells) == 120 * IMPUTATIONS
    assert together.freshness.sum() == pytest.approx(120)


def test_labels_that_were_not_given_yet_do_not_count() -> None:
    ledger, index = labelled(labels(), SPACE, TRAFFIC)
    assert weigh_model_labels(MODEL, index, ledger, now=NOW - 1, truth=truth_of_labels()).imputed == ()


def test_people_and_groups_that_are_new_are_taken_to_be_like_the_others() -> None:
    known = [entry for entry in labels() if entry.label.annotator != "p3"]
    truth = learned_from(known)
    truth = replace(truth, groups=["0", "1", "2", "3", "gone"])
    ledger, index = labelled(labels(), SPACE, TRAFFIC)
    found = weigh_model_labels(MODEL, index, ledger, now=NOW, truth=truth)
    correct = np.array([each.correct for each in found.imputed])
    assert correct.mean() == pytest.approx(ITEMS.correct[:120].mean(), abs=0.05)
