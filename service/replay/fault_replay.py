"""Many runs of a model of which one group becomes less accurate, watched as the service does it.

Labels are requested at an even rate, of items that a policy's groups draw by recency, and answered at once.
At every look the service's own statistics say what is known: change points, half-life and learned prior for
the alert, e-processes for the confirmation. Traffic is an endless even sample of the items.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.statistics.balance_heuristic import sums
from service.statistics.change_points import change_point_weights
from service.statistics.detection_rules import BASELINES, KINDS
from service.statistics.detection_time import HORIZON_DAYS, Detection, Labelling, Rules
from service.statistics.e_processes import log_arrival_weights
from service.statistics.grouped_e_processes import GroupedLabels, GroupEvidence, assess_evidence
from service.statistics.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.statistics.policies import POLICIES, Situation
from service.statistics.questions import Question
from service.statistics.tasks import TASKS

_UNFOUND_DAYS: Final = 30.0  # a third of the days of runs in which nothing is announced to be found
_GROWTH: Final = 1.1  # from one look to the next


@dataclass(frozen=True)
class FaultyItems:
    """Items of a model, whose predictions a fault makes wrong in one group."""

    names: list[str]  # of the groups [G]
    groups: Indices  # of every item [N]
    bins: Indices  # score bin of every item [N]
    bin_count: int
    scores: Floats  # [N]
    correct: Flags  # whether its prediction is right before the fault [N]
    correct_after: Flags  # and since then [N]
    faulty: int  # group that the fault is in

    @cached_property
    def by_group(self) -> Indices:
        """Items, sorted by group [N]."""
        return np.argsort(self.groups, kind="stable")

    @cached_property
    def sizes(self) -> Ints:
        """Items of every group [G]."""
        return np.bincount(self.groups, minlength=len(self.names)).astype(np.int64)

    @cached_property
    def first(self) -> Ints:
        """Where each group begins in `by_group` [G]."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def traffic(self) -> CellTraffic:
        """Traffic of every group's score bins."""
        cells, size = self.groups * self.bin_count + self.bins, len(self.names) * self.bin_count
        return CellTraffic(sums(cells, np.ones(len(cells)), size), sums(cells, self.scores, size))

    @cached_property
    def shares(self) -> Floats:
        """Share of every group in the traffic [G]."""
        return self.sizes / len(self.groups)


class Found(NamedTuple):
    """Days from the fault until it is found, in every run; infinite where it is not [R]."""

    alert: Floats
    confirmed: Floats


class Watched:
    """R runs at once: labels are requested, answered and looked at."""

    def __init__(
        self, items: FaultyItems, labelling: Labelling, rules: Rules, rngs: list[np.random.Generator]
    ) -> None:
        self._items, self._labelling, self._rules, self._rngs = items, labelling, rules, rngs
        none = np.zeros((len(rngs), 0))
        self._asked = np.zeros(0)  # when labels were requested, the same in all runs [n]
        self._made, self._drawn, self._right = none, none.astype(np.intp), none.astype(np.bool_)
        self._evidence = GroupEvidence.none(len(rngs))
        self._known: list[GroupingBeliefs | None] = [None] * len(rngs)

    def days_until_found(self, looks: Floats) -> Found:
        """Days from the fault until the first look at which each rule finds it."""
        labelling, runs = self._labelling, len(self._rngs)
        self._request(-labelling.days_before, 0.0, round(labelling.per_day * labelling.days_before))
        found = Found(np.full(runs, np.inf), np.full(runs, np.inf))
        begin, requested = 0.0, 0
        for now in looks.tolist():
            due = int(now * labelling.per_day)
            self._request(begin, now, due - requested)
            begin, requested = now, due
            for days, fires in ((found.alert, self._alerts), (found.confirmed, self._confirms)):
                unfound = np.isinf(days)
                if unfound.any():
                    days[unfound & fires(now, unfound)] = now
            if np.isfinite(found.alert).all() and np.isfinite(found.confirmed).all():
                break
        return found

    def _request(self, begin: float, end: float, count: int) -> None:
        """So many labels are requested and answered between two times, in days since the fault."""
        items, half_life = self._items, self._labelling.draw_half_life_hours
        asked = begin + (end - begin) * (np.arange(count) + 0.5) / max(count, 1)
        drawn = np.zeros((len(self._rngs), count), np.intp)
        ages = np.zeros((len(self._rngs), count))
        for run, rng in enumerate(self._rngs):
            ages[run] = rng.exponential((half_life or 0.0) / 24 / np.log(2), count)
            groups = self._groups(run, count)
            places = (rng.random(count) * items.sizes[groups]).astype(np.intp)
            drawn[run] = items.by_group[items.first[groups] + places]
        made = asked - ages
        right = np.where(made >= 0, items.correct_after[drawn], items.correct[drawn])
        self._asked = np.append(self._asked, asked)
        self._drawn = np.concatenate((self._drawn, drawn), axis=1)
        self._made = np.concatenate((self._made, made), axis=1)
        self._right = np.concatenate((self._right, right), axis=1)

    def _groups(self, run: int, count: int) -> Indices:
        """Groups of the next labels of a run, by the policy [count]."""
        labelling, number, rng = self._labelling, len(self._items.names), self._rngs[run]
        known = self._known[run]
        if labelling.policy == "traffic":
            return rng.choice(number, count, p=self._items.shares)
        if labelling.policy == "even" or known is None:
            return np.asarray(rng.permutation(np.arange(count) + rng.integers(number)) % number, np.intp)
        beliefs, task = known.accuracy_beliefs(), TASKS["identification", "accuracy"](Question(known.cells))
        policy = POLICIES["thompson"]()
        situation = Situation(beliefs, self._items.shares[None], np.ones((1, number), np.bool_))
        chosen = np.zeros(count, np.intp)
        for place in range(count):
            group = policy.choose(task, situation, rng)[:, 0]
            beliefs.expect(group)
            chosen[place] = group[0]
        return chosen

    def _alerts(self, now: float, wanted: Flags) -> Flags:
        """Whether the faulty group is below the threshold, by its posterior, in some runs [R]."""
        items, labelling, rules = self._items, self._labelling, self._rules
        runs, number, size = len(self._rngs), len(items.names), self._drawn.shape[1]
        order = np.lexsort((self._made, items.groups[self._drawn]), axis=1)
        drawn = np.take_along_axis(self._drawn, order, 1)
        right = np.take_along_axis(self._right, order, 1)
        factors, changed = np.ones((runs, size)), None
        if labelling.run_length is not None:
            groups = items.groups[drawn] + number * np.arange(runs)[:, None]
            sizes = np.bincount(groups.ravel(), minlength=runs * number)
            weights = change_point_weights(
                correct=right.ravel(), sizes=sizes, run_length=labelling.run_length
            )
            factors, changed = weights.factors.reshape(runs, size), weights.changed.reshape(runs, number)
        if labelling.half_life_days is not None:
            factors = factors * 0.5 ** ((now - self._asked[order]) / labelling.half_life_days)
        found = np.zeros(runs, np.bool_)
        for run in np.flatnonzero(wanted).tolist():
            cells = items.groups[drawn[run]] * items.bin_count + items.bins[drawn[run]]
            known = assess_grouping(
                cell_groups=np.repeat(np.arange(number), items.bin_count),
                cell_bins=np.tile(np.arange(items.bin_count), number),
                group_count=number,
                bin_count=items.bin_count,
                traffic=items.traffic,
                labels=Labels(
                    cells=cells,
                    correct=right[run].astype(np.float64),
                    weights=np.ones(size),
                    freshness=factors[run],
                    true_classes=np.zeros(size, np.intp),
                ),
                prior="learned",
                changed=None if changed is None else changed[run],
            )
            self._known[run] = known
            below = known.accuracy.probability_below(rules.threshold)[items.faulty]
            found[run] = below >= rules.confidence and known.labels[items.faulty] >= rules.min_labels
        return found

    def _confirms(self, now: float, wanted: Flags) -> Flags:  # noqa: ARG002 - one signature for both rules
        """Whether the faulty group is below the threshold, or declined, by e-values [R]."""
        items, rules, runs = self._items, self._rules, len(self._rngs)
        own = items.groups[self._drawn] == items.faulty
        weight = float(log_arrival_weights(np.array([items.faulty + 1]))[0]) - np.log(KINDS)
        in_reference = (np.cumsum(own, axis=1) <= rules.reference_labels)[own]
        self._evidence = assess_evidence(
            GroupedLabels(
                groups=np.nonzero(own)[0],
                scores=items.scores[self._drawn[own]],
                correct=self._right[own],
                unanswered=np.zeros(int(own.sum()), np.bool_),
                in_reference=in_reference,
                is_compared=~in_reference,
                is_counted=np.ones(int(own.sum()), np.bool_),
            ),
            seen=self._evidence.labels.astype(np.intp),
            before=self._evidence,
            thresholds=np.full(runs, rules.threshold),
            alpha=rules.alpha,
            baseline_alpha=np.full(runs, rules.alpha * np.exp(weight) * BASELINES),
            fixed=True,
            base=GroupEvidence.none(runs),
        )
        known = self._evidence
        log_e = np.stack((known.below, known.declined, known.changed + np.log1p(-BASELINES)))
        found: Flags = np.nan_to_num(log_e, nan=-np.inf).max(axis=0) + weight >= -np.log(rules.alpha)
        return found


def run_faults(
    items: FaultyItems, labelling: Labelling, rules: Rules, looks: Floats, *, runs: range, seed: int
) -> Found:
    """Independent runs, looked at so many days after the fault: a function of the arguments alone."""
    rngs = [np.random.default_rng([seed, run]) for run in runs]
    return Watched(items, labelling, rules, rngs).days_until_found(looks)


def look_times(announced: Detection, labels_per_day: float) -> Floats:
    """Days after a fault at which runs are looked at, given a group's labels a day, each a tenth later.

    They begin with its first labels and end at three times the announced days, or at two years.
    """
    delays = (
        announced.alert.median,
        announced.alert.late,
        announced.confirmed.median,
        announced.confirmed.late,
    )
    last = min(3 * max((each for each in delays if np.isfinite(each)), default=_UNFOUND_DAYS), HORIZON_DAYS)
    first = min(1 / labels_per_day, last / 2)
    count = max(2, int(np.log(last / first) / np.log(_GROWTH)) + 1)
    return np.asarray(np.geomspace(first, last, count), np.float64)
