"""The learned prior's posterior of a single run, pruned to what the labels leave plausible.

Offline replays keep the whole grid for thousands of runs; the service needs one run with thousands of cells,
quickly.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from service.domain.arrays import Floats
from service.statistics import beta as betas
from service.statistics.curve_fit import CENTRE_MARGIN, POINTS, CurveFit
from service.statistics.curves import LearnedCurve, Search
from service.statistics.laplace import Cells, expit
from service.statistics.mixture import BetaMixture

NEGLIGIBLE = 1e-3  # grid points with less than this fraction of the best weight are dropped
_ROUGHLY_NEGLIGIBLE = 1e-5  # the same after the rough fit, whose weights are approximate
_ROUGH_STEPS = 8  # Newton steps of the rough fit, at most; half as many end far from the mode of bad scores


def plausible_fit(prior: LearnedCurve, cells: Cells, labels: Floats, correct: Floats) -> CurveFit:
    """The fit to effective numbers of labels, and of correct ones [G, B], over the plausible grid points.

    A rough fit of the whole grid finds the points that matter; only these are fitted in full.
    """
    whole = Search.of(prior, cells, labels[None], correct[None])
    rough = replace(whole, prior=replace(prior, steps=_ROUGH_STEPS)).find_modes()
    grid = (rough.weights[0] >= _ROUGHLY_NEGLIGIBLE * rough.weights.max()).reshape(len(prior.spreads), -1)
    # Every spread that matters with every strength that does, as the weights are not exact.
    likely = np.flatnonzero(grid.any(axis=1)[:, None] & grid.any(axis=0))
    search = whole.part(likely)
    result = search.find_modes(rough.modes.part(likely))
    plausible = np.flatnonzero(result.weights[0] >= NEGLIGIBLE * result.weights.max())
    return search.part(plausible).fit(result.part(plausible))


def single(mixture: BetaMixture) -> BetaMixture:
    """The mixture of the only run: [1, J, G] becomes [J, G]."""
    return BetaMixture(mixture.weights[0], mixture.alpha[0], mixture.beta[0])


def binwise(fit: CurveFit) -> BetaMixture:
    """Posterior of every cell of a single run, in few components [5, G * B].

    A component is a quadrature point of eta, which all cells of a group share: it keeps the uncertainty about
    the curve. Over the grid points, a cell of a component is the Beta with their mean and variance. Compared
    with the mixture of all grid points, for 3 and 40 groups of ten bins: the mean calibration error differs
    by 0.01 at most without labels, 0.0014 with ten per cell; upper ends of its 95% interval by 0.05 and 0.012
    at most, lower ends by 0.008. A single Beta for every cell would be too narrow by up to two fifths.
    """
    weights, strengths = fit.weights[0], fit.strengths[:, None, None]
    sizes = strengths + fit.labels
    alphas, others = [], []
    for point, _ in POINTS:
        means = np.clip(expit(fit.centres[0] + point * fit.deviations[0]), CENTRE_MARGIN, 1 - CENTRE_MARGIN)
        means = (strengths * means + fit.correct) / sizes
        mean = np.tensordot(weights, means, 1)
        within = np.tensordot(weights, means * (1 - means) / (sizes + 1), 1)
        between = np.tensordot(weights, (means - mean) ** 2, 1)
        alpha, beta = betas.matching(mean, within + between)
        alphas.append(alpha.ravel())
        others.append(beta.ravel())
    return BetaMixture(np.array([weight for _, weight in POINTS]), np.stack(alphas), np.stack(others))
