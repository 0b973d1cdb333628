"""How reliable the people are who label items of a model, where labels may be wrong (pure)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.monitoring.label_truth import LearnedTruth


@dataclass(frozen=True)
class AnnotatorEstimate:
    """One person: the share of the model's items about which they are right."""

    vendor: str  # empty without vendors
    annotator: str
    labels: int  # that the estimate uses
    lower: float  # credible interval, and posterior mean
    mean: float
    upper: float


def annotator_estimates(truth: LearnedTruth | None, interval: float) -> tuple[AnnotatorEstimate, ...]:
    """Of all people with labels, by their lower ends; none where labels are the truth."""
    if truth is None:
        return ()
    tail = (1 - interval) / 2
    lower, upper = np.quantile(truth.reliability, [tail, 1 - tail], axis=0).tolist()
    mean = truth.reliability.mean(axis=0).tolist()
    found = [
        AnnotatorEstimate(vendor, annotator, labels, *ends)
        for (vendor, annotator), labels, *ends in zip(
            truth.people, truth.labels.tolist(), lower, mean, upper, strict=True
        )
        if labels
    ]
    return tuple(sorted(found, key=lambda each: each.lower))
