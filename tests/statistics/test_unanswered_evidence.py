"""Evidence allows for any true class of requests that ended without a label."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.arrays import Flags
from service.statistics.grouped_e_processes import GroupedLabels, GroupEvidence, assess_evidence

REFERENCE = 6
LABELS = st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.booleans()), min_size=8, max_size=16)
KINDS = ("below", "declined", "miscalibrated", "changed")


def assessed(scores: list[float], correct: Flags, unanswered: Flags, *, fixed: bool) -> GroupEvidence:
    """Evidence about one group; the first labels are its reference."""
    count = len(scores)
    then = np.arange(count) < REFERENCE
    labels = GroupedLabels(
        np.zeros(count, np.intp),
        np.array(scores),
        correct | unanswered,
        unanswered,
        then,
        ~then,
        np.ones(count, np.bool_),
    )
    none = GroupEvidence.none(1)
    return assess_evidence(
        labels,
        seen=np.zeros(1, np.intp),
        before=none,
        thresholds=np.array([0.7]),
        alpha=0.05,
        baseline_alpha=np.array([0.01]),
        fixed=fixed,
        base=none,
    )


@given(LABELS, st.booleans())
@settings(max_examples=60)
def test_no_true_classes_would_give_less_evidence(rows: list[tuple[float, bool, bool]], fixed: bool) -> None:
    scores = [row[0] for row in rows]
    correct = np.array([row[1] for row in rows])
    # At most four are unanswered, so that all their true classes can be tried.
    missing = np.array([row[2] for row in rows]) & (np.cumsum([row[2] for row in rows]) <= 4)
    answered = np.zeros(len(rows), np.bool_)
    allowed = assessed(scores, correct & ~missing, missing, fixed=fixed)
    for filling in product([False, True], repeat=int(missing.sum())):
        filled = correct.copy()
        filled[missing] = filling
        known = assessed(scores, filled, answered, fixed=fixed)
        for kind in KINDS:
            assert getattr(allowed, kind)[0] <= getattr(known, kind)[0] + 1e-9, kind
        assert allowed.lower[0] <= known.lower[0] + 1e-9
        assert allowed.upper[0] >= known.upper[0] - 1e-9


def test_evidence_continues_from_a_checkpoint_with_unanswered_requests() -> None:
    rng = np.random.default_rng(0)
    count = 40
    labels = GroupedLabels(
        np.zeros(count, np.intp),
        rng.random(count),
        (missing := rng.random(count) < 0.3) | (rng.random(count) < 0.6),
        missing,
        np.arange(count) < REFERENCE,
        np.arange(count) >= REFERENCE,
        np.ones(count, np.bool_),
    )
    none, seen = GroupEvidence.none(1), np.zeros(1, np.intp)
    given_all = {
        "thresholds": np.array([0.7]),
        "alpha": 0.05,
        "baseline_alpha": np.array([0.01]),
        "fixed": True,
    }
    whole = assess_evidence(labels, seen=seen, before=none, base=none, **given_all)
    half = assess_evidence(labels.part(slice(0, 20)), seen=seen, before=none, base=none, **given_all)
    rest = assess_evidence(labels.part(slice(20, None)), seen=seen, before=half, base=half, **given_all)
    for name, column in vars(whole).items():
        assert getattr(rest, name) == pytest.approx(column, nan_ok=True), name
