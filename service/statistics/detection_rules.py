"""What the two rules that find a fault say of typical labels: the posterior, and anytime-valid evidence.

Labels are "typical": wrong ones are spread evenly, before the fault at the rate of the accuracy before it,
and since then at any other rate. So a rule is a function of the labels since the fault and of that rate.
Places at which the accuracy may have changed are a few dozen, dense around the fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics.baselines import baselines
from service.statistics.change_points import FEWEST, LEAST_KEPT, LEVEL_LABELS, RARER
from service.statistics.curve_fit import POINTS
from service.statistics.curves import LearnedCurve
from service.statistics.e_detector import MORE_ERRORS, log_ratios, log_unstaked
from service.statistics.e_processes import log_arrival_weights, log_e_below
from service.statistics.laplace import log_t

_SINCE: Final[Floats] = np.array(
    [0.02, 0.05, 0.1, 0.18, 0.28, 0.4, 0.52, 0.65, 0.77, 0.89, 1.0]
)  # places since the fault, as shares
_BEFORE: Final = (1.6 ** np.arange(1.0, 12.0) - 1) / (1.6**11 - 1)  # and before it; the last is the first
_OFFSETS: Final[Floats] = np.linspace(-5.0, 2.5, 91)  # logits of a group's accuracy, from that before
_NODES, _NODE_WEIGHTS = (np.array(each) for each in zip(*POINTS, strict=True))
_ADDED: Final[Floats] = np.linspace(0.0, 1.0, 9)  # squared logits that a change adds to the prior's variance
_FURTHER: Final = 0.75  # log of what further changes before a place add to its evidence, in run lengths
_LONGEST: Final = 500.0  # run lengths of labels, beyond which a change is certain anyway
KINDS: Final = 4  # of evidence, which share alpha
BASELINES: Final = 0.5  # of the share of the evidence of a change, what pays for its baseline


class Seen(NamedTuple):
    """Labels of the group at every look [L], and how many days ago the fault was."""

    since: Floats  # of predictions since the fault
    before: Floats  # of predictions before it
    days: Floats


class Posterior(NamedTuple):
    """What the service estimates of the group at every look [L]."""

    below: Floats  # probability that its accuracy is below the threshold
    changed: Floats  # probability that it has changed
    labels: Floats  # effective number
    mean: Floats
    deviation: Floats


@dataclass(frozen=True)
class PosteriorRule:
    """The posterior under the learned prior, change points and the half-life of labels."""

    accuracy: float  # before the fault
    threshold: float
    groups: int
    labels_before: float  # of each group, when the fault begins
    days_before: float
    half_life_days: float | None
    run_length: float | None

    def posterior(self, errors: Floats, seen: Seen) -> Posterior:
        """Of labels whose wrong ones have this share since the fault [L]."""
        ages, wrong = self._places(errors, seen)
        changed, kept = self._kept(ages, wrong)
        counts = np.diff(ages, axis=1, prepend=0.0)
        counted = kept * self._freshness(ages, seen) * counts
        labels = counted.sum(axis=1)
        mistaken = (counted * np.diff(wrong, axis=1, prepend=0.0) / np.maximum(counts, 1e-12)).sum(axis=1)
        below, mean, deviation = self._estimated(labels, mistaken, changed)
        return Posterior(below, changed, labels, mean, deviation)

    def _places(self, errors: Floats, seen: Seen) -> tuple[Floats, Floats]:
        """Labels since every place, and wrong ones of them [L, P], the latest place first."""
        since = seen.since[:, None] * _SINCE
        before = seen.before[:, None] * _BEFORE
        ages = np.concatenate((since, seen.since[:, None] + before), axis=1)
        typical = (1 - self.accuracy) * before
        wrong = errors[:, None] * since
        return ages, np.concatenate((wrong, wrong[:, -1:] + typical), axis=1)

    def _kept(self, ages: Floats, wrong: Floats) -> tuple[Floats, Floats]:
        """Probability of a change [L], and what is left of labels between two places [L, P].

        As in `change_points.py`, with at most one change beside that at the fault.
        """
        if self.run_length is None:
            return np.zeros(len(ages)), np.ones(ages.shape)
        total, mistaken = ages[:, -1:], wrong[:, -1:]
        prior_wrong = LEVEL_LABELS * (mistaken + 0.5) / (total + 1)
        prior_right = LEVEL_LABELS - prior_wrong
        right = ages - wrong
        widths = np.diff((np.concatenate((np.zeros((len(ages), 1)), ages), axis=1)), axis=1)
        widths[:, :-1] = (widths[:, :-1] + widths[:, 1:]) / 2
        chance = np.log(np.maximum(widths, 1e-12) / self.run_length)
        evidence = partial(_log_evidence, prior_right, prior_wrong)
        before = evidence(np.maximum(right[:, -1:] - right, 0), np.maximum(mistaken - wrong, 0))
        found = evidence(right, wrong) + before
        # By chance, a further change has the mean likelihood ratio 1: against none, and after the fault.
        fault = len(_SINCE) - 1
        floor = np.tile(found[:, -1:], (1, found.shape[1]))
        floor[:, :fault] = np.logaddexp(floor[:, :fault], found[:, [fault]] + chance[:, [fault]])
        found = np.maximum(found, floor)
        chance += _FURTHER * (ages[:, -1:] - ages) / self.run_length
        chance[:, -1] = 0.0
        likelihood = found + np.where(ages < FEWEST, -np.inf, chance)
        likelihood[:, -1] = np.where(total[:, 0] < 2 * FEWEST, 0.0, likelihood[:, -1])
        last = special.softmax(likelihood, axis=1)
        unchanged, size = last[:, -1], np.clip(ages[:, -1], 1e-6, _LONGEST * self.run_length)
        ahead, if_rarer = (
            np.expm1(-size * np.log1p(-1 / r)) for r in (self.run_length, RARER * self.run_length)
        )
        odds = (1 - unchanged) * if_rarer / ahead
        mean = (prior_right + right) / (LEVEL_LABELS + ages)
        variance = mean * (1 - mean) / (LEVEL_LABELS + ages + 1)
        middle = (last * mean).sum(axis=1)
        spread = (last * (variance + (mean - middle[:, None]) ** 2)).sum(axis=1)
        left = middle * (1 - middle) / spread - 1 - LEVEL_LABELS
        left = np.maximum(left, np.minimum(LEAST_KEPT, size / 4))
        each = np.cumsum((last / np.maximum(ages, 1e-12))[:, ::-1], axis=1)[:, ::-1]
        return odds / (odds + unchanged), np.minimum(left[:, None] * each, 1.0)

    def _freshness(self, ages: Floats, seen: Seen) -> Floats:
        """What age leaves of labels between two places, on average [L, P]."""
        if self.half_life_days is None:
            return np.ones(ages.shape)
        decay = np.log(2) / self.half_life_days
        since = seen.days[:, None] * _SINCE
        old = seen.days[:, None] + self.days_before * _BEFORE
        ends = decay * np.concatenate((since, old), axis=1)
        begins = np.concatenate((np.zeros((len(ages), 1)), ends[:, :-1]), axis=1)
        left: Floats = np.exp(-begins) * -np.expm1(begins - ends) / np.maximum(ends - begins, 1e-12)
        return left

    def _estimated(self, labels: Floats, wrong: Floats, changed: Floats) -> tuple[Floats, Floats, Floats]:
        """P(below the threshold), mean and deviation of the accuracy, from effective labels [L]."""
        theta, priors = self._prior
        likelihood = (labels - wrong)[:, None] * np.log(theta) + wrong[:, None] * np.log1p(-theta)
        place = changed * (len(_ADDED) - 1)
        row = np.minimum(place.astype(np.intp), len(_ADDED) - 2)
        share = (place - row)[:, None]
        prior = priors[row] * (1 - share) + priors[row + 1] * share
        posterior = prior * np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        mean = posterior @ theta
        deviation = np.sqrt(np.maximum(posterior @ theta**2 - mean**2, 1e-12))
        return _below(theta, posterior, self.threshold), mean, deviation

    @cached_property
    def _prior(self) -> tuple[Floats, Floats]:
        """Accuracies on a grid [U], and the prior of the group there, for every scale that a change adds."""
        theta = special.expit(special.logit(self.accuracy) + _OFFSETS)
        spreads, tails, deviations, weights = self._spreads
        tails = tails[:, None, None]
        places = _OFFSETS[:, None] - _NODES * deviations[:, None, None]
        priors = []
        for added in _ADDED:
            scales = np.sqrt(spreads**2 + added)[:, None, None]
            priors.append(weights @ (np.exp(log_t(places, scales, tails)) @ _NODE_WEIGHTS))
        return theta, np.array([prior / prior.sum() for prior in priors])

    @cached_property
    def _spreads(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The learned prior of a group's logit: spreads, tails, deviations beside them, and weights [J].

        Given n effective labels of each, the logit of a healthy group has the sampling variance 1 / (n p
        (1 - p)), and the spreads have the marginal likelihood of estimates that scatter as much as that.
        """
        prior, information = LearnedCurve(), self.accuracy * (1 - self.accuracy)
        spread, tail, strength = prior.grid
        variance = spread**2 + 1 / ((strength + 1) * information)
        sampling = 1 / (max(self._healthy_labels, 1e-3) * information)
        others = self.groups - 1
        log_weights = -others / 2 * (np.log(variance + sampling) + sampling / (variance + sampling))
        centre = 1 / (1 + others / (variance + sampling))  # variance of the mean of all groups
        return spread, tail, np.sqrt(variance - spread**2 + centre), special.softmax(log_weights)

    @cached_property
    def healthy(self) -> Posterior:
        """What is estimated of a group that has not changed, at one look."""
        before = np.array([self.labels_before])
        return self.posterior(np.zeros(1), Seen(np.zeros(1), before, np.zeros(1)))

    @cached_property
    def _healthy_labels(self) -> float:
        """Its effective number of labels."""
        seen = Seen(np.zeros(1), np.array([self.labels_before]), np.zeros(1))
        ages, wrong = self._places(np.zeros(1), seen)
        kept = self._kept(ages, wrong)[1] * self._freshness(ages, seen)
        return float((kept * np.diff(ages, axis=1, prepend=0.0)).sum())


@dataclass(frozen=True)
class EvidenceRule:
    """E-values against a group: it is below the threshold, or it became less accurate."""

    accuracy: float  # before the fault
    threshold: float
    alpha: float
    groups: int
    labels_before: float
    reference: float  # first labels of the group, which set its baseline

    def log_evidence(self, errors: Floats, labels: Floats) -> Floats:
        """Log of the weighted e-value in excess of log(1 / alpha), by the share of wrong labels [L].

        Weighted e-BH takes an e-value E when w E reaches 1 / alpha, with w the share of alpha that the group
        had when it arrived: that of the middle one of the groups. `labels` are those since the fault [L].
        """
        weight = float(log_arrival_weights(np.array([(self.groups + 1) // 2]))[0]) - np.log(KINDS)
        enough = -np.log(self.alpha) - weight
        wrong, typical = errors * labels, (1 - self.accuracy) * self.labels_before
        right = (1 - errors) * labels + self.labels_before - typical
        below = log_e_below(right, wrong + typical, np.array(self.threshold))
        found: Floats = np.maximum(below, self._log_changed(wrong, labels, weight)) - enough
        return found

    def _log_changed(self, wrong: Floats, labels: Floats, weight: float) -> Floats:
        """The evidence of a change, from bets that begin at a few places [L]."""
        first = min(self.reference, self.labels_before)
        if first < 1:
            return np.full(len(labels), -np.inf)
        known = np.array([first])
        baseline = baselines(
            known * self.accuracy,
            known * (1 - self.accuracy),
            alpha=np.array([self.alpha * np.exp(weight) * BASELINES]),
            fixed=True,
            threshold=self.threshold,
        )
        of_right, of_wrong = (ratio[0] for ratio in log_ratios(baseline))
        healthy = max(self.labels_before - self.reference, 0.0)
        since = labels[:, None] * np.append(0.0, _SINCE)
        before = healthy * _BEFORE[None] + np.zeros((len(labels), 1))
        ages = np.concatenate((since, labels[:, None] + before), axis=1)
        share = (wrong / np.maximum(labels, 1e-12))[:, None]
        mistaken = np.concatenate((share * since, wrong[:, None] + (1 - self.accuracy) * before), axis=1)
        left = log_unstaked((labels + healthy)[:, None] - ages)
        # All the stakes between two places, on the later one and on the earlier one alike.
        stakes = left[:, 1:] + np.log(-np.expm1(left[:, :-1] - left[:, 1:]) + 1e-300)
        wealth = (ages - mistaken)[..., None] * of_right + mistaken[..., None] * of_wrong
        middles = np.logaddexp(wealth[:, 1:], wealth[:, :-1]) - np.log(2)
        bets = special.logsumexp(stakes[..., None] + middles, axis=(1, 2)) - np.log(len(MORE_ERRORS))
        found: Floats = np.logaddexp(bets, log_unstaked(labels + healthy)) + np.log1p(-BASELINES)
        return found


def _log_evidence(prior_right: Floats, prior_wrong: Floats, right: Floats, wrong: Floats) -> Floats:
    """Log marginal likelihood of labels under a Beta prior, of any shape."""
    found: Floats = special.betaln(prior_right + right, prior_wrong + wrong)
    return found - special.betaln(prior_right, prior_wrong)


def _below(theta: Floats, posterior: Floats, threshold: float) -> Floats:
    """Probability below the threshold, of a distribution on an ascending grid [L, U]."""
    ends = np.concatenate(([0.0], (theta[1:] + theta[:-1]) / 2, [1.0]))
    whole = int(np.searchsorted(ends, threshold, "right")) - 1
    share = (threshold - ends[whole]) / (ends[whole + 1] - ends[whole])
    found: Floats = posterior[:, :whole].sum(axis=1) + share * posterior[:, whole]
    return found
