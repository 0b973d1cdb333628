"""What has happened recently, by counts of earlier times (pure).

Alert rules ask how much a counter has risen in a time. Here a time begins with the last counts that were kept
before it, so it is a little longer, and nothing is noticed later than by an alert.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.store.cohorts import JoinSummary
from service.store.count_histories import CountHistory, CountsAt
from service.store.facts import RequestFacts, TrafficFacts

STEP_SECONDS = 300.0  # between two counts that are kept
_HOUR, _DAY = 3_600.0, 86_400.0
_COARSE_SECONDS = 1_800.0  # between two that are older than `_FINE_SECONDS`
_FINE_SECONDS = 2 * _HOUR
_KEPT_SECONDS = 1.5 * _DAY + 2 * _COARSE_SECONDS

_QUARTER = 900.0
_CLIPPED_SHARE = 0.01  # of predictions whose times are clipped; more is a problem
_MOST_UNANSWERED = 3  # requests that expire in a day while few are answered; as many are a problem
_EXPIRED_PER_ANSWER = 9  # from that many on, answers are few
_ANSWERS = ("answered", "corrected", "skipped")


@dataclass(frozen=True)
class CountTrends:
    """What the counts of one model say about the last day and a half."""

    traffic_at: float | None = None  # when predictions last came, about; None before the first
    # when a label request, other than for a gold item, was last open or issued; None before the first
    asked_at: float | None = None
    # the same, as of a day ago; None if none was in the twelve hours before
    asked_a_day_ago: float | None = None
    # requests that expired in the last day, of assessments of which few were answered in that time
    unanswered: Mapping[str, int] = field(default_factory=dict)
    # draws that found no item in the last quarter of an hour, of assessments that find none for longer
    short: Mapping[str, int] = field(default_factory=dict)
    # share of recent predictions whose time is clipped, by direction; where it is more than 1%
    clipped: Mapping[str, float] = field(default_factory=dict)
    # unrequested labels of the last day that found no prediction, by reason
    not_joined: Mapping[str, int] = field(default_factory=dict)


def counts_at(
    now: float,
    traffic: TrafficFacts,
    requests: RequestFacts,
    short: Mapping[str, int],
    history: CountHistory,
    *,
    joins: JoinSummary | None,
) -> CountsAt:
    """The counts of now, by what was read; `short` are draws that are not in the history yet."""
    last = _before(history, now)
    predictions = traffic.traffic.predictions
    issued = sum(count for (event, _), count in requests.tallies.items() if event in {"issued", "reissued"})
    # Without a history there is no telling when they came: recently, for all that is known.
    traffic_at = (now if predictions else None) if last is None else last.traffic_at
    # Labels of gold items are no labels of the model, so requests for them are not missed.
    is_asking = any(not one.gold for one in requests.open.values())
    asked_at = (now if is_asking else None) if last is None else last.asked_at
    if last is not None and predictions != last.predictions:
        traffic_at = now
    if is_asking or (last is not None and issued != last.issued):
        asked_at = now
    found = {} if last is None else dict(last.short)
    for assessment, count in short.items():
        found[assessment] = found.get(assessment, 0) + count
    return CountsAt(
        at=now,
        predictions=predictions,
        clipped=dict(traffic.clipped),
        issued=issued,
        expired=_tallies(requests, ("expired",)),
        answered=_tallies(requests, _ANSWERS),
        short=found,
        traffic_at=traffic_at,
        asked_at=asked_at,
        not_joined={} if joins is None else dict(joins.not_joined),
    )


def due_history(history: CountHistory, now: CountsAt) -> CountHistory | None:
    """The history with the counts of now; None while the last ones are young enough.

    Of old ones some are left out, so that a history is small.
    """
    past = [one for one in history if one.at <= now.at]  # others are of a clock that was ahead
    if past and now.at - past[-1].at < STEP_SECONDS and len(past) == len(history):
        return None
    kept: list[CountsAt] = []
    for one in past:
        step = STEP_SECONDS if now.at - one.at <= _FINE_SECONDS else _COARSE_SECONDS
        # On a grid of times, so that what is kept now stays.
        if now.at - one.at <= _KEPT_SECONDS and (not kept or one.at // step != kept[-1].at // step):
            kept.append(one)
    return (*kept, now)


def count_trends(history: CountHistory, now: CountsAt) -> CountTrends:
    """What has happened recently, by the counts of earlier times and those of now."""
    return CountTrends(
        traffic_at=now.traffic_at,
        asked_at=now.asked_at,
        asked_a_day_ago=_asked_a_day_ago(history, now),
        unanswered=_unanswered(history, now),
        short=_short(history, now),
        clipped=_clipped(history, now),
        not_joined=_not_joined(history, now),
    )


def _asked_a_day_ago(history: CountHistory, now: CountsAt) -> float | None:
    before, after = _before(history, now.at - _DAY), _after(history, now.at - _DAY)
    if before is None:
        return None
    # Between the two something may have been asked until a day ago exactly.
    times = [one.asked_at for one in (before, after) if one is not None and one.asked_at is not None]
    asked = min(max(times, default=0.0), now.at - _DAY)
    return asked if asked >= now.at - _KEPT_SECONDS else None


def _unanswered(history: CountHistory, now: CountsAt) -> dict[str, int]:
    day, half = _before(history, now.at - _DAY), _before(history, now.at - _DAY / 2)
    answers = _after(history, now.at - _DAY) or now
    if day is None or half is None:
        return {}
    found = {}
    for assessment, count in now.expired.items():
        expired = count - day.expired.get(assessment, 0)
        half_day = count - half.expired.get(assessment, 0)
        answered = now.answered.get(assessment, 0) - answers.answered.get(assessment, 0)
        if expired >= _MOST_UNANSWERED and half_day > 0 and answered * _EXPIRED_PER_ANSWER < expired:
            found[assessment] = expired
    return found


def _short(history: CountHistory, now: CountsAt) -> dict[str, int]:
    """Assessments whose draws find no item for up to half an hour; the alert waits for another quarter."""
    # Other replicas than the leader learn of them a step later.
    quarter, half = (_before(history, now.at - n * _QUARTER - STEP_SECONDS) for n in (1, 2))
    later = _after(history, now.at - _QUARTER) or now
    if quarter is None or half is None or now.predictions == quarter.predictions:
        return {}
    return {
        assessment: count - quarter.short.get(assessment, 0)
        for assessment, count in now.short.items()
        if count > quarter.short.get(assessment, 0)
        and later.short.get(assessment, 0) > half.short.get(assessment, 0)
    }


def _clipped(history: CountHistory, now: CountsAt) -> dict[str, float]:
    begins = [_before(history, now.at - _QUARTER), _after(history, now.at - _QUARTER)]
    found: dict[str, float] = {}
    for begin in begins:
        if begin is None or now.predictions <= begin.predictions:
            continue
        for direction, count in now.clipped.items():
            share = (count - begin.clipped.get(direction, 0)) / (now.predictions - begin.predictions)
            if share > max(_CLIPPED_SHARE, found.get(direction, 0.0)):
                found[direction] = min(share, 1.0)
    return found


def _not_joined(history: CountHistory, now: CountsAt) -> dict[str, int]:
    begin = _before(history, now.at - _DAY) or min(history, key=_time, default=now)
    rises = {reason: count - begin.not_joined.get(reason, 0) for reason, count in now.not_joined.items()}
    return {reason: rise for reason, rise in rises.items() if rise > 0}


def _tallies(requests: RequestFacts, events: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for (event, assessment), count in requests.tallies.items():
        if event in events:
            found[assessment] = found.get(assessment, 0) + count
    return found


def _before(history: CountHistory, time: float) -> CountsAt | None:
    """The latest counts by a time."""
    return max((one for one in history if one.at <= time), key=_time, default=None)


def _after(history: CountHistory, time: float) -> CountsAt | None:
    """The earliest counts after a time."""
    return min((one for one in history if one.at > time), key=_time, default=None)


def _time(counts: CountsAt) -> float:
    return counts.at
