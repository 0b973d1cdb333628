"""How reliable people are, from all labels."""

from __future__ import annotations

import numpy as np

from benchmarks.several_labels import (
    NOW,
    REGION,
    People,
    World,
    outcomes,
    predictions,
    settings_of,
    traffic_of,
)
from service.monitoring.annotator_estimates import AnnotatorEstimate, annotator_estimates
from service.monitoring.group_index import GroupIndex
from service.monitoring.label_truth import learn_truth
from service.monitoring.outcome_table import OutcomeLedger


def estimated(world: World, items: int) -> tuple[AnnotatorEstimate, ...]:
    rng, space = np.random.default_rng(4), settings_of(world).cell_space("m")
    there = predictions(world, rng)
    ledger = OutcomeLedger(space, may_err=True)
    ledger.fold(outcomes(there, np.arange(items), People(world, rng), space)[0])
    ledger.place()
    index = GroupIndex(space, traffic_of(there, space, world), ledger.cells)
    given = ledger.labelled_items(at=NOW)
    assert given is not None
    truth = learn_truth(given, ledger.people, index[REGION], grouping=REGION, classes=world.classes, rng=rng)
    return annotator_estimates(truth, 0.95)


def test_one_of_five_who_guesses_is_named_within_200_labels() -> None:
    found = estimated(World(people=5, guessing=0.2), 120)
    assert sum(each.labels for each in found) <= 200
    worst, *others = found
    assert worst.annotator == "p0"
    assert worst.mean < min(each.mean for each in others) - 0.1
    assert worst.lower <= 1 / 3 + 0.2


def test_nobody_is_estimated_where_one_person_labels_an_item() -> None:
    assert annotator_estimates(None, 0.95) == ()
