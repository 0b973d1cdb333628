"""The truth behind the answers of people who err: which predictions are correct, and how reliable people are.

An item's prediction is correct or not, with the accuracy of the item's stratum. Of an answer only counts
whether it is the predicted class, so that nothing is assumed of which classes people confuse. A person who
knows the answer gives it, and else guesses:

    P(person j is right about item i) = 1/K + (1 - 1/K) tanh(x_ij / 2),  x_ij = a_j exp(-d_i),

with the ability a_j of the person and the difficulty d_i of the item; with two classes that is the model of
Whitehill et al. (NIPS 2009). A person of negative ability is right less often than one who guesses.
Difficulties are normal, and higher by h on average where the prediction is wrong: items that fool the model
fool people too, so errors are not independent given the truth. A wrong answer about a wrong prediction is the
predicted class with probability k; if there are two classes, always.

Abilities have t4 priors, so that some people may be unlike all others. All is sampled by Markov chain Monte
Carlo (`truth_chain.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from service.domain.arrays import Floats
from service.statistics.annotator_prior import AnnotatorPrior
from service.statistics.truth_chain import Answers, TruthChain


class TruthDraws(NamedTuple):
    """Draws [S] from the posterior."""

    accuracy: Floats  # of every stratum [S, strata]
    correct: Floats  # probability that a prediction is correct [N]
    reliability: Floats  # share of items about which a person is right [S, annotators]


def sample_truth(
    answers: Answers,
    rng: np.random.Generator,
    *,
    prior: AnnotatorPrior | None = None,
    sweeps: int = 1_200,
    warm_up: int = 400,
) -> TruthDraws:
    """Draws from the posterior, one of every other sweep after the warm-up."""
    chain = TruthChain(answers, prior or AnnotatorPrior(), rng)
    accuracy, reliability, correct = [], [], np.zeros(len(answers.strata) + len(answers.gold))
    for _ in range(warm_up):
        chain.sweep()
        chain.adapt()
    for sweep in range(sweeps - warm_up):
        chain.sweep()
        if sweep % 2 == 0:
            accuracy.append(chain.state.accuracies.strata)
            reliability.append(chain.reliability())
            correct += chain.probability_correct()
    return TruthDraws(np.array(accuracy), correct / len(accuracy), np.array(reliability))
