"""What one round begins with: the facts that were read, and what is needed of the round before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.group_index import GroupIndex
from service.monitoring.history import Fault, Moment, Since
from service.monitoring.outcome_table import OutcomeLedger
from service.store.checkpoints import EvidenceCheckpoint
from service.store.facts import RequestFacts, TrafficFacts
from service.store.references import ReferenceWindow
from service.store.traffic_checkpoints import Marks


@dataclass(frozen=True)
class Facts:
    """What was read of one model.

    Attributes:
        traffic: its traffic and pools.
        requests: its label requests, read before the outcomes.
        ledger: its outcomes.
        index: its groups by the traffic and the outcomes, built once a round.
        reference: the window that recent traffic is compared with, if one was set.
        checkpoint: evidence by labels that the outcome stream has let go of, or soon will.
        marks: of its traffic, read before it.
    """

    traffic: TrafficFacts
    requests: RequestFacts
    ledger: OutcomeLedger
    index: GroupIndex
    reference: ReferenceWindow | None = None
    checkpoint: EvidenceCheckpoint | None = None
    marks: Marks = field(default_factory=dict)


@dataclass(frozen=True)
class RoundState:
    """What a round needs of the rounds before; the default is that of a process that has just started.

    Attributes:
        evidence: of the last snapshot, by grouping.
        since: since when thresholds were crossed at the last snapshot; None before the first.
        past: estimates of earlier times, oldest first.
    """

    evidence: Mapping[str, GroupingEvidence | None] = field(default_factory=dict)
    since: Mapping[Fault, Since] | None = None
    past: tuple[Moment, ...] = ()
