"""Labels until it is known whether a challenger is better: of random items, and of disagreements first.

Pairs of classifiers of known skill, and pairs of real ones on handwritten digits. Labels are asked one by one
until the posterior or the evidence says who is better; of random items, or four of five where the two
disagree. docs/challengers.md explains what the figures mean.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from scipy import special
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from service.domain.arrays import Flags, Floats
from service.replay.tables import Table, print_tables
from service.statistics.challenge import ChallengeBeliefs, PairedLabels

MARGIN: Final = 0.0
CONFIDENCE: Final = 0.95
AIMED: Final = 0.8
"""Share of labels that go to disagreements."""

LONGEST: Final = 3_000


class Pair(NamedTuple):
    """Champion and challenger.

    Attributes:
        disagreement: share of the items on which they disagree.
        challenger: of these, the share of which the challenger is right.
        champion: the same of the champion.
    """

    disagreement: float
    challenger: float
    champion: float

    @property
    def difference(self) -> float:
        """Of the accuracies: challenger less champion."""
        return self.disagreement * (self.challenger - self.champion)


KNOWN: Final[Mapping[str, Pair]] = {
    "1 point better, 4% disagree": Pair(0.04, 0.55, 0.30),
    "2 points better, 8% disagree": Pair(0.08, 0.55, 0.30),
    "2 points better, 20% disagree": Pair(0.20, 0.50, 0.40),
    "5 points better, 20% disagree": Pair(0.20, 0.55, 0.30),
}


@functools.cache
def of_digits() -> dict[str, Pair]:
    """Real pairs, by cross-validation on scikit-learn's handwritten digits."""
    images, digits = load_digits(return_X_y=True)
    models = {
        "logistic": LogisticRegression(max_iter=200, C=0.01),
        "nearest": KNeighborsClassifier(),
        "bayes": GaussianNB(),
    }
    said = {name: cross_val_predict(model, images / 16, digits, cv=5) for name, model in models.items()}

    def pair(champion: str, challenger: str) -> Pair:
        first, second = said[champion], said[challenger]
        differ = first != second
        return Pair(
            float(differ.mean()),
            float((second == digits)[differ].mean()),
            float((first == digits)[differ].mean()),
        )

    return {
        "digits: bayes, then logistic": pair("bayes", "logistic"),
        "digits: logistic, then nearest": pair("logistic", "nearest"),
    }


class Needed(NamedTuple):
    """Labels until the winner is known, of every run, and whether the right one was named."""

    labels: Floats
    right: Flags


def labels_needed(
    pair: Pair, runs: int, rng: np.random.Generator, *, by_evidence: bool, aimed: bool
) -> Needed:
    """Labels until the posterior, or the evidence, says which is better; at most `LONGEST` disagreements.

    Args:
        pair: of which the challenger is the better one.
        runs: how many.
        rng: draws labels.
        by_evidence: e-values of either side at 2 / (1 - confidence), in place of the posterior.
        aimed: whether labels go to disagreements first, or to random items.
    """
    share = AIMED if aimed else pair.disagreement
    neither = 1 - pair.challenger - pair.champion
    said = rng.choice(3, size=(runs, LONGEST), p=[pair.challenger, pair.champion, neither])
    wins, losses, none = ((said == kind).cumsum(axis=1).astype(np.float64) for kind in range(3))
    if by_evidence:
        beliefs = ChallengeBeliefs(
            np.full(wins.size, pair.disagreement), PairedLabels(wins.ravel(), losses.ravel(), none.ravel())
        )
        limit = np.log(2 / (1 - CONFIDENCE))
        better = (beliefs.log_e_better(MARGIN) >= limit).reshape(wins.shape)
        worse = (beliefs.log_e_worse(MARGIN) >= limit).reshape(wins.shape)
    else:
        # Without a margin the posterior is that of a Beta, which takes no quadrature.
        above = special.betaincc(wins + 0.5, losses + 0.5, 0.5)
        better, worse = above >= CONFIDENCE, above <= 1 - CONFIDENCE
    known = better | worse
    first = np.where(known.any(axis=1), known.argmax(axis=1), LONGEST - 1)
    # Other labels are asked between two disagreements: so many in all until the last one.
    labels = first + 1 + rng.negative_binomial(first + 1, share)
    return Needed(labels.astype(np.float64), better[np.arange(runs), first])


def of_pairs(pairs: Mapping[str, Pair], runs: int, *, by_evidence: bool) -> Table:
    """Labels by pair and way of asking."""
    rng = np.random.default_rng(0)
    rows = []
    for name, pair in pairs.items():
        random, aimed = (
            labels_needed(pair, runs, rng, by_evidence=by_evidence, aimed=aimed) for aimed in (False, True)
        )
        figures = (
            100 * pair.disagreement,
            100 * pair.difference,
            float(np.mean(random.labels)),
            float(np.mean(aimed.labels)),
            float(np.mean(random.labels) / np.mean(aimed.labels)),
            100 * float(1 - np.mean(aimed.right)),
        )
        rows.append((name, figures))
    rule = "evidence" if by_evidence else f"the posterior is {CONFIDENCE:.0%} sure"
    title = f"labels until {rule} who is better, looking after each: mean of {runs}"
    columns = ("disagree, %", "better by, points", "random", "aimed", "random / aimed", "wrong one, %")
    return Table(title, "pair", columns, list(rows))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure labels until a challenger is known to be better.")
    parser.add_argument("--runs", type=int, default=400, help="of every figure")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    pairs = {**KNOWN, **of_digits()}
    tables = [of_pairs(pairs, options.runs, by_evidence=rule) for rule in (False, True)]
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
