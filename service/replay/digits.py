"""Recordings of classifiers of handwritten digits, made from the images that scikit-learn has.

They are the same every time. Without scikit-learn all raise `RecordingError`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from service.domain.arrays import Floats, Indices, Ints
from service.domain.errors import RecordingError
from service.replay.options import DIGITS
from service.replay.recording import Recording

_SEED = 0
_TRAINING_IMAGES = 150
"""So few that both classifiers err often enough to tell their groups apart."""

VOTERS_TRAINING_IMAGES = 300
"""So few that digits are confused often enough for members of an ensemble to differ."""

_BRIGHTEST = 16.0
_REGION = "region"


class Split(NamedTuple):
    """All images, and which of them are for training."""

    images: Floats
    labels: Ints
    training: Indices
    rest: Indices


def split_digits(training_images: int, rng: np.random.Generator) -> Split:
    """The images, in a random order, of which so many are for training."""
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415 - an extra, slow to import
    except ImportError as error:
        raise RecordingError(
            "digits", "these recordings need scikit-learn; run: pip install 'credence[demo]'"
        ) from error
    digits = load_digits()
    order = rng.permutation(len(digits.data))
    training, rest = order[:training_images], order[training_images:]
    return Split(digits.data / _BRIGHTEST, digits.target.astype(np.int64), training, rest)


def logistic_regression() -> Any:
    """A classifier of digits that is moderately confident."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra, slow to import

    return LogisticRegression(C=5.0, max_iter=1_000)


def digits_split() -> Split:
    """The images of the recordings that `digits_recordings` makes."""
    return split_digits(_TRAINING_IMAGES, np.random.default_rng(_SEED))


def digits_recordings(split: Split | None = None) -> list[Recording]:
    """`digits_logistic`, moderately confident, and `digits_naive_bayes`, badly overconfident.

    Both are trained on the same few images and recorded on the 1,647 others.
    """
    split = split or digits_split()
    return _recorded(split, {"digits_logistic": logistic_regression(), "digits_naive_bayes": _naive_bayes()})


def by_region(recording: Recording, attribute: str) -> Recording:
    """The recording with the only attribute that digits have: eight regions, dealt out in turn.

    Raises:
        RecordingError: it is another attribute.
    """
    if attribute != _REGION:
        raise RecordingError(DIGITS, f"they have no attribute {attribute}, but {_REGION}: r0 to r7")
    return replace(recording, values=np.array([f"r{place % 8}" for place in range(recording.size)]))


def digits_voters() -> list[Recording]:
    """A logistic regression, naive Bayes and the three nearest neighbours: members of an ensemble.

    All are trained on the same few images and recorded on the 1,497 others.
    """
    split = split_digits(VOTERS_TRAINING_IMAGES, np.random.default_rng(_SEED))
    from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415 - an extra, slow to import

    return _recorded(
        split,
        {
            "digits_logistic": logistic_regression(),
            "digits_naive_bayes": _naive_bayes(),
            "digits_neighbours": KNeighborsClassifier(3),
        },
    )


def _naive_bayes() -> Any:
    from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415 - an extra, slow to import

    # Pixels that never vary in the training images would else decide alone.
    return GaussianNB(var_smoothing=1e-3)


def _recorded(split: Split, classifiers: dict[str, Any]) -> list[Recording]:
    """What classifiers say of the images that they were not trained on."""
    training, labels = split.images[split.training], split.labels[split.training]
    rest, truth = split.images[split.rest], split.labels[split.rest]
    return [
        Recording(name, classifier.fit(training, labels).predict_proba(rest), truth)
        for name, classifier in classifiers.items()
    ]
