"""How reliable people are, from all labels."""

from __future__ import annotations

import numpy as np
import pytest
from labelled_models import labelling

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
from service.config.model import ModelSettings
from service.monitoring.annotator_estimates import (
    AnnotatorEstimate,
    LabellingEstimates,
    VendorEstimate,
    labelling_estimates,
)
from service.monitoring.annotator_watch import LearnedAnnotators
from service.monitoring.label_quality import label_quality

MODEL = ModelSettings.model_validate({"classes": ["cat", "dog"]})


def estimated(world: World, items: int) -> tuple[AnnotatorEstimate, ...]:
    rng, settings = np.random.default_rng(4), settings_of(world)
    space = settings.cell_space("m")
    there = predictions(world, rng)
    entries = outcomes(there, np.arange(items), People(world, rng), space)[0]
    ledger, index = labelled(entries, space, traffic_of(there, space, world))
    truth, labels = learned(ledger, index, rng), ledger.labelled_items(at=NOW)
    assert truth is not None
    assert labels is not None
    quality = label_quality(labels, ledger.people, least=1, mass=0.95, rng=rng)
    found = labelling_estimates(LearnedAnnotators(truth, quality), settings.models["m"])
    assert found is not None
    return found.annotators


def test_one_of_five_who_guesses_is_named_within_200_labels() -> None:
    found = estimated(World(people=5, guessing=0.2), 120)
    assert sum(each.labels for each in found) <= 200
    worst, *others = found
    assert worst.annotator == "p0"
    assert worst.mean < min(each.mean for each in others) - 0.1
    assert worst.lower <= 1 / 3 + 0.2


def test_nobody_is_estimated_where_one_person_labels_an_item() -> None:
    assert labelling_estimates(None, MODEL) is None


def vendor(found: LabellingEstimates, name: str) -> VendorEstimate:
    return next(each for each in found.vendors if each.vendor == name)


def test_a_vendor_whose_people_guess_is_named_first() -> None:
    worst, other = labelling().vendors
    assert (worst.vendor, worst.people, worst.unreliable) == ("beta", 3, 3)
    assert worst.upper < other.lower
    assert worst.below == 1.0


def test_a_vendors_reliability_is_the_mean_over_its_people_weighted_by_labels() -> None:
    found = labelling()
    people = [each for each in found.annotators if each.vendor == "acme"]
    mean = np.average([each.mean for each in people], weights=[each.labels for each in people])
    assert vendor(found, "acme").mean == pytest.approx(mean)
    assert vendor(found, "acme").labels == sum(each.labels for each in people)


def test_a_vendors_interval_is_narrower_than_those_of_its_people() -> None:
    found = labelling()
    widths = [each.upper - each.lower for each in found.annotators if each.vendor == "beta"]
    assert vendor(found, "beta").upper - vendor(found, "beta").lower < min(widths)


def test_nobody_is_below_a_threshold_that_is_not_set() -> None:
    found = labelling(min_reliability=None)
    assert {each.below for each in found.annotators} == {None}
    assert {(each.below, each.unreliable) for each in found.vendors} == {(None, None)}


def test_people_with_too_few_labels_are_not_counted_as_unreliable() -> None:
    assert vendor(labelling(min_labels=1_000), "beta").unreliable == 0


def test_two_hundred_people_are_all_estimated() -> None:
    names = tuple(("acme", f"p{number}") for number in range(200))
    found = labelling(names, items=150)
    assert sum(each.labels for each in found.annotators) == 300
    assert [each.vendor for each in found.vendors] == ["acme"]
