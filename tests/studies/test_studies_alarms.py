"""Rules that tell a decline, on streams whose accuracy drifts: when they alarm, and how often falsely."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from replay_examples import plain_pool
from scipy import stats

from benchmarks.studies.drift_alarms import RULES, Alarms, AlarmStudy, alarm_batch, alarm_summary
from benchmarks.studies.drift_streams import DRIFTING, FIRST, HEALTHY, NO_DRIFT, DriftStudy, Scenario
from service.replay.workers import Workers, workers
from service.statistics.grouped_e_processes import GroupedLabels, GroupEvidence, assess_evidence

POOL = plain_pool([90, 80], [10, 20])
DRIFT = DriftStudy(POOL, runs=2, window=100, half_life=50, run_length=1_000, mass=0.95, seed=0)
STUDY = AlarmStudy(DRIFT, alpha=0.05, reference=200)
DROP = Scenario("abrupt", 40.0)
QUIET = Scenario(NO_DRIFT)


def known(right: np.ndarray, labels: int, study: AlarmStudy) -> GroupEvidence:
    """What the service's evidence tells of the first labels of every group [G, labels]."""
    count = len(right)
    said = right[:, :labels].ravel()
    groups = np.repeat(np.arange(count), labels)
    columns = GroupedLabels(
        groups,
        scores=np.full(len(said), 0.7),
        correct=said,
        unanswered=np.zeros(len(said), np.bool_),
        in_reference=np.tile(np.arange(labels) < study.reference, count),
        is_compared=np.tile(np.arange(labels) >= study.reference, count),
        is_counted=np.ones(len(said), np.bool_),
    )
    return assess_evidence(
        columns,
        seen=np.zeros(count, np.intp),
        before=GroupEvidence.none(count),
        thresholds=np.full(count, np.nan),
        alpha=study.alpha,
        baseline_alpha=np.full(count, study.alpha / 2),
        fixed=True,
        base=GroupEvidence.none(count),
    )


@pytest.mark.parametrize("rule", ["declined", "change"])
def test_a_decline_is_told_at_the_label_at_which_the_service_would(rule: str) -> None:
    right = DRIFT.streams(DROP, 0, 1)[0]
    alarms = STUDY.first_alarms(right)[rule].tolist()
    for group, label in enumerate(alarms):
        assert label > HEALTHY
        for labels, shown in ((label - 1, False), (label, True)):
            found = known(right, labels, STUDY)
            evidence, limit = {
                "declined": (found.declined, 1 / STUDY.alpha),
                "change": (found.changed, 2 / STUDY.alpha),
            }[rule]
            assert (evidence[group] >= np.log(limit)) == shown


def test_the_posterior_is_that_of_all_labels() -> None:
    right = DRIFT.streams(DROP, 0, 1)[0]
    for group, label in enumerate(STUDY.first_alarms(right)["posterior"].tolist()):
        assert label >= FIRST
        said = right[group].cumsum()
        for labels in range(FIRST, label + 1):
            believed = stats.beta(0.5 + said[labels - 1], 0.5 + labels - said[labels - 1])
            assert (believed.cdf(POOL.accuracy[group]) >= 1 - STUDY.alpha) == (labels == label)


def test_a_large_drop_is_told_by_all_and_first_by_those_that_know_the_accuracy_before() -> None:
    alarms = AlarmStudy(replace(DRIFT, runs=10), alpha=0.05, reference=200).run(DROP, Workers())
    for rule in RULES:
        assert (alarms[rule] > 0).all()
    assert (alarms["posterior"] <= alarms["below"]).all()
    # A reference that happens to be better than the group was may be ahead in a stream.
    assert alarms["below"].mean() < alarms["declined"].mean()


def test_without_a_drift_evidence_is_as_seldom_wrong_as_it_promises_and_the_posterior_is_not() -> None:
    study = replace(STUDY, drift=replace(DRIFT, runs=60))
    alarms = study.run(QUIET, Workers())
    # Four standard errors of the share of so many streams.
    noise = 4 * np.sqrt(study.alpha / (60 * len(POOL.names)))
    for rule in ("below", "declined", "change"):
        assert np.mean(alarms[rule] > 0) <= study.alpha + noise
    assert np.mean(alarms["posterior"] > 0) > 4 * study.alpha


def test_a_group_that_is_never_wrong_alarms_only_once_it_is() -> None:
    pool = plain_pool([100, 80], [0, 20])
    study = replace(STUDY, drift=replace(DRIFT, pool=pool))
    never_wrong = np.ones((2, HEALTHY + DRIFTING), np.bool_)
    assert not any(alarms.any() for alarms in study.first_alarms(never_wrong).values())
    wrong = never_wrong.copy()
    wrong[:, HEALTHY:] = False
    assert all((alarms > HEALTHY).all() for alarms in study.first_alarms(wrong).values())


def test_a_group_that_is_always_wrong_cannot_decline() -> None:
    study = replace(STUDY, drift=replace(DRIFT, pool=plain_pool([0, 80], [100, 20])))
    right = np.zeros((2, HEALTHY + DRIFTING), np.bool_)
    assert not any(alarms[0] for alarms in study.first_alarms(right).values())


def test_alarms_depend_on_the_seed_alone_and_on_no_number_of_processes() -> None:
    study = replace(STUDY, drift=replace(DRIFT, runs=21))
    with workers(2) as crew:
        apart = study.run(DROP, crew)
    together = study.run(DROP, Workers())
    for rule in RULES:
        np.testing.assert_array_equal(together[rule], apart[rule])
    alone = alarm_batch(study, DROP, 20, 1)
    np.testing.assert_array_equal(together["posterior"][-2:], alone["posterior"])


def tables(drifting: list[int], quiet: list[int]) -> dict[str, dict[str, tuple[float | None, ...]]]:
    """Rows by title, of first alarms that are the same by every rule."""

    def alarms(labels: list[int]) -> Alarms:
        return dict.fromkeys(RULES, np.array(labels, np.intp))

    found = {QUIET: alarms(quiet), DROP: alarms(drifting)}
    return {table.title.split(": ")[1]: dict(table.rows) for table in alarm_summary(STUDY, found)}


def test_what_alarmed_before_the_drift_is_false_and_tells_nothing_afterwards() -> None:
    seen = tables([HEALTHY, HEALTHY + 10, HEALTHY + 20, HEALTHY + 60, 0], [0, 0, 0, HEALTHY + DRIFTING])
    assert seen["labels until a decline is reported, mean"][str(DROP)] == (pytest.approx(90 / 3),) * 4
    assert seen["labels until a decline is reported, median"][str(DROP)] == (20.0,) * 4
    assert seen["streams in which a decline is reported, %"][str(DROP)] == (75.0,) * 4
    assert seen["streams with a false alarm, %"] == dict.fromkeys(RULES, (20.0, 25.0))


def test_what_is_never_told_takes_no_labels() -> None:
    seen = tables([0, 0], [0])
    assert seen["labels until a decline is reported, mean"][str(DROP)] == (None,) * 4
    assert seen["streams in which a decline is reported, %"][str(DROP)] == (0.0,) * 4


def test_of_streams_that_all_alarmed_before_no_share_is_told() -> None:
    assert tables([FIRST], [0])["streams in which a decline is reported, %"][str(DROP)] == (None,) * 4
