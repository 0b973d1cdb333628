"""Accuracies behind one label per item of people who err, against importance sampling from the prior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.domain.arrays import Floats
from service.statistics.annotator_prior import LOG_WEIGHTS, POINTS, AnnotatorPrior, probability_right
from service.statistics.strata_accuracy import CurvedAccuracy, ItemEvidence
from service.statistics.truth_chain import Answers, TruthChain

PEOPLE = 3
MODEL = CurvedAccuracy(np.array([0.5, 2.5, 0.5, 2.5]), np.array([0, 0, 1, 1]), 2, centre=1.5)
DRAWS = 300_000


def one_label_each(agree: list[int], disagree: list[int]) -> Answers:
    """So many items of every stratum whose label agrees, and does not; people take turns."""
    agrees = np.concatenate([np.arange(a + d) < a for a, d in zip(agree, disagree, strict=True)])
    strata = np.repeat(np.arange(len(agree)), np.add(agree, disagree))
    items = np.arange(len(agrees))
    return Answers(items, items % PEOPLE, agrees, strata, PEOPLE, 2, MODEL)


def drawn(answers: Answers, seed: int, *, accuracy: float, sweeps: int) -> Floats:
    """Accuracies of strata [S, strata] of a chain that begins near this one."""
    chain = TruthChain(answers, AnnotatorPrior(), np.random.default_rng(seed))
    curve = np.array([np.log(accuracy / (1 - accuracy)) - MODEL.centre, 0.0, -0.9])
    start = replace(chain.state, accuracies=MODEL.at(curve, np.zeros(2), np.zeros(4)))
    chain = TruthChain(answers, AnnotatorPrior(), chain.rng, start=start)
    found = []
    for sweep in range(sweeps):
        chain.sweep()
        if sweep < sweeps // 4:
            chain.adapt()
        else:
            found.append(chain.state.accuracies.strata)
    return np.array(found)


def weighted_by_importance(answers: Answers, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Accuracies of strata, drawn from the prior [S, strata], and their weights [S]: no chain has a part."""
    prior = AnnotatorPrior()
    ability, harder, log_difficulty, log_unlike = (
        rng.normal(*each, DRAWS)
        for each in (prior.ability, prior.harder, prior.log_difficulty, prior.log_unlike)
    )
    abilities = ability + np.exp(log_unlike) * rng.standard_t(4, (PEOPLE, DRAWS))
    a, b, log_scale = np.array([-0.5, 1.0, -0.9])[:, None] + np.array([1.75, 0.5, 0.8])[:, None] * rng.normal(
        size=(3, DRAWS)
    )
    groups = np.exp(log_scale) * rng.standard_t(3, (2, DRAWS))
    own = np.exp(log_scale) / 2 * rng.standard_t(3, (4, DRAWS))
    centred = (MODEL.scores - MODEL.centre)[:, None]
    accuracy = 1 / (1 + np.exp(-(MODEL.centre + a + b * centred + groups[MODEL.groups] + own)))
    right = []  # if the prediction is correct, and wrong [people, draws]
    for added in (np.zeros(DRAWS), harder):
        ease = np.exp(-np.exp(log_difficulty) * POINTS[:, None] - added)
        right.append(np.exp(LOG_WEIGHTS) @ probability_right(abilities[:, None] * ease, 2))
    logs = np.zeros(DRAWS)
    for stratum in range(4):
        for person in range(PEOPLE):
            # A wrong answer about a wrong prediction is the predicted class, as there are two.
            agrees = accuracy[stratum] * right[0][person]
            agrees += (1 - accuracy[stratum]) * (1 - right[1][person])
            which = (answers.strata == stratum) & (answers.annotators == person)
            said = answers.agrees[which]
            logs += said.sum() * np.log(agrees) + (~said).sum() * np.log(1 - agrees)
    weights = np.exp(logs - logs.max())
    return accuracy.T, weights / weights.sum()


def test_accuracies_behind_one_label_per_item_are_those_of_the_posterior() -> None:
    answers = one_label_each([9, 12, 5, 11], [3, 1, 7, 2])
    accuracy, weights = weighted_by_importance(answers, np.random.default_rng(1))
    mean = weights @ accuracy
    deviation = np.sqrt(weights @ (accuracy - mean) ** 2)
    draws = drawn(answers, 1, accuracy=0.8, sweeps=3_000)
    # Draws are worth about 200 independent ones, and the weights 40,000: 0.25 is more than three errors.
    np.testing.assert_allclose((draws.mean(axis=0) - mean) / deviation, 0, atol=0.25)
    np.testing.assert_allclose(draws.std(axis=0) / deviation, 1, atol=0.2)


def test_where_a_chain_begins_does_not_matter_with_one_label_per_item() -> None:
    answers = one_label_each([70, 95, 35, 90], [30, 5, 65, 10])
    one, other = (drawn(answers, seed, accuracy=start, sweeps=1_500) for seed, start in ((1, 0.6), (2, 0.99)))
    # Draws of each are worth about 60 independent ones: 0.6 is three errors of the difference.
    np.testing.assert_allclose((one.mean(axis=0) - other.mean(axis=0)) / one.std(axis=0), 0, atol=0.6)


def test_accuracies_of_many_items_move_freely_where_labels_say_nothing() -> None:
    # The posterior is the prior, however many items there are.
    strata, nothing = np.repeat(np.arange(4), 1_000), np.zeros(4_000)
    evidence, rng = ItemEvidence.of(strata, nothing, nothing), np.random.default_rng(1)
    accuracies, further = MODEL.at(np.array([0.0, 1.0, -0.9]), np.array([3.0, -3.0]), np.zeros(4)), []
    scale = np.exp(-0.9 + 0.8 * rng.normal(size=100_000))
    apart = scale * np.diff(rng.standard_t(3, (2, 100_000)), axis=0)[0]
    apart += scale / 2 * np.diff(rng.standard_t(3, (2, 100_000)), axis=0)[0]
    median = np.median(np.abs(apart))
    for _ in range(3_000):
        accuracies = MODEL.moved(accuracies, evidence, rng)
        logits = np.log(accuracies.strata / (1 - accuracies.strata))
        further.append(abs(logits[0] - logits[2]) > median)
    # Half of the draws, and they are worth about 100 independent ones: 0.15 is three errors.
    assert np.mean(further) == pytest.approx(0.5, abs=0.15)
