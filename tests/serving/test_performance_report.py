"""Performance as documents, sentences and lines of the terminal."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.console import Console
from snapshots import NOW, mail, performance, pooled

from service.app.status_command import status_view
from service.domain.errors import NotKnown
from service.monitoring.binary_performance import PerformanceSnapshot
from service.monitoring.problems import problems
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.base import Range
from service.serving.documents.models import model_state, overview
from service.serving.documents.performance_documents import MeasureState
from service.serving.documents.performances import (
    MOST_THRESHOLDS,
    performance_state,
    performance_summaries,
    recalibration,
)
from service.serving.documents.problems import problem_states
from service.statistics.estimate import MedianEstimate


@cache
def precision() -> str:
    return f"{100 * float(performance().measures['precision'].median):.1f}%"


@cache
def the_snapshot() -> ModelSnapshot:
    return mail(performance())


@pytest.fixture(scope="module")
def unlabelled() -> PerformanceSnapshot:
    """Learned from scores alone."""
    return performance(0)


def measure(taken: ModelSnapshot, name: str) -> MeasureState:
    (summary,) = performance_summaries(taken)
    return next(one for one in summary.measures if one.measure == name)


def printed(taken: ModelSnapshot, width: int = 400) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(status_view([taken], now=NOW, tick_seconds=5.0))
    return str(console.file.getvalue())


def test_a_model_shows_its_performance_in_short() -> None:
    (summary,) = model_state(the_snapshot(), now=NOW, tick_seconds=5.0).performances
    assert (summary.name, summary.positive_class, summary.threshold) == ("curve", "spam", 0.5)
    assert (summary.taken_at, summary.labels) == (NOW, 100)
    assert [one.measure for one in summary.measures] == [
        "precision",
        "recall",
        "f1",
        "false_positive_rate",
        "prevalence",
    ]


def test_before_anything_was_learned_the_assessment_is_reported_without_measures() -> None:
    (summary,) = model_state(mail(None), now=NOW, tick_seconds=5.0).performances
    assert (summary.taken_at, summary.measures) == (None, [])
    assert summary.sentence.startswith("No estimate yet")


def test_a_model_without_such_an_assessment_shows_no_performance() -> None:
    plain = dataclasses.replace(
        the_snapshot(),
        settings=the_snapshot().settings.model_copy(update={"assessments": {}}),
        assessments={},
    )
    assert model_state(plain, now=NOW, tick_seconds=5.0).performances == []


def test_the_sentence_shows_how_the_classifier_does_and_which_targets_it_misses() -> None:
    (summary,) = performance_summaries(the_snapshot())
    assert summary.sentence.startswith(f"At its threshold of 0.5, precision on class spam is {precision()} [")
    missed, met = 100 * performance().missed["recall"], 100 * (1 - performance().missed["precision"])
    assert f"recall of at least 90% is missed with a probability of {missed:.1f}%" in summary.sentence
    assert f"Precision of at least 80% is met with a probability of {met:.1f}%" in summary.sentence


def test_without_targets_the_sentence_speaks_of_none() -> None:
    bare = dataclasses.replace(performance(), targets={}, missed={})
    (summary,) = performance_summaries(mail(bare, targets={}))
    assert "missed" not in summary.sentence
    assert "met" not in summary.sentence


def test_without_labels_the_sentence_says_what_it_rests_on(unlabelled: PerformanceSnapshot) -> None:
    taken = mail(unlabelled)
    (summary,) = performance_summaries(taken)
    assert summary.sentence.endswith("There are no labels yet, so this is estimated from scores alone.")
    assert measure(taken, "precision").verdict == "open", "however sure the scores seem"


@pytest.mark.parametrize(("missed", "verdict"), [(0.99, "fails"), (0.5, "open"), (0.01, "meets")])
def test_a_target_is_known_to_be_missed_or_met_with_confidence_alone(missed: float, verdict: str) -> None:
    taken = mail(dataclasses.replace(performance(), missed={"precision": missed, "recall": 0.5}))
    assert measure(taken, "precision").verdict == verdict
    assert measure(taken, "f1").verdict == "none"


def test_targets_that_are_known_to_be_missed_are_counted_beside_the_model() -> None:
    missed = mail(dataclasses.replace(performance(), missed={"precision": 0.99, "recall": 0.5}))
    document = overview(["m", "new"], [missed], tick_seconds=5.0, now=NOW).models
    assert [one.headline.critical for one in document] == [1, 0]


def test_the_problem_of_a_missed_target_has_the_median() -> None:
    missed = mail(dataclasses.replace(performance(), missed={"precision": 0.99, "recall": 0.5}))
    values = [one.value for one in problem_states(problems(missed, NOW)) if one.value is not None]
    assert values == [Range.at_index(performance().measures["precision"])]


def test_with_few_labels_no_target_is_known_to_be_missed() -> None:
    sure = dataclasses.replace(performance(), missed={"precision": 1.0, "recall": 0.0})
    taken = mail(sure, alerts={"min_labels": 101})
    assert [measure(taken, name).verdict for name in ("precision", "recall")] == ["open", "open"]


def test_a_measure_that_cannot_exist_is_null() -> None:
    nothing = MedianEstimate(*(np.array(np.nan) for _ in range(3)))
    taken = mail(dataclasses.replace(performance(), measures={**performance().measures, "recall": nothing}))
    assert measure(taken, "recall").value is None
    assert "recall is unknown" in performance_summaries(taken)[0].sentence
    assert (
        json.loads(model_state(taken, now=NOW, tick_seconds=5.0).model_dump_json())["performances"][0][
            "measures"
        ][1]["value"]
        is None
    )


def test_where_nothing_is_called_positive_no_target_of_precision_is_missed() -> None:
    nothing = MedianEstimate(*(np.array(np.nan) for _ in range(3)))
    document = dataclasses.replace(
        performance(), measures={**performance().measures, "precision": nothing}, missed={}
    )
    taken = mail(document)
    assert measure(taken, "precision").verdict == "none"
    assert "No item is predicted positive at this threshold." in performance_summaries(taken)[0].sentence


def test_the_assessment_asks_and_has_found_something_in_words() -> None:
    (document,) = model_state(the_snapshot(), now=NOW, tick_seconds=5.0).assessments
    assert document.question == "What are precision and recall on class spam, at every threshold?"
    assert document.found.startswith(f"Precision {precision()} [")
    assert document.next[0].why.startswith("precision and recall depend on how many of these are spam")


def test_of_very_many_thresholds_those_that_differ_are_reported() -> None:
    document = performance_state(the_snapshot(), "curve").thresholds
    assert len(performance().thresholds.thresholds) > MOST_THRESHOLDS >= len(document)
    for name in ("precision", "recall", "f1", "false_positive_rate"):
        medians = np.array([shown.median for one in document if (shown := getattr(one, name))])
        everywhere = performance().at_thresholds[name].median
        own = np.nanmax(np.abs(np.diff(everywhere)))
        assert np.abs(np.diff(medians)).max() < own + 0.08, name


def test_few_thresholds_are_all_reported() -> None:
    choice, few = performance().thresholds, np.arange(150, 201)
    part = dataclasses.replace(
        choice,
        thresholds=choice.thresholds[few],
        probability=choice.probability[few],
        cost=choice.cost.part(few),
        best=20,
    )
    at = {name: document.part(few) for name, document in performance().at_thresholds.items()}
    document = performance_state(
        mail(dataclasses.replace(performance(), thresholds=part, at_thresholds=at)), "curve"
    )
    assert len(document.thresholds) == 51
    assert document.best == 20


def test_the_operating_and_the_best_threshold_are_among_those_reported() -> None:
    document, choice = performance_state(the_snapshot(), "curve"), performance().thresholds
    best, operating = document.thresholds[document.best], document.thresholds[document.operating]
    assert best.threshold == choice.thresholds[choice.best]
    assert best.met == choice.probability[choice.best]
    assert operating.recall is not None
    assert operating.recall.median == performance().measures["recall"].median


def test_thresholds_ascend_to_the_one_that_calls_nothing_positive() -> None:
    document = performance_state(the_snapshot(), "curve").thresholds
    *lower, last = [one.threshold for one in document]
    assert lower == sorted(lower)  # type: ignore[type-var]
    assert last is None
    assert document[-1].recall is not None
    assert document[-1].recall.median == 0


def test_without_targets_no_threshold_meets_them() -> None:
    bare = dataclasses.replace(performance(), targets={}, missed={})
    document = performance_state(mail(bare, targets={}), "curve")
    assert {one.met for one in document.thresholds} == {None}


def test_costs_are_those_of_the_configuration() -> None:
    assert performance_state(the_snapshot(), "curve").error_costs.model_dump() == {
        "configured": False,
        "false_positive": 1.0,
        "false_negative": 1.0,
    }
    costs = performance_state(mail(performance(), error_costs={"false_negative": 5}), "curve").error_costs
    assert (costs.configured, costs.false_positive, costs.false_negative) == (True, 1.0, 5.0)


def test_curves_tell_their_bands() -> None:
    document = performance_state(the_snapshot(), "curve")
    assert_allclose(
        [one.precision.upper for one in document.curve if one.precision is not None],
        performance().curve.upper,
    )
    assert_allclose(
        [one.recall.lower for one in document.roc if one.recall is not None], performance().roc.lower
    )


def test_how_the_scores_are_seen_is_reported() -> None:
    seeing = performance_state(the_snapshot(), "curve").seeing
    assert seeing.way == performance().model
    assert sum(seeing.weights.values()) == pytest.approx(1)
    assert not seeing.misfit
    assert seeing.method == performance().mixture.draws.method
    assert seeing.effective_draws == performance().mixture.draws.effective


def test_no_document_has_a_number_that_json_does_not_know() -> None:
    nowhere = np.full(len(performance().curve.median), np.nan)
    taken = mail(dataclasses.replace(performance(), curve=MedianEstimate(nowhere, nowhere, nowhere)))
    document = json.loads(performance_state(taken, "curve").model_dump_json(), parse_constant=pytest.fail)
    assert {one["precision"] for one in document["curve"]} == {None}


@pytest.mark.parametrize("form", ["platt", "beta"])
def test_the_formula_of_a_map_says_nearly_what_its_table_says(form: str) -> None:
    document = recalibration(the_snapshot(), "curve", form)
    means = [one.mean for one in document.coefficients.values()]
    for point in document.table:
        s = min(max(point.score, 1e-6), 1 - 1e-6)
        terms = [np.log(s / (1 - s))] if form == "platt" else [np.log(s), -np.log(1 - s)]
        by_formula = 1 / (1 + np.exp(-(means[0] + np.dot(means[1:], terms))))
        assert by_formula == pytest.approx(point.probability, abs=0.03)


def test_a_map_is_enough_to_apply_it_elsewhere() -> None:
    document = recalibration(the_snapshot(), "curve", "isotonic")
    assert document.coefficients == {}
    assert "use 1 minus its score" in document.how
    scores = np.linspace(0, 1, 50)
    applied = np.interp(scores, [p.score for p in document.table], [p.probability for p in document.table])
    isotonic = performance().maps["isotonic"]
    assert_allclose(applied, np.interp(scores, isotonic.scores, isotonic.probability.mean))
    assert all(p.lower <= p.probability <= p.upper for p in document.table)


@pytest.mark.parametrize(
    ("taken", "assessment", "form"),
    [
        (the_snapshot, "nothing", "platt"),
        (the_snapshot, "curve", "spline"),
        (partial(mail, None), "curve", "platt"),
    ],
)
def test_what_was_not_learned_is_not_reported(
    taken: Callable[[], ModelSnapshot], assessment: str, form: str
) -> None:
    with pytest.raises(NotKnown):
        recalibration(taken(), assessment, form)


def test_the_terminal_shows_the_performance_in_a_line() -> None:
    assert f"curve: At its threshold of 0.5, precision on class spam is {precision()}" in printed(
        the_snapshot()
    )
    assert "! curve" not in printed(the_snapshot())


def test_the_terminal_marks_a_target_that_is_known_to_be_missed() -> None:
    missed = dataclasses.replace(performance(), missed={"precision": 0.0, "recall": 0.9995})
    text = printed(mail(missed))
    assert "! Target missed: Recall (curve) (critical)" in text
    assert "target at least 90%; over 99.9% probability of missing it." in text


def test_the_terminal_says_so_before_anything_was_learned() -> None:
    assert "curve: No estimate yet" in printed(mail(None))


def test_eighty_columns_are_enough_for_the_performance() -> None:
    assert "…" not in printed(the_snapshot(), 80)


def test_a_target_that_few_labels_speak_against_is_no_problem_in_the_terminal() -> None:
    missed = {"precision": 0.999, "recall": 0.999}
    assert "Target missed" not in printed(mail(dataclasses.replace(performance(5), missed=missed)))
    assert "Target missed" in printed(mail(dataclasses.replace(performance(), missed=missed)))


def test_the_terminal_shows_every_member_of_an_ensemble() -> None:
    shown = printed(pooled()).rstrip()
    assert "votes: the ensemble and its members" in shown
    assert [line.split()[0] for line in shown.splitlines()[-3:]] == ["ensemble", "first", "second"]
