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
        name: replace(told, drifted=np.zeros_like(told.drifted)) for name, told in drift.groupings.items()
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
    told = drift_summary(suspected([0.2, 0.0, 0.5]))
    assert told.sentence.startswith("Drifted from the reference: class c, class a;")
    assert told.drifted_groups == 2


def test_of_many_groups_that_have_drifted_five_are_named() -> None:
    told = drift_summary(suspected([0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]))
    assert "class a, class b, class c, class d, class e and 2 more;" in told.sentence
    assert told.drifted_groups == 7


def test_it_is_reported_by_which_groupings_labels_are_asked_there() -> None:
    asked = {state.settings.asked_grouping for state in drifting().assessments.values()}
    told = drift_summary(drifting()).sentence
    assert told.endswith(f"; a share of the label requests by {' and by '.join(sorted(asked))} goes there.")


def test_without_an_assessment_that_follows_drift_no_label_is_announced() -> None:
    quiet = drifting(drift={"label_share": 0})
    assert "label" not in drift_summary(quiet).sentence
