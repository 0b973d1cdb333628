"""The confusion matrix: its document, made from a snapshot."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from service.domain.arrays import Indices
from service.domain.errors import NotKnown
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.base import Document, Interval, Seconds
from service.statistics.confusion import Confusion

_MOST_MISTAKES = 20


class ConfusionRow(Document):
    """The true classes of one predicted class."""

    predicted: str
    share: float = Field(description="of the traffic")
    effective_labels: float
    classes: list[Interval] = Field(description="probability of every true class, in the order of `classes`")


class FrequentMistake(Document):
    """A frequent confusion."""

    predicted: str
    true: str
    probability: Interval = Field(description="of the true class, given the predicted one")
    frequency: float = Field(description="posterior mean of the share of all traffic with this mistake")


class ConfusionMatrix(Document):
    """Probabilities of the true class, given the predicted one."""

    model: str
    taken_at: Seconds
    classes: list[str] = Field(description="true classes shown, in the order of the configuration")
    omitted: int = Field(description="number of classes that are not shown, those with the fewest mistakes")
    rows: list[ConfusionRow]
    mistakes: list[FrequentMistake] = Field(description="the most frequent first, at most 20")


def confusion_matrix(snapshot: ModelSnapshot, *, classes: int) -> ConfusionMatrix:
    """The true class given the predicted one, of the most confused classes, at most `classes`.

    Raises:
        NotKnown: the model has no grouping by predicted class, too many classes, or no traffic.
    """
    grouping = next((g for g in snapshot.groupings.values() if g.confusion is not None), None)
    if grouping is None or grouping.confusion is None:
        raise NotKnown("there is no confusion matrix: no grouping by predicted class, or no traffic yet")
    matrix, shares = grouping.confusion, grouping.beliefs.shares
    predicted = matrix.beliefs.predicted
    wrong = matrix.mean * shares[:, None]
    wrong[np.arange(len(predicted)), predicted] = 0.0
    involved = wrong.sum(axis=0)
    involved[predicted] += wrong.sum(axis=1)
    shown = np.sort(np.argsort(-involved, kind="stable")[:classes])
    rows = np.array([g for g in range(len(predicted)) if predicted[g] in shown], dtype=np.intp)
    entries = _entries(snapshot, matrix.beliefs, np.repeat(rows, len(shown)), np.tile(shown, len(rows)))
    frequent = matrix.beliefs.most_frequent(_MOST_MISTAKES)
    mistakes = _entries(snapshot, matrix.beliefs, *frequent)
    return ConfusionMatrix.of(
        snapshot,
        classes=[matrix.classes[k] for k in shown],
        omitted=len(matrix.classes) - len(shown),
        rows=[
            ConfusionRow(
                predicted=matrix.classes[predicted[g]],
                share=float(shares[g]),
                effective_labels=float(matrix.labels[g]),
                classes=entries[i * len(shown) : (i + 1) * len(shown)],
            )
            for i, g in enumerate(rows)
        ],
        mistakes=[
            FrequentMistake(
                predicted=matrix.classes[predicted[g]],
                true=matrix.classes[k],
                probability=probability,
                frequency=probability.mean * float(shares[g]),
            )
            for g, k, probability in zip(*frequent, mistakes, strict=True)
        ],
    )


def _entries(
    snapshot: ModelSnapshot, confusion: Confusion, groups: Indices, classes: Indices
) -> list[Interval]:
    settings = snapshot.settings
    found = confusion.entries(groups, classes, mass=settings.interval, kind=settings.interval_kind)
    return [Interval.at_index(found, i) for i in range(len(groups))]
