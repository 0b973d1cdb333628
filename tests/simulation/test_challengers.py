"""Labels of disagreements tell sooner who is better, and evidence seldom names the wrong one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks.challengers import AIMED, CONFIDENCE, KNOWN, Needed, Pair, labels_needed

RUNS = 100


def needed(pair: Pair, *, by_evidence: bool, aimed: bool) -> Needed:
    return labels_needed(pair, RUNS, np.random.default_rng(0), by_evidence=by_evidence, aimed=aimed)


@pytest.mark.parametrize("name", KNOWN)
def test_aimed_labels_save_as_much_as_disagreements_are_rare(name: str) -> None:
    pair = KNOWN[name]
    random, aimed = (
        float(np.mean(needed(pair, by_evidence=False, aimed=aimed).labels)) for aimed in (False, True)
    )
    # The same draws decide in both, so only the labels between disagreements vary.
    assert random / aimed == pytest.approx(AIMED / pair.disagreement, rel=0.15)


def test_evidence_seldom_names_the_wrong_one_where_the_posterior_often_does() -> None:
    pair = KNOWN["2 points better, 20% disagree"]
    wrong = {rule: int((~needed(pair, by_evidence=rule, aimed=True).right).sum()) for rule in (False, True)}
    assert wrong[True] <= stats.binom.ppf(0.999, RUNS, 1 - CONFIDENCE)
    assert wrong[False] > wrong[True]
