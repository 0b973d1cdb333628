"""Which labels of a group are its reference, and which are compared with it (pure)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from service.domain.arrays import Flags, Floats, Indices


class ReferenceSplit(NamedTuple):
    """Which labels are of the reference, and which of "now"; some may be neither [n]."""

    then: Flags
    now: Flags


def split_labels(groups: Indices, suspected: Flags, left: Floats) -> ReferenceSplit:
    """The reference of every group: its first labels that were requested while it was not suspected.

    What comes once the reference is complete is "now". Whether a label is of the reference is known when it
    is requested, so it depends on earlier labels and never on the label itself.

    Args:
        groups: of each label, ascending; in a group, labels are in the order of their requests.
        suspected: whether the group was under suspicion when the label was requested.
        left: labels that the reference of every group lacks before the first of these [G].
    """
    fits = ~suspected
    before: Indices = np.cumsum(fits) - fits
    rank = ranks(groups, len(left))
    firsts = np.arange(len(groups)) - rank
    # Labels that fit, of the same group and before each.
    count: Indices = before - before[firsts]
    is_complete = count >= left[groups]
    return ReferenceSplit(fits & ~is_complete, is_complete)


def ranks(groups: Indices, count: int) -> Indices:
    """How many labels of the same group come before each, of labels that are sorted by group [n]."""
    lengths = np.bincount(groups, minlength=count)
    return np.asarray(np.arange(len(groups)) - (np.cumsum(lengths) - lengths)[groups], np.intp)
