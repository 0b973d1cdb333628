"""A binary classifier is watched: asked about by score, and its performance learned from the answers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from store_site import NOW, Record, Site, message, record

from service.domain.cells import POSITIVE_SCORE
from service.monitoring.binary_performance import PerformanceSnapshot
from service.monitoring.monitor import ModelMonitor
from service.store.connection import Connection

COUNT = 3_000
RARE = 0.02


def mail() -> tuple[np.ndarray, np.ndarray]:
    """Scores of spam, which is rare, and which of them are spam."""
    rng = np.random.default_rng(3)
    spam = rng.random(COUNT) < RARE
    return np.where(spam, rng.beta(6, 3, COUNT), rng.beta(1.5, 6, COUNT)).round(4), spam


SCORES, SPAM = mail()


def stream() -> list[Record]:
    return [
        record(
            offset,
            message(
                offset,
                predicted_class="spam" if score >= 0.5 else "ham",
                score=max(score, round(1 - score, 4)),
            ),
        )
        for offset, score in enumerate(SCORES.tolist())
    ]


def watched(connection: Connection, interval: float = 0.95, **changes: Any) -> Site:
    """With all of the stream taken in."""
    curve = {"task": "performance", "positive_class": "spam", "budget": {"labels": 300}, "max_in_flight": 50}
    settings = {
        "classes": ["ham", "spam"],
        "traffic_half_life_days": None,
        "interval": interval,
        "assessments": {"curve": curve | changes},
    }
    site = Site(connection, {"m": settings})
    site.take_in(stream())
    return site


def asked_and_answered(site: Site, monitor: ModelMonitor, rounds: int) -> list[int]:
    """Numbers of the items that were asked for."""
    seen: list[int] = []
    for n in range(rounds):
        # Nothing is learned in these rounds: it would take its time.
        monitor.refresh(NOW + n / 1_000)
        monitor.ask(epoch=1, now=NOW)
        seen += site.answer("m", lambda item: "spam" if SPAM[item] else "ham")
    return seen


def learned(monitor: ModelMonitor) -> PerformanceSnapshot:
    return monitor.refresh(NOW + 3_600).performances["curve"]


def test_rare_high_scores_are_asked_about_far_beyond_their_traffic(connection: Connection) -> None:
    site = watched(connection)
    asked = asked_and_answered(site, site.monitor("m"), 3)
    assert len(asked) == 150
    high = Counter(bool(score >= 0.4) for score in SCORES[asked])
    assert high[True] / len(asked) > 2 * (SCORES >= 0.4).mean()


def test_what_is_learned_holds_of_the_traffic(connection: Connection) -> None:
    # Four intervals are to hold at once, whatever labels chance brings: ever one in a thousand is out.
    site = watched(connection, interval=0.999)
    monitor = site.monitor("m")
    asked_and_answered(site, monitor, 6)
    found = learned(monitor)
    called = SCORES >= 0.5
    truth = {
        "precision": SPAM[called].mean(),
        "recall": called[SPAM].mean(),
        "prevalence": SPAM.mean(),
        "false_positive_rate": called[~SPAM].mean(),
    }
    assert found.labels > 250
    for name, value in truth.items():
        measure = found.measures[name]
        assert measure.lower <= value <= measure.upper, (name, value, measure)


def test_without_a_label_it_is_told_how_unsure_that_is(connection: Connection) -> None:
    found = watched(connection).monitor("m").refresh(NOW).performances["curve"]
    assert found.labels == 0
    assert found.scores > 200
    assert found.measures["precision"].upper - found.measures["precision"].lower > 0.1


def test_other_thresholds_than_the_classifiers_are_reported(connection: Connection) -> None:
    site = watched(connection, threshold=0.5, targets={"recall": 0.95})
    monitor = site.monitor("m")
    asked_and_answered(site, monitor, 6)
    found = learned(monitor)
    best = found.thresholds.thresholds[found.thresholds.best]
    assert found.missed["recall"] > 0.5
    assert best < 0.5
    assert (SCORES[SPAM] >= best).mean() > 0.85


def test_groups_by_the_positive_score_are_estimated_like_any_other(connection: Connection) -> None:
    site = watched(connection)
    monitor = site.monitor("m")
    asked_and_answered(site, monitor, 2)
    groups = monitor.refresh(NOW).groupings[POSITIVE_SCORE]
    assert groups.groups[0] == "[0.0003,0.001)"
    assert groups.positive is not None
    assert np.all(np.diff(groups.positive) > 0)


def test_labels_that_come_between_two_learnings_lower_the_worth_of_further_ones(
    connection: Connection,
) -> None:
    site = watched(connection)
    monitor = site.monitor("m")
    asked_and_answered(site, monitor, 1)
    before = learned(monitor)
    monitor.ask(epoch=1, now=NOW + 3_600)
    assert site.answer("m", lambda item: "spam" if SPAM[item] else "ham")
    after = monitor.refresh(NOW + 3_601).performances["curve"]
    assert after.taken_at == before.taken_at
    assert before.gains is not None
    assert after.gains is not None
    came = {group for group, labels in after.gains.labels.items() if labels > before.gains.labels[group]}
    lower = {group for group, gain in after.gains.gains.items() if gain < before.gains.gains[group]}
    assert came == lower
    assert sum(after.gains.answered.values()) == sum(before.gains.answered.values()) + 50
