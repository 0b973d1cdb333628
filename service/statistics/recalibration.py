"""Maps from scores to probabilities, with their uncertainty.

Each draw of the posterior is a map. A map of a given form is the nearest one of that form to every draw:
Platt's logistic curve (Advances in Large Margin Classifiers, 1999), beta calibration (Kull, Silva Filho and
Flach, AISTATS 2017), or an isotonic map (Zadrozny and Elkan, KDD 2002).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy
from scipy import special

from service.domain.arrays import Floats
from service.statistics.binary.logistic_projection import project_logistic
from service.statistics.binary.semi_supervised import ScorePosterior
from service.statistics.estimate import Estimate

Form = Literal["platt", "beta", "isotonic"]
FORMS: tuple[Form, ...] = get_args(Form)

_NEAR_END = 1e-6
_DRAWS = 200  # of the posterior that maps are made of
_TERMS: Mapping[Form, tuple[str, ...]] = {
    "platt": ("offset", "slope"),
    "beta": ("offset", "slope of log s", "slope of -log(1 - s)"),
    "isotonic": (),
}


@dataclass(frozen=True)
class RecalibrationMap:
    """P(positive | score) at the mean score of every bin."""

    form: Form
    scores: Floats  # ascending [B]
    probability: Estimate  # mean and interval [B]; increasing, except with a negative slope
    coefficients: Mapping[str, Estimate]  # of the curve's log odds, by name; none of an isotonic map


def recalibrate(posterior: ScorePosterior, form: Form, *, mass: float = 0.95) -> RecalibrationMap:
    """Recalibration map of a form, with intervals of probability `mass`.

    Raises:
        ValueError: beta calibration of scores that are not probabilities.
    """
    bins = posterior.bins
    unit = (bins.low, bins.high) == (0.0, 1.0)
    if form == "beta" and not unit:
        raise ValueError("beta calibration is for scores that are probabilities; take platt or isotonic")
    draws, shares = posterior.probabilities[:_DRAWS], bins.counts / bins.total
    if form == "isotonic":
        maps = np.stack([scipy.optimize.isotonic_regression(each, weights=bins.counts).x for each in draws])
        return RecalibrationMap(form, bins.scores, Estimate.of(maps, mass), {})
    design, towards = _design(bins.scores, form, unit=unit)
    coefficients = project_logistic(design, draws, shares, towards=towards)
    return RecalibrationMap(
        form=form,
        scores=bins.scores,
        probability=Estimate.of(special.expit(coefficients @ design.T), mass),
        coefficients={
            name: Estimate.of(coefficients[:, column], mass) for column, name in enumerate(_TERMS[form])
        },
    )


def _design(scores: Floats, form: Form, *, unit: bool) -> tuple[Floats, Floats]:
    """Regressors of the coefficients [B, D], and the coefficients of the identity map [D]."""
    ones = np.ones_like(scores)
    if not unit:
        return np.column_stack((ones, scores)), np.array([0.0, 1.0])
    inside = np.clip(scores, _NEAR_END, 1 - _NEAR_END)
    if form == "platt":
        return np.column_stack((ones, special.logit(inside))), np.array([0.0, 1.0])
    return np.column_stack((ones, np.log(inside), -np.log1p(-inside))), np.array([0.0, 1.0, 1.0])
