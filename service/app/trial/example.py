"""The recording that `credence try example` tries: `python -m service.app.trial.example FILE` writes it.

A classifier is trained on some of scikit-learn's handwritten digits, and predicts others as two cameras
deliver them; the pictures of one are noisy. The recording is the same every time.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
from pathlib import Path
from typing import Final

import numpy as np

from service.app.files.rows import UnusableFileError
from service.demo.producer import Classifier
from service.demo.world import CLASSES, World, item_id, load_split

ROWS: Final = 12_000

_SEED = 1
_BATCH_ROWS = 1_000
_COLUMNS = ("item_id", "predicted_class", "score", "camera", "ink", "true_class")
_STROKES = (320.0, 350.0)
"""Sums of pixels that part light, medium and heavy strokes: about a third of the pictures each."""


def write_example(path: Path) -> None:
    """Write the recording, a CSV file.

    Raises:
        UnusableFileError: scikit-learn is missing.
        OSError: the file exists, or cannot be written.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise UnusableFileError("example", "it needs scikit-learn; run: pip install 'credence[demo]'")
    digits = load_split(_SEED)
    world, classifier = World(_SEED, digits), Classifier(digits.training_images, digits.training_classes)
    with path.open("x", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(_COLUMNS)
        for first in range(0, ROWS, _BATCH_ROWS):
            numbers = range(first, min(first + _BATCH_ROWS, ROWS))
            pixels = world.pixels(numbers, degraded=True)
            predictions = classifier.predict(pixels)
            strokes = np.searchsorted(_STROKES, pixels.sum(axis=(1, 2))).tolist()
            writer.writerows(
                (
                    item_id(number),
                    CLASSES[predicted],
                    f"{score:.4f}",
                    camera,
                    ("light", "medium", "heavy")[stroke],
                    world.true_class(number),
                )
                for number, predicted, score, camera, stroke in zip(
                    numbers,
                    predictions.predicted.tolist(),
                    predictions.probabilities.max(axis=1).tolist(),
                    world.cameras(numbers),
                    strokes,
                    strict=True,
                )
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the recording of `credence try example`.")
    parser.add_argument("file", type=Path, help="CSV file, which must not exist")
    write_example(parser.parse_args().file)
