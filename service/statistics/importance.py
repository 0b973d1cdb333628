"""Draws from a posterior whose density is known up to a factor: importance sampling around its modes.

Modes are found by L-BFGS-B from several starts. The proposal is a mixture of multivariate t distributions
around them (Welinder, Welling and Perona, CVPR 2013, section 3.1, equation 8, use one mode, a normal
distribution and a diagonal covariance; heavier tails and the full covariance prevent a few draws from having
nearly all of the weight). If the effective sample size is too small, the proposal is adapted to the weighted
draws (adaptive importance sampling; Cappe, Guillin, Marin and Robert, JCGS 2004), and finally an ensemble
sampler is run (affine-invariant stretch moves; Goodman and Weare, CAMCoS 2010).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from scipy import linalg, special

from service.domain.arrays import Floats

LogDensity = Callable[[Floats], Floats]

_FREEDOM = 5.0  # degrees of freedom of the proposals: tails heavier than those of any posterior here
_WIDER = 1.2  # factor by which proposals are wider than the curvature suggests
_MUCH_WIDER = 1.5  # the same of adapted proposals, over the draws before, which may have missed a part
_ADAPTATIONS = 3
"""Adaptations of the proposal, at most; there is always one.

A large effective sample size proves little: draws say nothing of what their proposal does not reach. What it
missed shows in the evidence, which grows with a wider one.
"""

_ENOUGH_SHARE = 0.3  # effective share of the draws that ends adaptation
_SETTLED = 0.1  # and so does a smaller change of the log evidence; both are needed
_LEAST_SHARE = 0.2  # below this effective share the ensemble sampler is run
_WITHIN = 8.0  # modes whose log density is further below the highest are dropped
_MODE_STEPS = 60
_MOST_MODES = 4
_NEAR = 0.1  # modes that are nearer than this in every parameter are one
_STEP = 1e-3  # of finite differences, for second derivatives
_LEAST_CURVATURE = 0.1  # no proposal is wider than about three units in any direction
_WALKERS, _WALKER_STEPS = 80, 100


@dataclass(frozen=True)
class Mode:
    """A local maximum of a density, at parameters [D]."""

    at: Floats
    log_density: float


@dataclass(frozen=True)
class Draws:
    """Equally weighted draws of a posterior."""

    parameters: Floats  # shape [S, D]
    log_evidence: float  # log integral of the density
    # Kish's effective sample size of those proposed; the number of walkers for the ensemble sampler
    effective: float
    method: Literal["importance sampling", "walkers"]


def find_modes(
    objective: Callable[[Floats], tuple[float, Floats]],
    starts: Sequence[Floats],
    *,
    lowest: Floats,
    highest: Floats,
) -> list[Mode]:
    """Local modes within bounds of the parameters [D] by L-BFGS-B, the highest first.

    `objective` gives the negative log density of parameters [D], and its gradient [D].
    """
    modes: list[Mode] = []
    for start in starts:
        inside = np.clip(start, lowest, highest)
        # Reached through scipy, it is imported when it is first needed.
        found = scipy.optimize.minimize(
            objective,
            inside,
            jac=True,
            method="L-BFGS-B",
            bounds=scipy.optimize.Bounds(lowest, highest),
            options={"maxiter": _MODE_STEPS},
        )
        if all(np.abs(found.x - mode.at).max() > _NEAR for mode in modes):
            modes.append(Mode(found.x, -float(found.fun)))
    modes.sort(key=lambda mode: -mode.log_density)
    return [mode for mode in modes if mode.log_density > modes[0].log_density - _WITHIN][:_MOST_MODES]


def laplace_evidence(density: LogDensity, mode: Mode) -> float:
    """Laplace approximation of the log integral of a density around a mode."""
    return _Bump.at(density, mode).log_mass


def draw(
    density: LogDensity,
    modes: Sequence[Mode],
    count: int,
    rng: np.random.Generator,
    *,
    lowest: Floats,
    highest: Floats,
) -> Draws:
    """Draws around the modes, of which there is at least one, within bounds of the parameters [D].

    `density` gives log densities [P] of parameters [P, D].
    """
    bounded = _bounded(density, lowest, highest)
    best = _proposed(bounded, density, modes, count, rng)
    chosen = best.parameters[rng.choice(count, count, p=best.weights)]
    if best.effective >= _LEAST_SHARE * count:
        return Draws(chosen, best.log_evidence, best.effective, "importance sampling")
    return Draws(_walk(bounded, chosen, rng), best.log_evidence, float(_WALKERS), "walkers")


def _bounded(density: LogDensity, lowest: Floats, highest: Floats) -> LogDensity:
    def bounded(parameters: Floats) -> Floats:
        inside = np.all((parameters >= lowest) & (parameters <= highest), axis=1)
        values = np.full(len(parameters), -np.inf)
        values[inside] = density(parameters[inside])
        return values

    return bounded


def _proposed(
    bounded: LogDensity, density: LogDensity, modes: Sequence[Mode], count: int, rng: np.random.Generator
) -> _Weighted:
    """Weighted draws of the last proposal."""
    found = [_Bump.at(density, mode) for mode in modes]
    masses = np.array([bump.log_mass for bump in found])
    shares = 0.9 * special.softmax(masses) + 0.1 / len(found)
    best = _weighted(bounded, found, shares, count, rng)
    for _ in range(_ADAPTATIONS):
        components = [*found, best.summed_up()]
        before, best = best, _weighted(bounded, components, np.append(0.4 * shares, 0.6), count, rng)
        settled = abs(best.log_evidence - before.log_evidence) < _SETTLED
        if settled and best.effective >= _ENOUGH_SHARE * count:
            break
    return best


@dataclass(frozen=True)
class _Bump:
    """One component of a proposal."""

    centre: Floats
    root: Floats  # lower triangular root of its scale matrix [D, D]
    log_mass: float  # of the density around its centre [D]

    @classmethod
    def at(cls, density: LogDensity, mode: Mode) -> _Bump:
        size = len(mode.at)
        rows, columns = np.triu_indices(size)
        steps = np.eye(size) * _STEP
        first, second = steps[rows], steps[columns]
        corners = np.concatenate(
            [
                mode.at + a + b
                for a, b in ((first, second), (first, -second), (-first, second), (-first, -second))
            ]
        )
        values = density(corners).reshape(4, -1)
        curvature = np.zeros((size, size))
        curvature[rows, columns] = -(values[0] - values[1] - values[2] + values[3]) / (4 * _STEP**2)
        curvature[columns, rows] = curvature[rows, columns]
        along, directions = np.linalg.eigh(curvature)
        along = np.maximum(along, _LEAST_CURVATURE)
        covariance = (directions / along) @ directions.T
        log_mass = mode.log_density + size / 2 * np.log(2 * np.pi) - 0.5 * float(np.log(along).sum())
        return cls(mode.at, np.linalg.cholesky(covariance) * _WIDER, log_mass)

    def log_density(self, parameters: Floats) -> Floats:
        """Of the t distribution [P]."""
        size = len(self.centre)
        standard = linalg.solve_triangular(self.root, (parameters - self.centre).T, lower=True)
        spread = np.log1p((standard**2).sum(axis=0) / _FREEDOM)
        constant = special.gammaln((_FREEDOM + size) / 2) - special.gammaln(_FREEDOM / 2)
        constant -= size / 2 * np.log(_FREEDOM * np.pi) + np.log(np.diag(self.root)).sum()
        density: Floats = constant - (_FREEDOM + size) / 2 * spread
        return density


@dataclass(frozen=True)
class _Weighted:
    """Draws of a proposal [S, D] and their weights [S], which sum to 1."""

    parameters: Floats
    weights: Floats
    log_evidence: float

    @property
    def effective(self) -> float:
        return 1 / float((self.weights**2).sum())

    def summed_up(self) -> _Bump:
        centre: Floats = self.weights @ self.parameters
        off = self.parameters - centre
        covariance = off.T @ (off * self.weights[:, None]) + 1e-6 * np.eye(len(centre))
        return _Bump(centre, np.asarray(np.linalg.cholesky(covariance), np.float64) * _MUCH_WIDER, 0.0)


def _weighted(
    density: LogDensity, bumps: Sequence[_Bump], shares: Floats, count: int, rng: np.random.Generator
) -> _Weighted:
    shares = shares / shares.sum()
    which = rng.choice(len(bumps), count, p=shares)
    size = len(bumps[0].centre)
    tails = rng.standard_normal((count, size)) / np.sqrt(rng.chisquare(_FREEDOM, count) / _FREEDOM)[:, None]
    centres, roots = np.stack([b.centre for b in bumps]), np.stack([b.root for b in bumps])
    parameters: Floats = centres[which] + np.einsum("sij,sj->si", roots[which], tails)
    parts = [np.log(share) + bump.log_density(parameters) for share, bump in zip(shares, bumps, strict=True)]
    log_weights = density(parameters) - special.logsumexp(np.stack(parts), axis=0)
    total = float(special.logsumexp(log_weights))
    return _Weighted(parameters, np.exp(log_weights - total), total - np.log(count))


def _walk(density: LogDensity, starts: Floats, rng: np.random.Generator) -> Floats:
    """Later steps of walkers that begin at some of the starts [S, D]; as many as there are starts."""
    count, size = starts.shape
    # Two walkers at one place never part, so each starts a little aside.
    spread = 0.1 * np.maximum(starts.std(axis=0), 1e-3)
    walkers = starts[rng.choice(count, min(count, _WALKERS), replace=False)]
    aside = walkers + spread * rng.standard_normal(walkers.shape)
    inside = np.isfinite(density(aside))
    walkers[inside] = aside[inside]
    values = density(walkers)
    places: list[Floats] = []
    half = len(walkers) // 2
    for step in range(_WALKER_STEPS):
        for moved, others in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
            towards = rng.choice(walkers[others], len(walkers[moved]))
            # Density of the stretch proportional to 1 / sqrt(z) on [1/2, 2] (Goodman and Weare, equation 9).
            stretch = 0.5 * (1 + rng.random(len(towards))) ** 2
            proposed = towards + stretch[:, None] * (walkers[moved] - towards)
            new = density(proposed)
            odds = (size - 1) * np.log(stretch) + new - values[moved]
            accepted = np.log(rng.random(len(towards))) < odds
            walkers[moved] = np.where(accepted[:, None], proposed, walkers[moved])
            values[moved] = np.where(accepted, new, values[moved])
        if step >= _WALKER_STEPS // 2:
            places.append(walkers.copy())
    return rng.permutation(np.concatenate(places))[:count]
