"""Settings of evidence, and which accuracy a certificate can show; frozen."""

from __future__ import annotations

from typing import TypeGuard

from pydantic import Field

from service.config.labels_per_item import LabelsPerItem
from service.config.types import Frozen
from service.domain.assessments import MOST_TARGET


class EvidenceSettings(Frozen):
    """Error rate of confirmed findings, under continuous monitoring, and which groups certificates need."""

    alpha: float = Field(default=0.05, ge=1e-6, le=0.5)
    """false discovery rate of all confirmed findings about a model at any one time. It also bounds the
    probability that anything is ever confirmed while nothing is wrong, that a certificate is ever given
    although a group misses `alerts.min_accuracy`, and that a group's confidence sequence ever misses its
    accuracy"""
    certificate_least_share: float = Field(default=0.0, ge=0, lt=1)
    """least share of the model's traffic with which a certificate needs a group. The policy `certify`, status
    page and `credence gate` leave out groups with a smaller one, and `__other__` too. By default a
    certificate needs all groups that have traffic"""


def most_certified(labels: LabelsPerItem) -> float:
    """The highest accuracy that a certificate can show."""
    return 1 - (1 - MOST_TARGET) / (1 - labels.wrong_labels)


def is_certifiable(least: float | None, labels: LabelsPerItem) -> TypeGuard[float]:
    """Whether a certificate can show an accuracy of at least `least`.

    One label shows that an accuracy exceeds 0, and none that it reaches 1.
    """
    return least is not None and 0 < least <= most_certified(labels)


def certificate_target(least: float | None, labels: LabelsPerItem) -> float | None:
    """The share of predictions that labels must agree with to show an accuracy of at least `least`.

    Labels may be wrong: of incorrect predictions, at most a share of them is, and agrees. None if it cannot
    be shown. A share of wrong labels that is learned moves while bets run, and would make another test of
    each.
    """
    if (wrong := labels.stated_bound) is None or not is_certifiable(least, labels):
        return None
    return least + (1 - least) * wrong
