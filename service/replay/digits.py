"""Recordings of two classifiers of handwritten digits, made from the images that scikit-learn has."""

from __future__ import annotations

import numpy as np

from service.errors import RecordingError
from service.replay.recording import Recording

_SEED = 0
_TRAINING_IMAGES = 150
"""So few that both classifiers err often enough to tell their groups apart."""

_BRIGHTEST = 16.0


def digits_recordings() -> list[Recording]:
    """`digits_logistic`, moderately confident, and `digits_naive_bayes`, badly overconfident.

    Both are trained on the same few images and recorded on the 1,647 others; they are the same every time.

    Raises:
        RecordingError: scikit-learn is missing.
    """
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415 - an extra, slow to import
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra, slow to import
        from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415 - an extra, slow to import
    except ImportError as error:
        raise RecordingError(
            "digits", "these recordings need scikit-learn; run: pip install 'credence[demo]'"
        ) from error
    digits = load_digits()
    images, labels = digits.data / _BRIGHTEST, digits.target.astype(np.int64)
    order = np.random.default_rng(_SEED).permutation(len(images))
    training, pool = order[:_TRAINING_IMAGES], order[_TRAINING_IMAGES:]
    classifiers = {
        "digits_logistic": LogisticRegression(C=5.0, max_iter=1_000),
        # Pixels that never vary in the training images would else decide alone.
        "digits_naive_bayes": GaussianNB(var_smoothing=1e-3),
    }
    recordings = []
    for name, classifier in classifiers.items():
        classifier.fit(images[training], labels[training])
        recordings.append(Recording(name, classifier.predict_proba(images[pool]), labels[pool]))
    return recordings
