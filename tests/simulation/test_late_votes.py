"""Labels from before a challenger, beside those that are aimed at disagreements: intervals hold the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special
from traffic_tables import JointCell, traffic_of

from service.domain.cells import AGREE, CHALLENGE, DISAGREE, CellSpace, Challenge
from service.domain.groupings import ALL, ByAttribute, ByChallenger, Everything
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groups
from service.monitoring.weighted_labels import weigh_labels
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

REGIONS = [f"region-{number}" for number in range(5)]
SPACE = CellSpace(
    ("cat", "dog"),
    (0.7, 0.9),
    {
        ALL: Everything(ALL),
        CHALLENGE: ByChallenger(CHALLENGE, CHALLENGE),
        "region": ByAttribute("region", "region"),
    },
    challenge=Challenge("v2"),
)
SCORES = np.array([0.6, 0.8, 0.95])
VOTES = {AGREE: {"v2": "cat"}, DISAGREE: {"v2": "dog"}}
BEFORE, SINCE, AIMED = 150, 75, 300
"""Labels that are drawn by region from before and since, and those that the challenger asks for."""

RUNS = 150
NOMINAL = 0.95
ALLOWED = 0.02
"""The promise: coverage is at least nominal minus two points."""

CHANCE = 2 * (NOMINAL * (1 - NOMINAL) / RUNS) ** 0.5
"""Two standard errors, as if the regions of a run were one: 3.6 points."""


@dataclass(frozen=True)
class World:
    """Traffic and accuracy of regions by score bins and vote [regions, bins, votes]."""

    traffic: np.ndarray
    accuracy: np.ndarray

    def region_accuracy(self) -> np.ndarray:
        right, all_of_it = (part.sum(axis=(1, 2)) for part in (self.traffic * self.accuracy, self.traffic))
        accuracy: np.ndarray = right / all_of_it
        return accuracy


def world(rng: np.random.Generator) -> World:
    """Champion and challenger disagree where scores are low, and the champion is wrong more often there."""
    shape = len(REGIONS), len(SCORES)
    traffic = rng.dirichlet(np.full(shape[0], 5.0))[:, None] * rng.dirichlet([1.0, 2.0, 4.0], shape[0])
    disagree = np.clip(1.2 * (1 - SCORES) * rng.uniform(0.5, 1.5, shape), 0.02, 0.6)
    off = rng.normal(-0.3, 0.5, (shape[0], 1))
    accuracy = [special.expit(special.logit(SCORES) + off + shift) * np.ones(shape) for shift in (0.7, -2.0)]
    return World(traffic[:, :, None] * np.stack([1 - disagree, disagree], axis=2), np.stack(accuracy, axis=2))


def drawn(rng: np.random.Generator, there: World, groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Parts of the traffic, so many of every group, in proportion to traffic within."""
    return np.concatenate(
        [
            rng.choice(groups.size, count, p=np.where(groups.ravel() == g, there.traffic.ravel(), 0) / share)
            for g, count in enumerate(counts)
            if (share := there.traffic[groups == g].sum()) > 0
        ]
    )


def entries(rng: np.random.Generator, there: World, *, before: bool) -> list[OutcomeEntry]:
    """What is labelled; before the challenger was there no region more than another, then as policies do."""
    shape = there.traffic.shape
    region, vote = np.indices(shape)[0], np.indices(shape)[2]
    each = np.full(len(REGIONS), BEFORE // len(REGIONS))
    policy = rng.multinomial(SINCE - len(REGIONS), rng.dirichlet(np.ones(len(REGIONS)))) + 1
    samples = [("region", False, drawn(rng, there, region, each))] if before else []
    samples += [
        ("region", True, drawn(rng, there, region, policy)),
        (CHALLENGE, True, drawn(rng, there, vote, np.array([AIMED // 5, AIMED - AIMED // 5]))),
    ]
    made: list[OutcomeEntry] = []
    for grouping, voted, parts in samples:
        for part in parts.tolist():
            r, score, v = np.unravel_index(part, shape)
            number = len(made)
            fact = Fact(
                request_id=f"r{number}",
                item_id=f"i{number}",
                grouping=grouping,
                group="",
                predicted_class="cat",
                score=float(SCORES[score]),
                attributes={"region": REGIONS[r]},
                predicted_at=float(number),
                requested_at=float(number),
                votes=list(VOTES.values())[v] if voted else {},
                voters="v2" if grouping == CHALLENGE else "",
            )
            true = "cat" if rng.random() < there.accuracy.ravel()[part] else "dog"
            made.append(OutcomeEntry((number, 0), (number, 0), "a", fact, LabelFact(true, float(number), "")))
    return made


def interval(there: World, found: list[OutcomeEntry]) -> tuple[np.ndarray, np.ndarray]:
    """Of the accuracy of every region [regions], as the service tells it."""
    cells = [
        JointCell((vote, region), 0, number, int(np.ceil(1e6 * share)), share, share * SCORES[number])
        for r, region in enumerate(REGIONS)
        for v, vote in enumerate(VOTES)
        for number, share in enumerate(there.traffic[r, :, v].tolist())
    ]
    ledger = OutcomeLedger(SPACE)
    ledger.fold(found)
    ledger.place(votes_missing=False)
    index = GroupIndex(SPACE, traffic_of(SPACE, cells), ledger.cells)
    known = weigh_labels(index, ledger, decay=0.0, run_length=None, now=1e9)
    assert known.count == len(found)
    beliefs = assess_groups(index["region"], index.cells.bins, known.labels, prior="learned")
    names = index["region"].names
    lower, upper = beliefs.accuracy.interval(NOMINAL)
    order = [names.index(region) for region in REGIONS]
    return lower[order], upper[order]


@pytest.fixture(scope="module")
def measured() -> tuple[float, float]:
    """Share of regions' accuracies inside their intervals, and how wide these are beside those without.

    Without labels from before, that is.
    """
    inside, narrower = [], []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        there = world(rng)
        found = entries(rng, there, before=True)
        lower, upper = interval(there, found)
        without = interval(there, [entry for entry in found if entry.fact.votes])
        truth = there.region_accuracy()
        inside.append((lower <= truth) & (truth <= upper))
        narrower.append((upper - lower).mean() / (without[1] - without[0]).mean())
    return float(np.mean(inside)), float(np.mean(narrower))


def test_intervals_hold_the_truth_as_often_as_they_say(measured: tuple[float, float]) -> None:
    assert measured[0] >= NOMINAL - ALLOWED - CHANCE


def test_labels_from_before_make_them_narrower(measured: tuple[float, float]) -> None:
    assert measured[1] < 0.9
