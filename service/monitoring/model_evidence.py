"""Evidence about all groupings of a model, and what of it is written down before labels are trimmed (pure).

The stream keeps `bounds.outcomes` labels. Once three quarters of them are there that no checkpoint knows,
the oldest ones go into one, until half of them are left. So a label has time to be corrected before it is
fixed, and the leader may be unavailable for as long as a quarter of all labels take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from service.config.model import ModelSettings
from service.domain.arrays import Flags, Indices
from service.domain.cells import OTHER
from service.domain.request_order import NO_PLACE
from service.monitoring.anytime_tests import GroupingEvidence, LabelsOf, collected_evidence, conclude
from service.monitoring.certificate import grouping_certificate, kept_with
from service.monitoring.evidence_base import Checkpoint, WatchedGroups, arrival_order
from service.monitoring.gold_labels import allowed_errors, first_gold, gold_counts
from service.monitoring.group_index import GroupIndex, Groups
from service.monitoring.group_thresholds import group_thresholds
from service.monitoring.open_places import ANY_GROUPING, first_open, open_places
from service.monitoring.outcome_aggregates import SumTallies
from service.monitoring.outcome_rows import WITHOUT_EVIDENCE, GroupKey
from service.monitoring.outcome_table import LabelSequence, OutcomeLedger
from service.monitoring.rate_checkpoints import rate_states
from service.monitoring.unanswered_requests import unanswered_requests
from service.statistics.grouped_e_processes import STATE
from service.statistics.label_errors import GoldCounts, WrongLabels
from service.store.checkpoints import EvidenceCheckpoint, GroupingState
from service.store.references import ReferenceWindow
from service.store.requests import OpenRequest

_Labelled = dict[str, tuple[Groups, SumTallies]]
"""Of groupings with evidence, by name: their groups, and how many labels each has, and which."""


def model_evidence(
    *,
    settings: ModelSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    open_requests: Mapping[str, OpenRequest],
    reference: ReferenceWindow | None,
    checkpoint: EvidenceCheckpoint | None,
    before: Mapping[str, GroupingEvidence | None],
    wrong_labels: WrongLabels | None = None,
    any_class: frozenset[int] | None = None,
    until: int = NO_PLACE,
) -> dict[str, GroupingEvidence]:
    """Evidence about every grouping that has traffic and asked for labels.

    `open_requests`, by id, are of the moment of the outcomes. Those from the place `until` on are left out.
    With what was known `before`, by grouping, only what has changed is computed. `wrong_labels` are as the
    settings state, unless they are learned; `any_class` is as of `UnansweredRequests`, if known already.
    """
    wrong_labels = wrong_labels or allowed_errors(settings, GoldCounts())
    base = Checkpoint(checkpoint, index.space, reference)
    unanswered = unanswered_requests(settings, ledger).any_class if any_class is None else any_class
    twice = _may_count_twice(settings, ledger, base)
    labelled = _labelled(index, ledger, base, unanswered, twice)
    opened = open_places(open_requests, settings, base.keys)
    order = arrival_order(base.arrivals, _first_places(index, ledger, labelled, opened, base))
    numbers = {key: number for number, key in enumerate(order, start=1)}
    shared = Counter(base.keys[name] for name in labelled)
    labels_of = {
        name: _labels_of(ledger, name, groups, unanswered, trimmed=twice.get(name))
        for name, (groups, _) in labelled.items()
    }
    found: dict[str, GroupingEvidence] = {}
    for name, (groups, tallies) in labelled.items():
        key = base.keys[name]
        arrived = [numbers.get((key, group), len(order) + 1) for group in groups.names]
        watched = WatchedGroups(
            groups.names,
            group_thresholds(settings.alerts, "min_accuracy", index.space.groupings[name], groups.names),
            np.array(arrived, np.intp),
            np.minimum(first_open(opened, key, groups.names), np.uint64(until)),
            base.evidence(name, groups.names),
            base.changes(name, groups.names),
            base.position,
            shared[key],
        )
        last = before.get(name)
        collected = collected_evidence(
            watched,
            labels_of[name],
            tallies,
            settings=settings,
            wrong_labels=wrong_labels,
            reference=reference,
            before=last,
        )
        alike = None if last is None or last.watched.names != watched.names else last
        continues = alike is not None and alike.continues(watched, reference, wrong_labels).all()
        proof = grouping_certificate(
            watched,
            labels_of[name],
            tallies,
            settings=settings,
            reference=reference,
            until=min((until, *(place for (of, _), place in opened.items() if of in {key, ANY_GROUPING}))),
            before=alike.certificate if alike is not None and continues else None,
        )
        found[name] = replace(collected, certificate=proof, state=kept_with(proof, collected.state))
    return conclude(found, labels_of, settings, wrong_labels, before)


def due_checkpoint(
    *,
    settings: ModelSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    open_requests: Mapping[str, OpenRequest],
    reference: ReferenceWindow | None,
    checkpoint: EvidenceCheckpoint | None,
    outcome_limit: int,
) -> EvidenceCheckpoint | None:
    """The next checkpoint, if the stream is about to be trimmed of labels that none knows.

    It reaches up to a request before which all have ended: nothing that it knows of can change. Arguments
    are as of `model_evidence`; the stream keeps about `outcome_limit` labels.
    """
    base = Checkpoint(checkpoint, index.space, reference)
    soon = ledger.place_before(outcome_limit * 3 // 4)
    if soon <= base.position:
        return None
    opened = open_places(open_requests, settings, base.keys)
    place = ledger.place_before(outcome_limit // 2)
    place = min(place, min(opened.values(), default=place + 1) - 1, first_gold(open_requests) - 1)
    # Up to the last one all have ended, and are in the counts of gold labels whatever the reference is.
    place = max(place, 0 if checkpoint is None else checkpoint.position)
    if place <= base.position:
        return None
    gold = gold_counts(ledger.gold_labels, {}, checkpoint, until=place + 1)
    any_class = unanswered_requests(settings, ledger).any_class
    evidence = model_evidence(
        settings=settings,
        index=index,
        ledger=ledger,
        open_requests={},
        reference=reference,
        checkpoint=checkpoint,
        before={},
        wrong_labels=allowed_errors(settings, gold),
        any_class=any_class,
        until=place + 1,
    )
    firsts = _first_places(index, ledger, _labelled(index, ledger, base, (), {}), {}, base)
    return EvidenceCheckpoint(
        position=place,
        reference=reference,
        arrivals=arrival_order(base.arrivals, firsts, until=place + 1),
        groupings=[*(_state(*of, base) for of in evidence.items()), *base.former_states(ledger, until=place)],
        gold=gold,
        rates=rate_states(settings, index, ledger, base, reference, any_class=any_class, until=place + 1),
    )


def _state(name: str, found: GroupingEvidence, before: Checkpoint) -> GroupingState:
    """Evidence about one grouping as it is kept; groups that have no traffic now stay as they were."""
    groups, known = list(found.groups), [found.state]
    changes = {groups[group]: change for group, change in found.changes.items()}
    if (state := before.states.get(name)) is not None:
        present = set(groups)
        absent = [group for group in state.groups if group not in present]
        groups += absent
        known.append(before.evidence(name, absent))
        changes |= {group: change for group, change in state.changes.items() if group not in present}
    kept = {
        column: b"".join(getattr(evidence, column).astype("<f8").tobytes() for evidence in known)
        for column in STATE
    }
    return GroupingState(name, before.keys[name], groups, kept, changes)


def _may_count_twice(settings: ModelSettings, ledger: OutcomeLedger, base: Checkpoint) -> Mapping[str, bool]:
    """Groupings in which a prediction may have two outcomes: those that labels are requested for.

    With each, whether one of them may be trimmed, as the checkpoint knows it.
    """
    asked = {assessment.asked_grouping for assessment in settings.assessments.values()}
    return dict.fromkeys(asked, bool(base.position)) if ledger.samples_traffic else {}


def _labelled(
    index: GroupIndex,
    ledger: OutcomeLedger,
    base: Checkpoint,
    unanswered: Collection[int],
    twice: Mapping[str, bool],
) -> _Labelled:
    """Of every grouping with evidence the groups that have traffic, and which labels they have.

    Items without a label for the reasons `unanswered` count as well. `twice` is as of `_may_count_twice`.
    `OTHER` has no evidence: values come into it and leave it, so its labels are no even sample of it.
    """
    labelled: _Labelled = {}
    for name, grouping in sorted(index.space.groupings.items()):
        sampled = ledger.is_sample_of(name, unanswered=unanswered).any()
        if grouping.is_by_votes or grouping.is_internal or not (name in base.states or sampled):
            continue
        groups = index[name]
        groups = replace(groups, has_group=groups.has_group & ~groups.cells_of(OTHER))
        tallies = ledger.tallies(
            name, groups.numbers, len(groups.names), unanswered=unanswered, trimmed=twice.get(name)
        )
        if tallies.counts.any() or name in base.states:
            labelled[name] = groups, tallies
    return labelled


def _labels_of(
    ledger: OutcomeLedger,
    name: str,
    groups: Groups,
    unanswered: Collection[int] = (),
    *,
    trimmed: bool | None = None,
) -> LabelsOf:
    def labels_of(which: Flags) -> tuple[LabelSequence, Indices]:
        cells = np.append(which, False)[groups.numbers]
        labels = ledger.label_sequence(name, cells, unanswered=unanswered, trimmed=trimmed)
        return labels, groups.cells[labels.cells]

    return labels_of


def _first_places(
    index: GroupIndex,
    ledger: OutcomeLedger,
    labelled: _Labelled,
    opened: Mapping[GroupKey, int],
    base: Checkpoint,
) -> dict[GroupKey, int]:
    """Of every group with labels or open requests, the place of the first request."""
    places = {key: place for key, place in ledger.first_requests().items() if key[0] != WITHOUT_EVIDENCE}
    without = {base.keys[name] for name, by in index.space.groupings.items() if by.is_internal}
    for group_key, place in opened.items():
        if group_key[0] not in {ANY_GROUPING, *without}:
            places[group_key] = min(place, places.get(group_key, NO_PLACE))
    known = set(base.arrivals)
    for name, (groups, tallies) in labelled.items():
        # Their labels were drawn for groups of other names, such as `__other__` before a bound was raised, or
        # nobody requested them.
        key, anyway = base.keys[name], ledger.samples_traffic
        unnamed = np.array(
            [(anyway or (key, group) not in places) and (key, group) not in known for group in groups.names],
            np.bool_,
        )
        if (unnamed & (tallies.counts > 0)).any():
            labels, of_groups = _labels_of(ledger, name, groups)(unnamed)
            firsts = np.full(len(groups.names), NO_PLACE, dtype=np.uint64)
            np.minimum.at(firsts, of_groups, labels.places)
            for group in np.flatnonzero(unnamed & (firsts < NO_PLACE)).tolist():
                named = key, groups.names[group]
                places[named] = min(int(firsts[group]), places.get(named, NO_PLACE))
    return places
