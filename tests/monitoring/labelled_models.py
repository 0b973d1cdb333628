"""Snapshots of a model whose items several people label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from snapshots import CLASSES, known, snapshot

from service.monitoring.annotator_estimates import LabellingEstimates, labelling_estimates
from service.monitoring.annotator_watch import LearnedAnnotators
from service.monitoring.item_labels import Person
from service.monitoring.label_quality import label_quality
from service.monitoring.label_truth import KnownItems, LabelledItems, learn_truth
from service.monitoring.snapshot import ModelSnapshot


@cache
def labelling(
    names: Sequence[Person] = tuple((vendor, f"p{n}") for vendor in ("acme", "beta") for n in range(3)),
    *,
    items: int = 120,
    guessing: str = "beta",
    gold: int = 0,
    **alerts: Any,
) -> LabellingEstimates:
    """Estimates of people who label items twice: one vendor guesses, and the others are mostly right.

    So many of the last items are gold items, too.
    """
    rng = np.random.default_rng(6)
    predicted = rng.integers(len(CLASSES), size=items)
    people = np.array([rng.permutation(len(names))[:2] for _ in range(items)]).ravel()
    wrong = np.array([names[person][0] == guessing for person in people])
    wrong = np.where(wrong, rng.random(2 * items) < 0.6, rng.random(2 * items) < 0.04)
    of = np.repeat(np.arange(items), 2)
    labelled = LabelledItems(
        rows=np.arange(items),
        cells=np.zeros(items, np.intp),
        predicted=predicted,
        scores=np.full(items, 0.9),
        items=of,
        people=people,
        classes=(
            classes := (predicted[of] + wrong * rng.integers(1, len(CLASSES), size=2 * items)) % len(CLASSES)
        ),
        as_given=classes,
        delays=60.0 + 30.0 * people,
        original=np.ones(items, np.bool_),
    )
    there = known(1, alerts={"min_reliability": 0.8, **alerts}, labels_per_item={"least": 2, "most": 3})
    known_items = KnownItems(labelled.newest(gold), labelled.predicted[-gold:], names) if gold else None
    index = there.index["all"]
    truth = learn_truth(
        labelled, names, index, groupings=["all"], classes=len(CLASSES), rng=rng, gold=known_items
    )
    quality = label_quality(labelled, names, least=2, mass=0.95, rng=rng, gold=known_items)
    found = labelling_estimates(LearnedAnnotators(truth, quality), there.settings)
    assert found is not None
    return found


def annotated(**alerts: Any) -> ModelSnapshot:
    """A snapshot of a model that two vendors label, of which the people of one guess."""
    chosen = {"min_reliability": 0.8, **alerts}
    taken = snapshot(8, alerts={"min_accuracy": 0.5, **chosen})
    return replace(taken, labelling=labelling(gold=30, **alerts))
