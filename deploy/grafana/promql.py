"""PromQL from the catalogue: a query of a metric or a label that does not exist cannot be built.

Estimates and what is kept in Redis are shown by every replica alike: they are taken with `max`, as a sum
would count them once per replica, and a mean of ratios means nothing. What a process counts itself is summed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from deploy.grafana import looks
from service.serving.prometheus import SPECS

_IS_FIRING = 'alertstate="firing",'


def firing(about: str = "") -> str:
    """Credence's alerts that are firing; `about` are more matchers of their labels."""
    more = f",{about}" if about else ""
    return f'ALERTS{{{_IS_FIRING}alertname=~"Credence.*",job=~"$job|"{more}}}'


def began(alerts: str) -> str:
    """Since when alerts fire, in seconds since the epoch."""
    return alerts.replace(f"ALERTS{{{_IS_FIRING}", "ALERTS_FOR_STATE{")


FIRING = firing()
"""Of the chosen jobs, or of none: that nothing answers at all belongs to no job."""

OF_PEOPLE = 'grouping!~"all|score_bin|positive_score|__votes__"'
"""The groupings that people configured, which are those of the alerts on the accuracy of groups.

Where the model says itself that it is unsure, it is right less often, as it should be.
"""

NOT_VOTES = 'grouping!="__votes__"'
"""All but the combinations of votes, which people do not look for."""

NOT_ALL = 'grouping!="all"'
"""All but the whole: the groupings of the alerts on the calibration of groups."""

PER_HOUR = 3_600
"""Labels come a few an hour; per second they would be unreadable."""


def series(name: str, *matchers: str, suffix: str = "") -> str:
    """A selector of one metric, in the chosen jobs.

    Args:
        name: in the catalogue.
        matchers: on labels, such as `model="$model"`.
        suffix: `_bucket` of a histogram.
    """
    labels = SPECS[name].labels
    for matcher in matchers:
        if (label := _label(matcher)) not in labels:
            raise KeyError(f"{name} has no label {label}")
    chosen = ",".join(('job=~"$job"', *matchers))
    return f"{name}{suffix}{{{chosen}}}"


def fitting(name: str, matchers: Iterable[str]) -> list[str]:
    """The matchers on labels that a metric has."""
    return [matcher for matcher in matchers if _label(matcher) in SPECS[name].labels]


def _label(matcher: str) -> str:
    return re.split("[=!]", matcher)[0]


def shown(name: str, *matchers: str, by: str | None = None, over: str = "") -> str:
    """What every replica shows alike: by all labels of the metric, or by some.

    Args:
        name: in the catalogue.
        matchers: on labels.
        by: labels, separated by commas; all of the metric where it is None.
        over: a range, to see what was shown last within it instead of what is shown now.
    """
    selected = series(name, *matchers)
    if over:
        selected = f"last_over_time({selected}[{over}])"
    labels = ", ".join(SPECS[name].labels) if by is None else by
    return f"max by ({labels}) ({selected})" if labels else f"max({selected})"


def shown_rate(name: str, *matchers: str) -> str:
    """How fast a counter grows that every replica shows alike."""
    labels = ", ".join(SPECS[name].labels)
    return f"max by ({labels}) (rate({series(name, *matchers)}[$__rate_interval]))"


def counted_rate(name: str, by: str, *matchers: str) -> str:
    """How fast grows what processes count themselves, all of them together."""
    return f"sum by ({by}) (rate({series(name, *matchers)}[$__rate_interval]))"


def counted(name: str, *matchers: str, where: str = "credence_build_info") -> str:
    """How much processes counted in the time shown, all together; 0 if nothing, where a metric is there."""
    own = fitting(name, matchers)
    return known(f"sum(increase({series(name, *own)}[$__range]))", *matchers, where=where)


def quantile(share: float, name: str, *matchers: str, by: str = "") -> str:
    """A quantile of a histogram, of all processes together."""
    buckets = f"rate({series(name, *matchers, suffix='_bucket')}[$__rate_interval])"
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share:g}, sum by ({labels}) ({buckets}))"


def age(name: str, *matchers: str, by: str | None = None) -> str:
    """Seconds since a time that every replica shows."""
    return f"time() - {shown(name, *matchers, by=by)}"


def or_zero(expression: str, label: str, *, called: str = "none yet") -> str:
    """The same, or 0 under some name where there is no series at all.

    Counters with labels appear with their first event, and a chart of bars cannot say why it is empty.
    """
    return f'{expression} or on() label_replace(vector(0), "{label}", "{called}", "", "")'


def known(expression: str, *matchers: str, where: str = "credence_snapshot_timestamp_seconds") -> str:
    """The same, or 0 where it has no series but a metric has: without estimates no count is known."""
    return f"{expression} or 0 * count({series(where, *fitting(where, matchers))})"


def snapshot_age(*matchers: str) -> str:
    """Age of the oldest estimates in seconds; `looks.ABSENT` without any."""
    oldest = f"max({age('credence_snapshot_timestamp_seconds', *matchers)})"
    return f"{oldest} or vector({looks.ABSENT})"


def crossed(probability: str, *matchers: str, times: int = 1) -> str:
    """How many groups of a model cross a threshold, with enough labels and with the configured confidence.

    Args:
        probability: name of the metric that tells how likely the threshold is crossed.
        matchers: on labels.
        times: how often alerts.min_labels is wanted; the alerts on calibration want it twice.
    """
    of_model = [matcher for matcher in matchers if matcher.startswith("model")]
    confidence, least = (
        shown(f"credence_alert_{name}", *of_model) for name in ("confidence_ratio", "min_labels")
    )
    wanted = least if times == 1 else f"({times} * {least})"
    sure = f"({shown(probability, *matchers)} >= bool on (model) group_left () {confidence})"
    labels = shown("credence_group_effective_labels", *matchers)
    return f"sum by (model) ({sure} * ({labels} >= bool on (model) group_left () {wanted}))"
