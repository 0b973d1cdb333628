"""P(positive | score) as a logistic curve with smooth deviations, learned from labels by strata of scores.

The log odds of an item of stratum b are f_b = a + c x_b + d_b + e_b. The curve's offset a and slope c are
normal, x is a coordinate of the score, and d is an Ornstein-Uhlenbeck process in x: deviations of standard
deviation sigma whose correlation falls to 1/e over one length (Gaussian process classification; Rasmussen and
Williams, Gaussian Processes for Machine Learning, 2006, sections 3.4 and 4.2.1). So a curve is trusted only
near labels: labels of the highest scores leave open what is far below them.

All strata on one side of the threshold have the same e. Precision, recall and others depend on sums over
either side. A smooth curve of a wrong shape is sure of wrong sums; with an intercept for each side, sums
follow the labels (internal bias calibration; Firth and Bennett, JRSS B 1998).

No coordinate and no sigma is right for every classifier. Several hypotheses are averaged, weighted by the
probability that each gave to the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats

SIGMAS: Final = (0.2, 0.5, 1.0, 2.0)
"""Standard deviations of the smooth deviations, in logits; equally probable."""

_SIDE: Final = 0.4
"""Standard deviation of what all strata on one side of the threshold have in common, in logits."""

_NUGGET: Final = 1e-6  # variance that keeps covariances of nearly equal coordinates regular
_STEPS: Final = 50
_CONVERGED: Final = 1e-6  # change of the log posterior
_SHORTEST: Final = 1e-3  # step length, as a share of Newton's
_FREEDOM: Final = 8.0  # of the proposals: tails heavier than those of the posterior
_OVERSAMPLED: Final = 4  # proposals for each draw
_LEAST_WEIGHT: Final = 1e-3  # hypotheses that are less probable are dropped
_FEWEST: Final = 50  # proposals of a hypothesis


class CurvePrior(NamedTuple):
    """What a hypothesis expects of the curve."""

    name: str
    offset: float
    offset_deviation: float
    slope: float
    slope_deviation: float
    length: float  # of the deviations' correlation, in units of the coordinate
    weight: float  # prior probability, relative to the others'


class Hypothesis(NamedTuple):
    """A coordinate of every stratum [B], and what is expected of the curve in it."""

    values: Floats
    prior: CurvePrior


@dataclass(frozen=True)
class CurveDraws:
    """Draws from the posterior of the curve."""

    log_odds: Floats  # [S, B]
    weights: dict[str, float]  # of the hypotheses, by name
    log_evidence: float  # log probability of the labels, given their scores


class Labels(NamedTuple):
    """Numbers of labels by stratum [B]."""

    positives: Floats
    negatives: Floats

    def log_likelihood(self, log_odds: Floats) -> Floats:
        """Log likelihood [...] by log odds [..., B]."""
        likelihood: Floats = special.log_expit(log_odds) @ self.positives
        likelihood += special.log_expit(-log_odds) @ self.negatives
        return likelihood


@dataclass(frozen=True)
class _Modes:
    """Laplace approximations of all hypotheses, in whitened coordinates."""

    at: Floats  # [H, B]
    factors: Floats  # lower Cholesky factors of the precisions [H, B, B]
    log_evidence: Floats  # [H]


@dataclass
class ScoreProcess:
    """The posterior of the curve, for labels that grow in number.

    `called` says of every stratum whether the model calls its items positive [B]. Modes are kept from one
    fit to the next, which starts there.
    """

    hypotheses: Sequence[Hypothesis]
    called: Flags
    sigmas: Sequence[float] = SIGMAS
    _at: Floats | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        cases = [(hypothesis, sigma) for hypothesis in self.hypotheses for sigma in self.sigmas]
        weights = np.array([hypothesis.prior.weight for hypothesis, _ in cases])
        self._names = [hypothesis.prior.name for hypothesis, _ in cases]
        self._log_prior = np.log(weights / weights.sum())
        self._means = np.stack([_mean(*case) for case in cases])
        sides = _SIDE**2 * (self.called[:, None] == self.called)
        self._roots = _cholesky(np.stack([_covariance(*case) + sides for case in cases]))

    def draw(self, labels: Labels, rng: np.random.Generator, *, count: int) -> CurveDraws:
        """Draws of the log odds, given the labels.

        By importance sampling from t distributions around the modes; weights are truncated (Ionides,
        Journal of Computational and Graphical Statistics 2008).
        """
        modes = self._fit(labels)
        log_joint = self._log_prior + modes.log_evidence
        shares = special.softmax(log_joint)
        kept = np.flatnonzero(shares >= _LEAST_WEIGHT)
        numbers = np.maximum(_FEWEST, np.ceil(_OVERSAMPLED * count * shares[kept])).astype(np.int64)
        proposals, log_weights = [], []
        for case, number in zip(kept, numbers, strict=True):
            latent, log_weight = self._propose(int(case), modes, labels, rng, count=int(number))
            proposals.append(latent)
            log_weights.append(log_weight + self._log_prior[case] - np.log(number))
        owners = np.repeat(kept, numbers)
        joined = np.concatenate(log_weights)
        weights = np.exp(joined - joined.max())
        weights = np.minimum(weights, weights.mean() * np.sqrt(len(weights)))
        weights /= weights.sum()
        names = np.array(self._names)[owners]
        chosen = rng.choice(len(weights), count, p=weights)
        return CurveDraws(
            log_odds=np.concatenate(proposals)[chosen],
            weights={name: float(weights[names == name].sum()) for name in dict.fromkeys(self._names)},
            log_evidence=float(special.logsumexp(log_joint)),
        )

    def _propose(
        self, case: int, modes: _Modes, labels: Labels, rng: np.random.Generator, *, count: int
    ) -> tuple[Floats, Floats]:
        """Proposals of one hypothesis [count, B], and their log weights up to a constant that all share."""
        factor = modes.factors[case]
        size = len(factor)
        noise = rng.normal(size=(count, size))
        noise /= np.sqrt(rng.chisquare(_FREEDOM, count) / _FREEDOM)[:, None]
        whitened = modes.at[case] + np.linalg.solve(factor.T, noise.T).T
        latent: Floats = self._means[case] + whitened @ self._roots[case].T
        log_target = labels.log_likelihood(latent) - 0.5 * (whitened**2).sum(axis=1)
        log_proposal = np.log(np.diagonal(factor)).sum()
        log_proposal -= (_FREEDOM + size) / 2 * np.log1p((noise**2).sum(axis=1) / _FREEDOM)
        return latent, log_target - log_proposal

    def _fit(self, labels: Labels) -> _Modes:
        """Modes by Newton's method, of all hypotheses at once; whitened, the prior is standard normal."""
        at = np.zeros_like(self._means) if self._at is None else self._at
        total = labels.positives + labels.negatives
        value = self._log_posterior(at, labels)
        for _ in range(_STEPS):
            rates = special.expit(self._latent(at))
            gradient = np.einsum("hij,hi->hj", self._roots, labels.positives - total * rates) - at
            step = np.linalg.solve(self._precisions(rates, total), gradient[..., None])[..., 0]
            at, reached = self._moved(at, step, value, labels)
            settled = np.abs(reached - value).max() < _CONVERGED
            value = reached
            if settled:
                break
        self._at = at
        factors = _cholesky(self._precisions(special.expit(self._latent(at)), total))
        log_volumes = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        return _Modes(at, factors, value - log_volumes)

    def _moved(self, at: Floats, step: Floats, value: Floats, labels: Labels) -> tuple[Floats, Floats]:
        """Where the step leads, halved until nothing gets worse, and the log posterior there [H]."""
        length = np.ones(len(at))
        while True:
            moved = at + length[:, None] * step
            reached = self._log_posterior(moved, labels)
            worse = (reached < value) & (length > _SHORTEST)
            if not worse.any():
                return np.where((reached >= value)[:, None], moved, at), np.maximum(reached, value)
            length = np.where(worse, length / 2, length)

    def _latent(self, at: Floats) -> Floats:
        latent: Floats = self._means + np.einsum("hij,hj->hi", self._roots, at)
        return latent

    def _log_posterior(self, at: Floats, labels: Labels) -> Floats:
        posterior: Floats = labels.log_likelihood(self._latent(at)) - 0.5 * (at**2).sum(axis=1)
        return posterior

    def _precisions(self, rates: Floats, total: Floats) -> Floats:
        weighted = (total * rates * (1 - rates))[..., None] * self._roots
        return np.eye(rates.shape[1]) + np.swapaxes(self._roots, 1, 2) @ weighted


def _cholesky(matrices: Floats) -> Floats:
    return np.asarray(np.linalg.cholesky(matrices), np.float64)


def _mean(hypothesis: Hypothesis, sigma: float) -> Floats:
    """Prior mean of the log odds [B].

    Deviations pull the mean probability towards one half. So the mean is further out, such that the mean
    probability is about that of the curve alone: by the probit approximation near one half (MacKay, Neural
    Computation 1992), and as for a log-normal variable further out.
    """
    curve = hypothesis.prior.offset + hypothesis.prior.slope * hypothesis.values
    size, variance = np.abs(curve), sigma**2 + _SIDE**2
    widened = np.minimum(size * np.sqrt(1 + np.pi * variance / 8), size + variance / 2)
    return np.asarray(np.sign(curve) * widened, np.float64)


def _covariance(hypothesis: Hypothesis, sigma: float) -> Floats:
    """Prior covariance of the log odds [B, B]."""
    values, prior = hypothesis
    apart = np.abs(values[:, None] - values)
    covariance = prior.offset_deviation**2 + prior.slope_deviation**2 * np.outer(values, values)
    covariance += sigma**2 * np.exp(-apart / prior.length) + _NUGGET * np.eye(len(values))
    return covariance
