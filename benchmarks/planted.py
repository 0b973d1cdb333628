"""Recorded classifiers of three kinds, each with one group in which it is weak: files for `credence try`.

- tabular: a logistic regression of incomes on eight attributes of people; weak at one workclass.
- text: naive Bayes with twenty topics of generated documents; weak in one language.
- images: a classifier of scikit-learn's handwritten digits; weak where a camera has one firmware.

    python -m benchmarks.planted tabular predictions.csv --seed 3
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

ROWS: Final = 10_000
_TRAINING_ROWS: Final = 4_000

Column = NDArray[Any]


@dataclass(frozen=True)
class Recording:
    """Predictions of one classifier.

    Attributes:
        columns: of the file, by name.
        column: that has the weak group.
        group: the weak group.
    """

    columns: Mapping[str, Sequence[object]]
    column: str
    group: str

    def write(self, path: Path) -> None:
        """Write the file, as CSV."""
        with path.open("w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(self.columns)
            writer.writerows(zip(*self.columns.values(), strict=True))

    @property
    def accuracies(self) -> tuple[float, float]:
        """Shares of right predictions: of the weak group, and of all other rows."""
        right = np.array(self.columns["predicted"]) == np.array(self.columns["label"])
        weak = np.array(self.columns[self.column]) == self.group
        return float(right[weak].mean()), float(right[~weak].mean())


_WORKCLASSES: Final = ("private", "public", "farm", "freelance", "military", "household", "none")
_WORKCLASS_SHARES: Final = (0.52, 0.16, 0.05, 0.1, 0.04, 0.05, 0.08)
_LANGUAGES: Final = ("en", "de", "fr", "pt")
_PT: Final = _LANGUAGES.index("pt")
_FIRMWARE: Final = ("1.8", "1.9", "2.0", "2.1", "2.2", "2.3")
_NOISY: Final = _FIRMWARE.index("2.2")


def tabular(rng: np.random.Generator, rows: int) -> Recording:
    """Incomes of people: the income of freelances follows from little of what is known of them."""
    total = _TRAINING_ROWS + rows
    sizes = {
        "education": 16,
        "marital": 6,
        "occupation": 14,
        "relation": 6,
        "race": 5,
        "sex": 2,
        "country": 12,
    }
    work = rng.choice(len(_WORKCLASSES), size=total, p=_WORKCLASS_SHARES)
    values = {name: rng.choice(size, size=total, p=_uneven(size)) for name, size in sizes.items()}
    age, hours = (
        rng.integers(17, 80, size=total),
        np.clip(rng.normal(40, 9, total).round(), 1, 80).astype(int),
    )
    logits = 0.05 * (age - 45) + 0.06 * (hours - 40) - 0.6
    for name, size in sizes.items():
        logits = logits + rng.normal(0, 1.3, size)[values[name]]
    weak = work == _WORKCLASSES.index("freelance")
    clear = 2.2 * logits
    rich = rng.random(total) < special.expit(np.where(weak, 0.35 * logits, clear))
    features = np.column_stack(
        [*(np.eye(size)[values[name]] for name, size in sizes.items()), age / 20, hours / 10, np.eye(7)[work]]
    )
    trained, served = slice(0, _TRAINING_ROWS), slice(_TRAINING_ROWS, None)
    # It has not seen freelances.
    seen = ~weak[trained]
    model = LogisticRegression(max_iter=300).fit(features[trained][seen], rich[trained][seen])
    return _recording(
        model.predict_proba(features[served]),
        rich[served].astype(int),
        ("low", "high"),
        {
            "workclass": np.array(_WORKCLASSES)[work[served]],
            **{name: np.char.add(f"{name[:3]}-", values[name][served].astype(str)) for name in sizes},
            "age": age[served],
            "hours": hours[served],
        },
        weak=("workclass", "freelance"),
    )


def text(rng: np.random.Generator, rows: int) -> Recording:
    """Topics of documents: in one language many words are of other topics."""
    topics, words = 20, 400
    mixes = rng.dirichlet(np.full(words, 0.08), size=topics)
    background = rng.dirichlet(np.full(words, 0.5))
    total = _TRAINING_ROWS + rows
    truth = rng.integers(topics, size=total)
    language = rng.choice(4, size=total, p=[0.6, 0.2, 0.12, 0.08])
    length = rng.integers(12, 300, size=total)
    of_topic = np.where(language == _PT, 0.10, 0.2) * (0.8 + 0.4 * rng.random(total))
    counted = np.minimum(length, 60)
    counts = np.array(
        [
            rng.multinomial(one, share * mixes[topic] + (1 - share) * background)
            for one, share, topic in zip(counted, of_topic, truth, strict=True)
        ]
    )
    usual = np.flatnonzero(language[:_TRAINING_ROWS] != _PT)
    model = MultinomialNB().fit(counts[usual], truth[usual])
    served = slice(_TRAINING_ROWS, None)
    return _recording(
        model.predict_proba(counts[served]),
        truth[served],
        [f"topic-{number:02d}" for number in range(topics)],
        {
            "language": np.array(_LANGUAGES)[language[served]],
            "source": np.array(["mail", "web", "chat", "form", "phone"])[rng.integers(5, size=rows)],
            "month": rng.integers(1, 13, size=rows),
            "priority": np.array(["low", "normal", "high"])[rng.choice(3, size=rows, p=[0.2, 0.7, 0.1])],
            "length": length[served],
            "sender": np.char.add("s", rng.integers(200, size=rows).astype(str)),
        },
        weak=("language", _LANGUAGES[_PT]),
    )


def images(rng: np.random.Generator, rows: int) -> Recording:
    """Handwritten digits: pictures are noisy where a camera has one firmware."""
    pixels, digits = load_digits(return_X_y=True)
    order = rng.permutation(len(digits))
    learned, shown = order[:600], order[600:]
    model = LogisticRegression(max_iter=200, C=1.0).fit(pixels[learned] / 16, digits[learned])
    picked = rng.choice(shown, size=rows)
    firmware = rng.choice(6, size=rows, p=[0.3, 0.25, 0.2, 0.1, 0.09, 0.06])
    noise = np.where(firmware == _NOISY, 8.5, 1.5)
    seen = np.clip(pixels[picked] + rng.normal(0, 1, (rows, 64)) * noise[:, None], 0, 16)
    return _recording(
        model.predict_proba(seen / 16),
        digits[picked],
        [str(number) for number in range(10)],
        {
            "camera": np.array(["gate", "dock", "belt", "yard"])[rng.integers(4, size=rows)],
            "firmware": np.array(_FIRMWARE)[firmware],
            "shift": np.array(["early", "late", "night"])[rng.integers(3, size=rows)],
            "brightness": seen.mean(axis=1).round(1),
        },
        weak=("firmware", _FIRMWARE[_NOISY]),
    )


KINDS: Final[Mapping[str, Callable[[np.random.Generator, int], Recording]]] = {
    "tabular": tabular,
    "text": text,
    "images": images,
}


def _uneven(size: int) -> NDArray[np.float64]:
    """Shares of values, each a little rarer than the one before."""
    shares = np.array([0.8**number for number in range(size)], dtype=np.float64)
    found: NDArray[np.float64] = shares / shares.sum()
    return found


def _recording(
    probabilities: NDArray[np.float64],
    truth: NDArray[np.intp],
    classes: Sequence[str],
    attributes: Mapping[str, Column],
    *,
    weak: tuple[str, str],
) -> Recording:
    predicted = probabilities.argmax(axis=1)
    columns: dict[str, Sequence[object]] = {
        "id": [f"row-{number}" for number in range(len(truth))],
        **{name: values.tolist() for name, values in attributes.items()},
        "predicted": [classes[number] for number in predicted],
        "score": probabilities.max(axis=1).round(4).tolist(),
        "label": [classes[number] for number in truth],
    }
    return Recording(columns, *weak)


def main() -> None:
    """Write one file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    KINDS[options.kind](np.random.default_rng(options.seed), ROWS).write(options.file)


if __name__ == "__main__":
    main()
