"""When evidence has to be written down, before the outcome stream lets go of labels, and what is (pure).

The stream keeps `bounds.outcomes` labels. Once three quarters of them are there that no checkpoint knows,
the oldest ones go into one, until half of them are left. So a label has time to be corrected before it is
fixed, and the leader may be unavailable for as long as a quarter of all labels take.
"""

from __future__ import annotations

from collections.abc import Mapping

from service.config.model import ModelSettings
from service.monitoring.anytime_tests import GroupingEvidence, arrivals, model_evidence
from service.monitoring.evidence_base import Checkpoint, open_places
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.grouped_e_processes import STATE
from service.store.checkpoints import DatedChange, EvidenceCheckpoint, GroupingState
from service.store.references import ReferenceWindow
from service.store.requests import OpenRequest


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
    """The next checkpoint, if the stream is about to let go of labels that none knows.

    It reaches up to a request before which all have ended, of whatever group: nothing that it knows of can
    change.

    Args:
        settings: of the model.
        index: its groups.
        ledger: its outcomes.
        open_requests: its requests that have not ended, by id, read before the outcomes.
        reference: the window that "now" is compared with, if one was set.
        checkpoint: the one that is kept, if any.
        outcome_limit: labels that the stream keeps, about.
    """
    there = Checkpoint(checkpoint, index.space, reference)
    soon = ledger.place_before(max(0, ledger.rows - outcome_limit * 3 // 4))
    if soon <= there.place:
        return None
    opened = open_places(open_requests, settings, there.keys)
    place = ledger.place_before(ledger.rows - outcome_limit // 2)
    place = min(place, min(opened.values(), default=place + 1) - 1)
    if place <= there.place:
        return None
    evidence = model_evidence(
        settings=settings,
        index=index,
        ledger=ledger,
        open_requests={},
        reference=reference,
        checkpoint=checkpoint,
        before={},
        until=place + 1,
    )
    states = [_state(name, found, there) for name, found in evidence.items()]
    return EvidenceCheckpoint(
        place=place,
        reference=None if reference is None else (reference.since, reference.until, reference.set_at),
        arrivals=arrivals(index=index, ledger=ledger, checkpoint=there, until=place + 1),
        groupings=[*states, *there.other_states],
    )


def _state(name: str, found: GroupingEvidence, before: Checkpoint) -> GroupingState:
    """Evidence about one grouping as it is kept; groups that have no traffic now stay as they were."""
    columns = {column: getattr(found.known, column) for column in STATE}
    groups = list(found.groups)
    changes = {
        groups[group]: DatedChange(one.at, one.earliest, one.latest, one.predicted_at, one.labels)
        for group, one in found.changes.items()
    }
    kept = {column: values.astype("<f8").tobytes() for column, values in columns.items()}
    if (state := before.state(name)) is not None and (gone := set(state.groups) - set(groups)):
        absent = [group for group in state.groups if group in gone]
        evidence = before.base(name, absent).evidence
        groups += absent
        for column in STATE:
            kept[column] += getattr(evidence, column).astype("<f8").tobytes()
        changes |= {group: change for group, change in state.changes.items() if group in gone}
    return GroupingState(name, before.keys[name], groups, kept, changes)
