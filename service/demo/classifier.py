"""The demo's classifier: three members that vote by their probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from service.demo.world import BRIGHTEST
from service.domain.arrays import Floats, Indices

_DECIMALS = 6


@dataclass(frozen=True)
class Predictions:
    """Predictions of a batch of images."""

    probabilities: Floats  # [n, classes]: as they go on the wire
    predicted: Indices  # index of the most probable class [n]
    votes: dict[str, Indices]  # per member, the index of the class that it predicts [n]


class Classifier:
    """A soft-voting ensemble of scikit-learn classifiers.

    It is trained on clean images [n, 8, 8] and the indices of their classes [n]; every class occurs.
    """

    def __init__(self, images: Floats, classes: Indices) -> None:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra, slow to import
        from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415 - an extra, slow to import
        from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415 - an extra, slow to import

        self._members: dict[str, Any] = {
            "linear": LogisticRegression(C=20.0, max_iter=1_000),
            "neighbours": KNeighborsClassifier(n_neighbors=5),
            "bayes": GaussianNB(var_smoothing=0.05),
        }
        for member in self._members.values():
            member.fit(_features(images), classes)

    def predict(self, images: Floats) -> Predictions:
        """Predict a batch of images [n, 8, 8]."""
        features = _features(images)
        each = {name: member.predict_proba(features) for name, member in self._members.items()}
        probabilities: Floats = np.round(np.stack(list(each.values())).mean(axis=0), _DECIMALS)
        return Predictions(
            probabilities=probabilities,
            predicted=probabilities.argmax(axis=1),
            votes={name: member.argmax(axis=1) for name, member in each.items()},
        )


def _features(images: Floats) -> Floats:
    return images.reshape(len(images), -1) / BRIGHTEST
