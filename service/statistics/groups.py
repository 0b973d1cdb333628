"""Posteriors of all groups of one grouping, computed from facts, for service and replay alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.statistics import beta as betas
from service.statistics.balance_heuristic import effective_counts, sums
from service.statistics.beliefs import AccuracyBeliefs
from service.statistics.bin_beliefs import BinBeliefs, FittedBins
from service.statistics.calibration import (
    CalibrationError,
    PossibleCalibrationError,
    calibration_error,
)
from service.statistics.curve_fit import CurveFit
from service.statistics.curves import LearnedCurve
from service.statistics.laplace import Cells
from service.statistics.mixture import BetaMixture
from service.statistics.names import PriorName
from service.statistics.prior_posterior import binwise, plausible_fit, single
from service.statistics.priors import FIXED_PRIORS, FixedPrior
from service.statistics.ratios import ratio


@dataclass(frozen=True)
class CellTraffic:
    """Traffic of every cell [cells]: weights, and weighted sums of scores."""

    weights: Floats
    score_sums: Floats


@dataclass(frozen=True)
class Labels:
    """Labelled predictions as columns [n]; a row is one, or several identical ones.

    Posteriors need sums over labels alone, and all labels of a row have its weight.
    """

    cells: Indices  # cell of each
    correct: Floats  # 1.0 where the predicted class is the true one, else 0.0
    weights: Floats  # of the balance heuristic, any scale
    freshness: Floats  # factor that forgetting leaves of each, in (0, 1]; the sum over a row's labels
    true_classes: Indices  # true class of each, -1 for one that the model does not have
    counts: Indices | None = None  # labels of each row; one if None
    # 1.0 where a challenger's class is the true one, else 0.0; None without one
    challenger: Floats | None = None

    def counted(self, groups: Indices, group_count: int) -> Ints:
        """Number of labels by group [group_count], given the group of every row [n]."""
        return np.bincount(groups, weights=self.counts, minlength=group_count).astype(np.int64)

    def counted_correct(self, groups: Indices, group_count: int) -> Ints:
        """Number of correct ones among them."""
        right = self.correct if self.counts is None else self.correct * self.counts
        return np.bincount(groups, weights=right, minlength=group_count).astype(np.int64)

    def part(self, which: Flags, weights: Floats) -> Labels:
        """Some of the rows, with other weights; arguments are of all rows [n]."""
        return Labels(
            self.cells[which],
            self.correct[which],
            weights[which],
            self.freshness[which],
            self.true_classes[which],
            None if self.counts is None else self.counts[which],
            None if self.challenger is None else self.challenger[which],
        )


@dataclass(frozen=True)
class GroupingBeliefs:
    """Posteriors of the groups of one grouping; arrays are [G]."""

    cells: Cells  # scores and traffic of the groups and their score bins
    shares: Floats  # traffic share
    scores: Floats  # mean score
    labels: Floats  # effective number of labels
    correct: Floats  # effective number of correct ones
    labels_counted: Ints  # how many labels there are, forgotten ones included
    labels_correct: Ints  # how many of them are correct
    accuracy: BetaMixture  # posterior of the accuracy [J, G]
    overall: BetaMixture  # posterior of the accuracy over all traffic [J, 1]
    bins: BetaMixture  # posterior of the accuracy of every group's score bins [Q, G * B], group by group
    ece: CalibrationError  # posterior of the calibration error
    fit: CurveFit | None  # where the prior is learned, the fit behind all of these

    @property
    def labels_incorrect(self) -> Ints:
        """How many labels are incorrect [G]."""
        return self.labels_counted - self.labels_correct

    def accuracy_interval(self, mass: float) -> tuple[Floats, Floats]:
        """Credible intervals of the accuracy [G] with probability `mass` or more.

        They are equal-tailed, but one-sided where all labels agree. An equal-tailed interval never contains
        1. So that of a group whose labels are all correct, which may be perfect, ends at 1; that of a group
        whose labels are all incorrect begins at 0. The other end stays: such a group often has few labels,
        and a tail twice as large would leave out what they cannot exclude.
        """
        lower, upper = self.accuracy.interval(mass)
        has_labels = self.labels_counted > 0
        return (
            np.where(has_labels & (self.labels_correct == 0), 0.0, lower),
            np.where(has_labels & (self.labels_incorrect == 0), 1.0, upper),
        )

    def with_accuracy_of(self, mixed: GroupingBeliefs) -> GroupingBeliefs:
        """The same of the same labels, with the posterior of a mixture that has further items as well."""
        return replace(
            self,
            accuracy=mixed.accuracy,
            overall=mixed.overall,
            bins=mixed.bins,
            ece=mixed.ece,
            fit=mixed.fit,
        )

    def allowing_for(self, mixed: GroupingBeliefs, extremes: Sequence[GroupingBeliefs]) -> GroupingBeliefs:
        """The same of the same labels, with accuracies of a mixture that allows for labels that are missing.

        `extremes` are the posteriors with any of these labels.
        """
        ece = PossibleCalibrationError(**vars(self.ece), others=tuple(each.ece for each in extremes))
        return replace(self, accuracy=mixed.accuracy, overall=mixed.overall, bins=mixed.bins, ece=ece)

    def accuracy_beliefs(self) -> AccuracyBeliefs:
        """The same for a task to read, as its only run; a copy, so that labels in flight can be counted."""
        return AccuracyBeliefs.of_one(self.accuracy)

    def bin_beliefs(self) -> BinBeliefs:
        """The same of score bins."""
        if self.fit is not None:
            return FittedBins(self.fit)
        shape = self.cells.scores.shape
        return BinBeliefs(self.cells, self.bins.alpha.reshape(shape), self.bins.beta.reshape(shape), 1)


def assess_grouping(
    *,
    cell_groups: Indices,
    cell_bins: Indices,
    group_count: int,
    bin_count: int,
    traffic: CellTraffic,
    labels: Labels,
    prior: PriorName,
    changed: Floats | None = None,
) -> GroupingBeliefs:
    """Posteriors of every group of a grouping.

    A single group is all traffic: its accuracy is the sum over score bins of traffic share times the bin's
    accuracy, so that it is as precise as its labels allow if they were drawn unevenly. With the learned prior
    the same holds for every group; with a fixed one several groups have the posterior of their own labels.

    Groups, score bins and traffic are of every cell [cells]; labels are all of the model, whoever requested
    them; `changed` is the probability that a group has changed, if estimated [G].
    """
    weights = sums(cell_groups, traffic.weights, group_count)
    total = float(weights.sum())
    overall = float(traffic.score_sums.sum()) / total if total > 0 else 0.5
    scores = ratio(sums(cell_groups, traffic.score_sums, group_count), weights, overall)
    groups = cell_groups[labels.cells]
    counts = {"weights": labels.weights, "freshness": labels.freshness, "correct": labels.correct}
    effective = effective_counts(groups=groups, group_count=group_count, **counts)

    fine_cells = cell_groups * bin_count + cell_bins
    fine_count = group_count * bin_count
    shape = (group_count, bin_count)
    fine_weights = sums(fine_cells, traffic.weights, fine_count)
    middles = np.tile((np.arange(bin_count) + 0.5) / bin_count, group_count)
    fine_scores = ratio(sums(fine_cells, traffic.score_sums, fine_count), fine_weights, middles)
    cells = Cells(
        # A group without traffic is taken to be spread evenly, to have an accuracy to speak of.
        shares=ratio(fine_weights.reshape(shape), weights[:, None], 1 / bin_count),
        scores=fine_scores.reshape(shape),
        group_shares=weights / total if total > 0 else np.zeros(group_count),
        changed=changed,
    )
    in_bins = effective_counts(groups=fine_cells[labels.cells], group_count=fine_count, **counts)
    binned = in_bins[0].reshape(shape), in_bins[1].reshape(shape)
    fit = plausible_fit(LearnedCurve(), cells, *binned) if prior == "learned" else None
    if fit is None:
        bins, accuracy, whole = _conjugate(FIXED_PRIORS[prior], cells, scores, effective, binned)
    else:
        bins, accuracy, whole = binwise(fit), single(fit.groups()), single(fit.overall())
    return GroupingBeliefs(
        cells=cells,
        shares=cells.group_shares,
        scores=scores,
        labels=effective[0],
        correct=effective[1],
        labels_counted=labels.counted(groups, group_count),
        labels_correct=labels.counted_correct(groups, group_count),
        accuracy=whole if group_count == 1 else accuracy,
        overall=whole,
        bins=bins,
        ece=calibration_error(beliefs=bins, scores=cells.scores, shares=cells.shares),
        fit=fit,
    )


def _conjugate(
    prior: FixedPrior,
    cells: Cells,
    scores: Floats,
    counts: tuple[Floats, Floats],
    binned: tuple[Floats, Floats],
) -> tuple[BetaMixture, BetaMixture, BetaMixture]:
    """Posteriors of cells, groups and all traffic under a fixed prior; counts: labels, correct ones."""
    alpha, beta = _updated(prior.parameters(cells.scores), binned)
    shares = cells.group_shares[:, None] * cells.shares
    mean = (shares * betas.mean(alpha, beta)).sum()
    variance = (shares**2 * betas.variance(alpha, beta)).sum()
    whole = betas.matching(np.atleast_1d(mean), np.atleast_1d(variance))
    groups = _updated(prior.parameters(scores), counts)
    return _plain(alpha.ravel(), beta.ravel()), _plain(*groups), _plain(*whole)


def _updated(parameters: tuple[Floats, Floats], counts: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    (alpha, beta), (labels, correct) = parameters, counts
    return alpha + correct, beta + np.maximum(labels - correct, 0.0)


def _plain(alpha: Floats, beta: Floats) -> BetaMixture:
    return BetaMixture(np.ones(1), alpha[None], beta[None])
