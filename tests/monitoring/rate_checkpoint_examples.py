"""Labels for error rates, the evidence that they are, and its checkpoints, for tests of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from traffic_tables import every_cell, traffic_of

from service.config.assessments import ErrorRateSettings
from service.config.settings import Settings
from service.domain.cells import definitions, stratum_grouping
from service.domain.groupings import ByStratum
from service.domain.stratum_estimator import packed_estimator
from service.monitoring.error_rate_evidence import (
    RateProof,
    error_rate_evidence,
    rate_limits,
)
from service.monitoring.evidence_base import Checkpoint
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import due_checkpoint
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.rate_base import RateBase
from service.monitoring.rate_labels import evidence_labels
from service.statistics.rates.label_evidence import stratum_estimator
from service.store.checkpoints import EvidenceCheckpoint
from service.store.outcome_entries import OutcomeEntry, SharedDraw
from service.store.records import Fact, LabelFact
from service.store.references import ReferenceWindow

REGIONS = ["north", "south", "west"]
ASKED = stratum_grouping("region")
FAIR = {
    "task": "error_rates",
    "grouping": "region",
    "positive_class": "flag",
    "budget": {"labels": 9},
    "limits": {"false_positive_rate": 0.2},
}
LIMIT = 40
Entry = OutcomeEntry | SharedDraw


def asking(labels_per_item: dict[str, Any] | None = None, **assessments: Any) -> Settings:
    """Settings with these assessments, each with these changes."""
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": ["127.0.0.1:9092"]},
            "redis": {"url": "redis://127.0.0.1:6379/0"},
            "models": {
                "m": {
                    "classes": ["flag", "pass"],
                    "groupings": {"region": {"by": "attribute", "attribute": "region"}},
                    "assessments": {name: FAIR | fields for name, fields in assessments.items()},
                    "labels_per_item": labels_per_item or {},
                }
            },
        }
    )


SETTINGS = asking(fair={})
SPACE = SETTINGS.cell_space("m")
STRATA = SPACE.groupings[ASKED]


def outcome(number: int, region: str = "") -> OutcomeEntry:
    """A label that was requested, and given, at second `number`; of a wrong flag in one of three."""
    assert isinstance(STRATA, ByStratum)
    region = region or REGIONS[number % len(REGIONS)]
    names, of = STRATA.strata(SPACE.classes, SPACE.score_edges)
    selected = number % 3 > 0
    drawn = int(of[0 if selected else 1, -1])
    kinds = np.arange(len(names)) > of[1].max()
    estimator = stratum_estimator(
        np.full(len(names), 1 / len(names)),
        np.full(len(names), 1 / len(names)),
        np.full(len(names), 0.4),
        selected=kinds,
        drawn=drawn,
    )
    fact = Fact(
        request_id=f"request-{number}",
        item_id=f"item-{number}",
        grouping=ASKED,
        group=STRATA.group_name(names[drawn], region),
        predicted_class="flag" if selected else "pass",
        score=0.99,
        attributes={"region": region},
        predicted_at=float(number),
        requested_at=float(number),
        definition=definitions(SPACE)[ASKED],
        estimator=packed_estimator(estimator),
    )
    given = LabelFact("pass" if number % 5 else "flag", float(number), "")
    return OutcomeEntry((number, 0), (number, 0), "fair", fact, given)


def ledger_of(entries: Sequence[Entry]) -> OutcomeLedger:
    """The outcomes of a stream."""
    ledger = OutcomeLedger(SPACE)
    ledger.fold(entries)
    ledger.place()
    return ledger


def index_of(ledger: OutcomeLedger, regions: list[str]) -> GroupIndex:
    """Groups, of which these regions have traffic."""
    cells = every_cell(SPACE, [(region,) for region in regions])
    return GroupIndex(SPACE, traffic_of(SPACE, cells), ledger.cells)


def due(
    ledger: OutcomeLedger,
    checkpoint: EvidenceCheckpoint | None = None,
    *,
    settings: Settings = SETTINGS,
    regions: list[str] = REGIONS,
    reference: ReferenceWindow | None = None,
) -> EvidenceCheckpoint | None:
    """The checkpoint that is due, as it is read again."""
    found = due_checkpoint(
        settings=settings.models["m"],
        index=index_of(ledger, regions),
        ledger=ledger,
        open_requests={},
        reference=reference,
        checkpoint=checkpoint,
        outcome_limit=LIMIT,
    )
    if found is None:
        return None
    return msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=EvidenceCheckpoint)


def proof(
    ledger: OutcomeLedger,
    checkpoint: EvidenceCheckpoint | None = None,
    *,
    settings: Settings = SETTINGS,
    regions: list[str] = REGIONS,
    reference: ReferenceWindow | None = None,
    name: str = "fair",
) -> RateProof:
    """Evidence on the false positive rate, by the labels that are there and the checkpoint."""
    asked = settings.models["m"].assessments[name]
    assert isinstance(asked, ErrorRateSettings)
    index = index_of(ledger, regions)
    base = Checkpoint(checkpoint, SPACE, reference)
    labelled = evidence_labels(
        asked,
        index,
        ledger,
        {},
        now=1e9,
        since=None if reference is None else reference.until,
        any_class=(),
        base=RateBase.of(base, name, asked, samples_traffic=ledger.samples_traffic),
        wrong_labels=settings.models["m"].labels_per_item.wrong_labels,
    )
    limits = rate_limits(asked, index["region"].names)
    return error_rate_evidence(asked, labelled, limits, alpha=0.05, before={}).proofs["false_positive_rate"]


def trimmed(
    entries: Sequence[Entry], *, regions: list[str] = REGIONS
) -> tuple[OutcomeLedger, EvidenceCheckpoint | None]:
    """What the stream keeps of its entries, and the checkpoint, as rounds after every entry leave them."""
    checkpoint, ledger = None, OutcomeLedger(SPACE)
    for end in range(1, len(entries) + 1):
        ledger.fold(entries[end - 1 : end])
        ledger.forget(entries[max(0, end - LIMIT)].position)
        ledger.place()
        checkpoint = due(ledger, checkpoint, regions=regions) or checkpoint
    return ledger, checkpoint
