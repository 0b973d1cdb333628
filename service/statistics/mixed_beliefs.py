"""One posterior from several imputations of what the labels leave open (Rubin, 1987): their mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from service.statistics.calibration import calibration_error
from service.statistics.groups import GroupingBeliefs
from service.statistics.mixture import BetaMixture


def mixed_beliefs(imputed: Sequence[GroupingBeliefs]) -> GroupingBeliefs:
    """The mixture of posteriors of the same groups, each given one imputation, all equally probable.

    Effective numbers of labels are means. A group has no incorrect label, or no correct one, if that is so in
    all imputations.
    """
    first, bins = imputed[0], _mixed([each.bins for each in imputed])
    correct = np.stack([each.labels_correct for each in imputed])
    counted = first.labels_counted
    inner = np.clip(np.rint(correct.mean(axis=0)), np.minimum(1, counted), np.maximum(counted - 1, 0))
    agreed = (correct == correct[0]).all(axis=0)
    return replace(
        first,
        labels=np.mean([each.labels for each in imputed], axis=0),
        correct=np.mean([each.correct for each in imputed], axis=0),
        labels_correct=np.where(agreed, correct[0], inner).astype(np.int64),
        accuracy=_mixed([each.accuracy for each in imputed]),
        overall=_mixed([each.overall for each in imputed]),
        bins=bins,
        ece=calibration_error(beliefs=bins, scores=first.cells.scores, shares=first.cells.shares),
    )


def _mixed(mixtures: Sequence[BetaMixture]) -> BetaMixture:
    return BetaMixture(
        np.concatenate([each.weights for each in mixtures]) / len(mixtures),
        np.concatenate([each.alpha for each in mixtures]),
        np.concatenate([each.beta for each in mixtures]),
    )
