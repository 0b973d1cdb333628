"""What is said of drifted groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from snapshots import drifting

from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.drifts import drift_summary


def suspected(scores: list[float]) -> ModelSnapshot:
    """Groups by class that have drifted, in a model of which nothing else has."""
    taken = drifting()
    drift = taken.drift
    assert drift is not None
    groupings = {
        name: replace(shown, drifted=np.zeros_like(shown.drifted)) for name, shown in drift.groupings.items()
    }
    distances = np.array(scores)
    groupings["class"] = replace(groupings["class"], score=distances, drifted=distances > 0)
    classes = replace(taken.groupings["class"], groups=list("abcdefgh"[: len(scores)]))
    return replace(
        taken,
        drift=replace(drift, groupings=groupings),
        groupings={**taken.groupings, "class": classes},
    )


def test_groups_that_have_drifted_are_named_the_most_suspected_first() -> None:
    shown = drift_summary(suspected([0.2, 0.0, 0.5]))
    assert shown.sentence.startswith("Drifted from the reference: class c, class a;")
    assert shown.drifted_groups == 2


def test_of_many_groups_that_have_drifted_five_are_named() -> None:
    shown = drift_summary(suspected([0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]))
    assert "class a, class b, class c, class d, class e and 2 more;" in shown.sentence
    assert shown.drifted_groups == 7


def test_it_is_reported_by_which_groupings_labels_are_asked_there() -> None:
    asked = {state.settings.asked_grouping for state in drifting().assessments.values()}
    shown = drift_summary(drifting()).sentence
    assert shown.endswith(f"; a share of the label requests by {' and by '.join(sorted(asked))} goes there.")


def test_without_an_assessment_that_follows_drift_no_label_is_announced() -> None:
    quiet = drifting(drift={"label_share": 0})
    assert "label" not in drift_summary(quiet).sentence
