"""How reliable people are, from all labels."""

from __future__ import annotations

import numpy as np

from benchmarks.several_labels import (
    People,
    World,
    labelled,
    learned,
    outcomes,
    predictions,
    settings_of,
    traffic_of,
)
from service.monitoring.annotator_estimates import AnnotatorEstimate, annotator_estimates


def estimated(world: World, items: int) -> tuple[AnnotatorEstimate, ...]:
    rng, space = np.random.default_rng(4), settings_of(world).cell_space("m")
    there = predictions(world, rng)
    entries = outcomes(there, np.arange(items), People(world, rng), space)[0]
    ledger, index = labelled(entries, space, traffic_of(there, space, world))
    truth = learned(ledger, index, rng)
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
