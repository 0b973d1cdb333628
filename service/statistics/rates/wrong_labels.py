"""Bets on a rate that stay fair if labels may be wrong.

Items of a group are of four kinds: positive or not, and selected or not. Of each kind at most a share d of
the labels is wrong, that is, says the opposite of whether the item is positive. Nothing else is assumed of
which labels are wrong.

A label of an item of prediction s gains g(1, s) if it is positive, and g(0, s) if not. With right labels, the
gain is at most 0 on average as long as the hypothesis is true. Let h be the higher of both and l the lower
one. The lower one becomes

    l' = (l - d h) / (1 - d) = l - d / (1 - d) (h - l),

and the higher one stays. Then an item whose right label gains l' gains at most (1 - d) l' + d h = l on
average, and an item whose right label gains h at most h, whatever labels are wrong. So the mean over all
items is at most that of g with right labels, and the bet is fair. It is exact: if so many labels are wrong
where that gains, and none elsewhere, both means are the same.
"""

from __future__ import annotations

import numpy as np

from service.domain.arrays import Floats


def allow_for_wrong_labels(gains: Floats, wrong_labels: float) -> Floats:
    """Gains of labels [..., 2, 2], by whether a label is positive, and the item selected, as gains of truth.

    At most the share `wrong_labels` of the labels of every kind of items is wrong, in [0, 1).
    """
    other = gains[..., ::-1, :]  # of the opposite label
    lost = np.maximum(other - gains, 0.0) * wrong_labels / (1 - wrong_labels)
    return np.asarray(gains - lost, np.float64)
