"""The result of one assessment round: everything that metrics, page and API show of one model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from service.assessment.groups import CellTraffic, Labels, assess_grouping
from service.assessment.weights import Asked, balance_weights
from service.assessment_snapshot import AssessmentSnapshot, assessment_snapshot
from service.cells import ALL, CellSpace
from service.grouping_snapshot import GroupingSnapshot, confusion_snapshot, grouping_snapshot
from service.ledger import OutcomeLedger
from service.model_settings import ModelSettings
from service.store.facts import RequestFacts, TrafficFacts

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Groups:
    """A grouping's groups that have traffic, and the group of every cell.

    Attributes:
        names: of the groups [G].
        cells: group of every cell [cells]; cells without traffic may stand in any group.
    """

    names: list[str]
    cells: Indices


@dataclass(frozen=True)
class ModelSnapshot:
    """Everything known of one model at one time."""

    model: str
    taken_at: float
    predictions: int
    combinations: int
    combination_limit: int
    pool_items: int
    outbox_size: int
    outcomes: int
    last_label_at: float | None
    groupings: dict[str, GroupingSnapshot]
    assessments: dict[str, AssessmentSnapshot]


def present_groups(space: CellSpace, grouping: str, traffic: TrafficFacts) -> Groups:
    """The groups of a grouping that have ever had traffic.

    A group without traffic has no accuracy to tell, and must not win "least accurate".
    """
    names, cells = space.groups(grouping, traffic.combinations)
    counts = np.bincount(cells, weights=traffic.traffic.counts, minlength=len(names))
    present = counts > 0
    renumbered = np.maximum(np.cumsum(present) - 1, 0)
    return Groups([name for name, there in zip(names, present, strict=True) if there], renumbered[cells])


def labels_of(
    space: CellSpace, ledger: OutcomeLedger, traffic: TrafficFacts, *, decay: float, now: float
) -> Labels:
    """The outcomes as columns, weighted: by the balance heuristic, and by their age.

    Args:
        space: cells of the model.
        ledger: its outcomes, placed in cells.
        traffic: its traffic.
        decay: how fast labels lose weight, 1/s.
        now: seconds since the epoch.
    """
    columns = ledger.columns()
    seen = traffic.traffic.counts[columns.cells] > 0
    cells, sources = columns.cells[seen], columns.sources[seen]
    freshness = np.exp(-decay * np.maximum(now - columns.predicted_at[seen], 0.0))
    asked = []
    for code, (_, grouping) in enumerate(ledger.sources):
        known = grouping if grouping in space.groupings else ALL
        members = np.flatnonzero(sources == code)
        if members.size:
            asked.append(Asked(space.groups(known, traffic.combinations)[1], members))
    weights = balance_weights(cells=cells, freshness=freshness, traffic=traffic.traffic.weights, asked=asked)
    return Labels(cells, columns.correct[seen], weights, freshness, columns.true_classes[seen])


def take_snapshot(
    *,
    model: str,
    settings: ModelSettings,
    space: CellSpace,
    traffic: TrafficFacts,
    requests: RequestFacts,
    ledger: OutcomeLedger,
    now: float,
    rng: np.random.Generator,
) -> ModelSnapshot:
    """Beliefs from facts: a pure function, the same on every replica but for the Monte Carlo draws.

    Args:
        model: its name.
        settings: its settings.
        space: its cells.
        traffic: its traffic.
        requests: its label requests.
        ledger: its outcomes, placed in cells.
        now: seconds since the epoch.
        rng: for joint draws.
    """
    labels = labels_of(space, ledger, traffic, decay=settings.label_decay_per_second, now=now)
    cell_bins = space.groups("score_bin", traffic.combinations)[1]
    groupings: dict[str, GroupingSnapshot] = {}
    for name in space.groupings:
        groups = present_groups(space, name, traffic)
        if groups.names:
            beliefs = assess_grouping(
                cell_groups=groups.cells,
                cell_bins=cell_bins,
                group_count=len(groups.names),
                bin_count=space.bin_count,
                traffic=CellTraffic(traffic.traffic.weights, traffic.traffic.score_sums),
                labels=labels,
                prior=settings.prior,
            )
            confusion = None
            if space.groupings[name].kind == "predicted_class":
                confusion = confusion_snapshot(
                    groups.names, beliefs, settings, cell_groups=groups.cells, labels=labels, traffic=traffic
                )
            groupings[name] = grouping_snapshot(groups.names, beliefs, settings, confusion)
    _tell_overall(groupings, settings, ledger)
    return ModelSnapshot(
        model=model,
        taken_at=now,
        predictions=int(traffic.traffic.counts.sum()),
        combinations=len(traffic.combinations),
        combination_limit=space.combination_limit,
        pool_items=sum(traffic.pool_sizes.values()),
        outbox_size=requests.outbox_size,
        outcomes=len(ledger),
        last_label_at=ledger.last_label_at,
        groupings=groupings,
        assessments={
            name: assessment_snapshot(
                name, assessment, groupings, requests, interval=settings.interval, now=now, rng=rng
            )
            for name, assessment in settings.assessments.items()
        },
    )


def _tell_overall(
    groupings: dict[str, GroupingSnapshot], settings: ModelSettings, ledger: OutcomeLedger
) -> None:
    """Take the accuracy over all traffic from the grouping by which most labels were asked.

    Within its groups those labels are a random sample, so it knows best. Under a fixed prior, which cannot
    learn that all groups are off alike, its sum over groups would be biased.
    """
    asked: Counter[str] = Counter()
    for code, count in Counter(ledger.columns().sources.tolist()).items():
        asked[ledger.sources[code][1]] += count
    known = [name for name, _ in asked.most_common() if name in groupings]
    if settings.prior == "learned" and known and known[0] != ALL and ALL in groupings:
        everything = groupings[ALL]
        beliefs = replace(everything.beliefs, accuracy=groupings[known[0]].beliefs.overall)
        groupings[ALL] = grouping_snapshot(everything.groups, beliefs, settings)
