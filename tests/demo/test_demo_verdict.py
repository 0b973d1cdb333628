from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy import special

from service.config.settings import Settings
from service.demo.configuration import MIN_ACCURACY, WEAKEST_CAMERA, Places, configuration
from service.demo.journal import (
    History,
    LabelSent,
    Mark,
    PredictionsSent,
    RequestReceived,
    Stream,
    label_delays,
)
from service.demo.metrics import Findings, GroupReading, Reading, parse
from service.demo.random_sampling import Recording, draw_recent, random_labels_needed
from service.demo.report import (
    GroupResult,
    Measurements,
    chance_of_misses,
    failures,
    group_results,
    print_report,
    random_labels_line,
)


def group(
    grouping: str, name: str, mean: float, half_width: float = 0.05, below: float = 0.0
) -> GroupReading:
    return GroupReading(
        grouping=grouping,
        group=name,
        lower=mean - half_width,
        mean=mean,
        upper=mean + half_width,
        share=0.5,
        labels=50,
        below=below,
    )


def reading(*, gate: float = 0.95, dock: float = 0.65, weakest: float = 0.99, answered: int = 200) -> Reading:
    groups = [
        group("all", "all", 0.9),
        group("camera", "gate", gate),
        group("camera", "dock", dock, below=0.97),
    ]
    groups += [group("class", str(i), 0.9) for i in range(10)]
    return Reading(
        time=100.0,
        snapshot_time=99.0,
        groups={(g.grouping, g.group): g for g in groups},
        extremes={(WEAKEST_CAMERA, "dock"): weakest, (WEAKEST_CAMERA, "gate"): 1 - weakest},
        events={"issued": answered + 20, "answered": answered},
    )


def found(*, drifted: float | None = 38.0, below: float | None = 42.0) -> Findings:
    findings = Findings()
    findings.drifted_at, findings.below_at = drifted, below
    return findings


def results(of: Reading, *, misses: int = 0) -> list[GroupResult]:
    return [
        GroupResult(believed, believed.mean if i >= misses else believed.upper + 0.01)
        for i, believed in enumerate(of.groups.values())
    ]


def test_a_closed_loop_has_no_failures() -> None:
    assert failures(reading(), results(reading()), found()) == []


def test_as_many_misses_as_chance_allows_are_no_failure() -> None:
    # The level is 0.001. Of 13 independent intervals 5 or more miss with probability 0.0003, but misses of
    # several groupings come together: with probability 0.012 three of ten classes, one camera and all miss.
    assert failures(reading(), results(reading(), misses=5), found()) == []


def test_more_misses_than_chance_allows_fail() -> None:
    [problem] = failures(reading(), results(reading(), misses=8), found())
    assert "outside 8 of 13 intervals" in problem


def test_misses_of_several_groupings_count_as_coming_together() -> None:
    # Three of ten classes or more miss with probability 0.0115, less often than a camera or all traffic does.
    assert chance_of_misses(results(reading(), misses=5)) == pytest.approx(special.bdtrc(2, 10, 0.05))


def test_few_misses_are_as_likely_as_of_independent_intervals() -> None:
    assert chance_of_misses(results(reading(), misses=1)) == pytest.approx(1 - 0.95**13)


def test_a_run_without_misses_is_like_all_others() -> None:
    assert chance_of_misses(results(reading())) == 1.0


def test_no_label_that_came_back_fails() -> None:
    [problem] = failures(reading(answered=0), results(reading()), found())
    assert problem == "no label came back"


def test_no_interval_fails() -> None:
    assert "no interval" in failures(reading(), [], found())[0]


@pytest.mark.parametrize(
    "missed",
    [
        reading(weakest=0.8),
        reading(dock=0.96),
        replace(reading(), extremes={}),
        replace(reading(), groups={}),
    ],
)
def test_a_degraded_camera_that_was_not_found_fails(missed: Reading) -> None:
    [problem] = failures(missed, results(reading()), found())
    assert problem.startswith("the degraded camera was not found")


def test_an_interval_of_the_wrong_group_counts_against_it_at_both_ends() -> None:
    believed = group("camera", "dock", 0.7)
    assert [GroupResult(believed, truth).is_inside for truth in (0.649, 0.651, 0.749, 0.751)] == [
        False,
        True,
        True,
        False,
    ]


def stream(*, seconds: float = 60.0, rate: int = 200, accuracy: float = 0.9, seed: int = 3) -> Stream:
    rng = np.random.default_rng(seed)
    count = int(seconds * rate)
    return Stream(
        times=1_000.0 + np.repeat(np.arange(count // 20), 20) * 20 / rate,
        cameras=(rng.random(count) < 0.25).astype(np.intp),
        predicted=rng.integers(10, size=count),
        scores=np.full(count, accuracy),
        correct=rng.random(count) < accuracy,
    )


def some_predictions() -> Stream:
    produced = PredictionsSent(0.0, ["gate", "dock", "dock"], ["1", "1", "2"], [0.9] * 3, [True, False, True])
    return replace(Stream.of(produced), times=np.array([0.0, 0.0, 10.0]))


@pytest.mark.parametrize(
    ("since", "accuracies"), [(None, (1 / 2, 1 / 2, 2 / 3)), (5.0, (1.0, None, 1.0)), (11.0, (None,) * 3)]
)
def test_the_truth_is_the_accuracy_of_what_came_since_the_world_changed(
    since: float | None, accuracies: tuple[float | None, ...]
) -> None:
    groups = (("camera", "dock"), ("class", "1"), ("all", "all"))
    assert tuple(some_predictions().accuracy(*group, since=since) for group in groups) == accuracies


@pytest.mark.parametrize(("taken_at", "truth"), [(4.0, 1.0), (6.0, 0.0)])
def test_an_estimate_is_held_against_the_world_of_its_moment(taken_at: float, truth: float) -> None:
    dock = {("camera", "dock"): group("camera", "dock", 0.9)}
    estimate = replace(reading(), groups=dock, snapshot_time=taken_at)
    worse = replace(some_predictions(), correct=np.array([True, True, False]))
    (found,) = group_results(estimate, worse, changes=[5.0])
    assert found.truth == truth


def test_an_estimate_between_two_changes_is_held_against_the_world_between_them() -> None:
    dock = {("camera", "dock"): group("camera", "dock", 0.9)}
    worse = replace(
        Stream.concatenate([some_predictions(), some_predictions()]),
        times=np.array([0.0, 0.0, 10.0, 10.0, 20.0, 20.0]),
        correct=np.array([True, True, False, True, True, True]),
    )
    (found,) = group_results(replace(reading(), groups=dock, snapshot_time=11.0), worse, changes=[5.0, 15.0])
    assert found.truth == 0.0


def test_groups_whose_truth_the_demo_does_not_know_are_not_judged() -> None:
    odd = replace(reading(), groups={("score_bin", "[0.9,1]"): group("score_bin", "[0.9,1]", 0.9)})
    assert group_results(odd, stream(), changes=[]) == []


def test_history_keeps_the_first_request_and_first_answers_alone() -> None:
    history = History()
    history.add([RequestReceived(5.0, "a", 1), RequestReceived(6.0, "b", 1), RequestReceived(9.0, "a", 2)])
    history.add(
        [LabelSent(7.0, "answer", True), LabelSent(8.0, "answer", False), Mark("labeller ready", 1.0)]
    )
    assert history.first_request_at == 5.0
    assert history.answer_times == [7.0]
    assert history.marks == {"labeller ready": 1.0}
    assert len(history.stream) == 0


def test_a_label_is_delayed_until_the_first_look_that_counts_it() -> None:
    delays = label_delays([1.0, 2.0, 3.0, 9.0], [(1.5, 0), (2.5, 1), (4.0, 3), (5.0, 3)])
    assert delays == [1.5, 2.0, 1.0]


def test_looks_that_count_more_labels_than_were_sent_are_no_error() -> None:
    assert label_delays([1.0], [(2.0, 3)]) == [1.0]


def test_a_drift_that_was_not_found_fails() -> None:
    (failure,) = failures(reading(), results(reading()), found(drifted=None))
    assert "drifted" in failure


@pytest.mark.parametrize("below", [None, 36.0, 42.0])
def test_it_does_not_matter_whether_drift_or_labels_are_first(below: float | None) -> None:
    assert failures(reading(), results(reading()), found(drifted=38.0, below=below)) == []


def test_every_number_of_the_report_is_in_one_column_after_a_space() -> None:
    console = Console(file=io.StringIO(), width=200)
    measured = Measurements(100.0, 140.0, 1.5, [0.25], 120, [358], 1_000)
    print_report(console, results(reading()), measured, Findings())
    *_, numbers = console.file.getvalue().split("\n\n")
    rows = [re.split(r"  +", line) for line in numbers.strip().splitlines()]
    assert {len(row) for row in rows} == {2}
    assert rows[-1][1].startswith("358 labels")


def test_the_report_says_how_many_runs_end_with_as_many_misses() -> None:
    console = Console(file=io.StringIO(), width=120)
    measured = Measurements(None, None, None, [], 0, [], 0)
    print_report(console, results(reading(), misses=2), measured, Findings())
    printed = console.file.getvalue()
    # 1 - .95^13 - 13 x .05 x .95^12 = .135.
    assert "11 of 13; 2 misses or more in about 14 of 100 runs" in printed


def test_a_camera_that_has_drifted_is_found_once_it_degraded_and_no_other() -> None:
    findings, drifted = Findings(), {("camera", "dock"): 0.25}
    findings.watch(replace(reading(), time=30.0, snapshot_time=29.0, drifted=drifted), None)
    findings.watch(replace(reading(), time=40.0, snapshot_time=39.0, drifted={("class", "3"): 0.2}), 36.0)
    assert findings.drifted_at is None
    findings.watch(replace(reading(), time=41.0, snapshot_time=40.0, drifted=drifted), 36.0)
    assert findings.drifted_at == 41.0


def test_findings_name_the_moments_after_the_camera_degraded() -> None:
    findings = Findings()
    findings.watch(replace(reading(), time=30.0, snapshot_time=29.0), None)
    findings.watch(replace(reading(), time=40.0, snapshot_time=35.0), 36.0)
    assert findings.weakest_at is None
    findings.watch(replace(reading(weakest=0.5), time=41.0, snapshot_time=40.0), 36.0)
    assert findings.weakest_at is None
    assert findings.below_at == 41.0
    findings.watch(replace(reading(), time=46.0, snapshot_time=45.0), 36.0)
    findings.watch(replace(reading(), time=47.0, snapshot_time=45.0), 36.0)
    assert findings.weakest_at == 46.0


def test_findings_name_the_moment_of_confirmation() -> None:
    findings = Findings()
    findings.watch(replace(reading(), time=46.0, snapshot_time=45.0), 36.0)
    assert findings.confirmed_at is None
    proven = replace(reading(), confirmed=frozenset({("camera", "dock")}))
    findings.watch(replace(proven, time=51.0, snapshot_time=50.0), 36.0)
    findings.watch(replace(proven, time=56.0, snapshot_time=55.0), 36.0)
    assert findings.confirmed_at == 51.0


@pytest.mark.parametrize(
    ("sample", "groups"),
    [
        ('credence_group_evidence_confirmed{{{},kind="below_threshold"}} 1', {("camera", "dock")}),
        ('credence_group_evidence_confirmed{{{},kind="below_threshold"}} 0', set()),
        ('credence_group_evidence_confirmed{{{},kind="miscalibrated"}} 1', set()),
        ("credence_group_confirmed_change_timestamp_seconds{{{}}} 1700000000", {("camera", "dock")}),
    ],
)
def test_what_evidence_confirms_is_read(sample: str, groups: set[tuple[str, str]]) -> None:
    labels = 'model="digits",grouping="camera",group="dock"'
    assert parse(sample.format(labels) + "\n", now=5.0).confirmed == groups


def recording(width: float, *, answers: int = 200) -> Recording:
    return Recording(
        stream=stream(),
        answer_times=np.linspace(1_005.0, 1_060.0, answers),
        at=1_060.0,
        width=width,
        half_life_seconds=5.0,
        degraded_at=None,
    )


def test_random_sampling_needs_more_labels_for_a_narrower_interval() -> None:
    wide = [needed or 0 for needed in random_labels_needed(recording(0.3), seeds=3)]
    narrow = [needed or 0 for needed in random_labels_needed(recording(0.15), seeds=3)]
    assert all(0 < w < n for w, n in zip(wide, narrow, strict=True))


def test_random_sampling_that_never_gets_there_says_so() -> None:
    assert list(random_labels_needed(recording(0.001), seeds=2)) == [None, None]


def test_the_replay_looks_no_further_than_the_stream() -> None:
    assert recording(0.1).most_labels == 20 * 200
    assert recording(0.1, answers=5_000).most_labels == len(stream())
    assert list(random_labels_needed(recording(0.1, answers=0), seeds=1)) == [None]


def test_the_replay_counts_as_many_labels_as_the_interval_takes() -> None:
    # Without forgetting, and all traffic from one camera, Beta(0.9 n, 0.1 n) is 4 x 0.3 / sqrt(n) wide: n is
    # about 61 for 0.15; the learned prior is worth some labels.
    alone = replace(stream(), cameras=np.ones(len(stream()), dtype=np.intp))
    plain = replace(recording(0.15), stream=alone)
    needed = [n or 0 for n in random_labels_needed(plain, seeds=9)]
    assert 25 < np.median(needed) < 90


def test_labels_of_the_weakest_camera_from_before_it_got_worse_cost_and_tell_nothing() -> None:
    shown = replace(recording(0.15), degraded_at=1_030.0)
    before = [n or 0 for n in random_labels_needed(recording(0.15), seeds=5)]
    after = [n or 0 for n in random_labels_needed(shown, seeds=5)]
    assert np.median(after) > 1.4 * np.median(before)


def test_recent_items_are_drawn_with_exponential_ages_and_none_from_the_future() -> None:
    times, rng = stream().times, np.random.default_rng(1)
    moments = np.full(4_000, 1_050.0)
    drawn = draw_recent(times, moments, half_life_seconds=5.0, rng=rng)
    ages = 1_050.0 - times[drawn]
    assert ages.min() >= 0
    # The median of 4,000 exponential ages with half-life 5 s has a standard error of 0.11 s.
    assert np.median(ages) == pytest.approx(5.0, abs=0.6)


def test_the_report_says_when_random_sampling_needs_more_than_was_searched() -> None:
    measured = Measurements(0.0, 36.0, 5.0, [2.0], 100, [500, None, None], 2_000)
    assert random_labels_line(measured) == "more than 2,000 labels, 20.0 times as many"
    assert random_labels_line(replace(measured, random_labels=[300, 500, None])).startswith("500 labels")
    assert random_labels_line(replace(measured, labels=0)) == "not computed"


METRICS = """
# TYPE credence_group_accuracy_mean_ratio gauge
credence_group_accuracy_mean_ratio{model="digits",grouping="camera",group="dock"} 0.7
credence_group_accuracy_mean_ratio{model="other",grouping="camera",group="dock"} 0.1
credence_group_accuracy_lower_ratio{model="digits",grouping="camera",group="dock"} 0.6
credence_group_accuracy_upper_ratio{model="digits",grouping="camera",group="dock"} 0.8
credence_assessment_group_extreme_probability{model="digits",assessment="a",group="dock"} 0.97
credence_assessment_group_next_probability{model="digits",assessment="a",group="dock"} 0.8
credence_group_expected_accuracy_ratio{model="digits",grouping="camera",group="dock"} 0.72
credence_group_confirmed_change_timestamp_seconds{model="digits",grouping="camera",group="dock"} 1.6e9
# TYPE credence_group_drifted gauge
credence_group_drifted{model="digits",grouping="camera",group="dock"} 1.0
credence_group_drifted{model="digits",grouping="camera",group="gate"} 0.0
credence_group_drift_score{model="digits",grouping="camera",group="dock"} 0.25
credence_group_drift_score{model="digits",grouping="camera",group="gate"} 0.02
# TYPE credence_requests_total counter
credence_requests_total{model="digits",assessment="weakest-camera",event="answered"} 3.0
credence_requests_total{model="digits",assessment="accuracy-by-class",event="answered"} 4.0
# TYPE credence_snapshot_timestamp_seconds gauge
credence_snapshot_timestamp_seconds{model="digits"} 1.7e9
"""


def test_a_reading_is_of_the_demos_model_and_sums_over_assessments() -> None:
    found = parse(METRICS, now=5.0)
    dock = found.groups["camera", "dock"]
    assert (dock.lower, dock.mean, dock.upper) == (0.6, 0.7, 0.8)
    assert found.events == {"answered": 7}
    assert found.drifted == {("camera", "dock"): 0.25}
    assert found.extremes == {("a", "dock"): 0.97}
    assert found.next_requests == {("a", "dock"): 0.8}
    assert found.expected == {("camera", "dock"): 0.72}
    assert found.changed_at == {("camera", "dock"): 1.6e9}
    assert found.snapshot_time == 1.7e9


def test_metrics_before_the_first_snapshot_are_an_empty_reading() -> None:
    assert parse("", now=5.0) == Reading(time=5.0)


@pytest.mark.parametrize("seconds", [20.0, 90.0, 3_600.0])
def test_the_configuration_is_valid_for_runs_of_any_length(seconds: float) -> None:
    places = Places("127.0.0.1:1", "redis://127.0.0.1:2/0", http_port=3, monitoring_port=4)
    document = configuration(places, seconds=seconds, seed=1)
    model = Settings.model_validate(document).models["digits"]
    assert model.alerts.min_accuracy == MIN_ACCURACY
    assert model.traffic_half_life_days == pytest.approx(seconds / 18 / 86_400)
    assert model.draw_half_life_hours == pytest.approx(seconds / 18 / 3_600)
    assert model.groupings.keys() == {"camera", "class"}
