"""Evidence on error rates continues when its labels are trimmed."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from traffic_tables import every_cell, traffic_of

from service.config.assessments import ErrorRateSettings
from service.config.settings import Settings
from service.domain.assessments import RateName
from service.domain.cells import definitions, stratum_grouping
from service.domain.groupings import ByStratum
from service.domain.request_order import requested_at
from service.domain.stratum_estimator import packed_estimator
from service.monitoring.error_rate_evidence import (
    RateProof,
    error_rate_evidence,
    evidence_labels,
    rate_limits,
)
from service.monitoring.evidence_base import Checkpoint
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import due_checkpoint
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.rate_base import RateBase, arrival_numbers
from service.statistics.rates.label_evidence import stratum_estimator
from service.store.checkpoints import EvidenceCheckpoint
from service.store.outcome_entries import OutcomeEntry
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


def settings_with(**fields: Any) -> Settings:
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": ["127.0.0.1:9092"]},
            "redis": {"url": "redis://127.0.0.1:6379/0"},
            "models": {
                "m": {
                    "classes": ["flag", "pass"],
                    "groupings": {"region": {"by": "attribute", "attribute": "region"}},
                    "assessments": {"fair": FAIR | fields},
                }
            },
        }
    )


SETTINGS = settings_with()
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


def ledger_of(entries: list[OutcomeEntry]) -> OutcomeLedger:
    ledger = OutcomeLedger(SPACE)
    ledger.fold(entries)
    ledger.place()
    return ledger


def index_of(ledger: OutcomeLedger, regions: list[str]) -> GroupIndex:
    cells = every_cell(SPACE, [(region,) for region in regions])
    return GroupIndex(SPACE, traffic_of(SPACE, cells), ledger.cells)


def due(
    ledger: OutcomeLedger,
    checkpoint: EvidenceCheckpoint | None = None,
    *,
    regions: list[str] = REGIONS,
    reference: ReferenceWindow | None = None,
) -> EvidenceCheckpoint | None:
    found = due_checkpoint(
        settings=SETTINGS.models["m"],
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
    rate: RateName = "false_positive_rate",
) -> RateProof:
    asked = settings.models["m"].assessments["fair"]
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
        base=RateBase.of(base, "fair", asked, samples_traffic=ledger.samples_traffic),
    )
    limits = rate_limits(asked, index["region"].names)
    return error_rate_evidence(asked, labelled, limits, alpha=0.05, before={}).proofs[rate]


def trimmed(
    entries: list[OutcomeEntry], *, regions: list[str] = REGIONS
) -> tuple[OutcomeLedger, EvidenceCheckpoint | None]:
    """The newest labels that the stream keeps, and the checkpoint, as rounds after every label leave them."""
    checkpoint = None
    for end in range(1, len(entries) + 1):
        ledger = ledger_of(entries[max(0, end - LIMIT) : end])
        checkpoint = due(ledger, checkpoint, regions=regions) or checkpoint
    return ledger, checkpoint


def test_evidence_is_that_of_all_labels_however_many_were_trimmed() -> None:
    entries = [outcome(number) for number in range(150)]
    kept, checkpoint = trimmed(entries)
    of_all = proof(ledger_of(entries))
    assert checkpoint is not None
    np.testing.assert_allclose(proof(kept, checkpoint).log_e, of_all.log_e)
    assert not np.allclose(proof(kept).log_e, of_all.log_e)


def test_a_difference_continues_too() -> None:
    apart = settings_with(max_differences={"false_positive_rate": 0.05})
    entries = [outcome(number) for number in range(60)]
    asked = apart.models["m"]
    ledger = ledger_of(entries)
    checkpoint = due_checkpoint(
        settings=asked,
        index=index_of(ledger, REGIONS),
        ledger=ledger,
        open_requests={},
        reference=None,
        checkpoint=None,
        outcome_limit=LIMIT,
    )
    kept = ledger_of(entries[-30:])
    found = proof(kept, checkpoint, settings=apart)
    assert found.log_e_difference == pytest.approx(proof(ledger, settings=apart).log_e_difference)


def test_a_group_without_traffic_now_continues_when_it_is_back() -> None:
    entries = [outcome(number, "west" if number < 10 else "north") for number in range(45)]
    first = due(ledger_of(entries))
    assert first is not None
    later = [*entries[10:], *(outcome(number, "north") for number in range(45, 60))]
    second = due(ledger_of(later), first, regions=["north"])
    assert second is not None
    assert second.position > first.position
    back = proof(ledger_of([outcome(number, "north") for number in range(45, 60)]), second)
    of_west = proof(ledger_of(entries[:10])).log_e[REGIONS.index("west")]
    assert back.log_e[REGIONS.index("west")] == pytest.approx(of_west)


def test_a_limit_that_is_changed_counts_only_labels_that_no_checkpoint_knows() -> None:
    entries = [outcome(number) for number in range(45)]
    ledger = ledger_of(entries)
    checkpoint = due(ledger)
    assert checkpoint is not None
    stricter = settings_with(limits={"false_positive_rate": 0.1})
    unknown = [each for each in entries if each.fact.requested_at > requested_at(checkpoint.position)]
    found = proof(ledger, checkpoint, settings=stricter)
    np.testing.assert_allclose(found.log_e, proof(ledger_of(unknown), settings=stricter).log_e)


def test_a_new_reference_begins_again() -> None:
    entries = [outcome(number) for number in range(45)]
    ledger = ledger_of(entries)
    checkpoint, reference = due(ledger), ReferenceWindow(5.0, 20.0, 21.0)
    begun = proof(ledger, checkpoint, reference=reference)
    np.testing.assert_allclose(begun.log_e, proof(ledger, reference=reference).log_e)


def test_groups_keep_the_number_of_their_arrival() -> None:
    entries = [outcome(number, "south" if number < 20 else "north") for number in range(60)]
    _, checkpoint = trimmed(entries)
    assert checkpoint is not None
    (state,) = checkpoint.rates
    assert state.arrivals == ["south", "north"]
    assert arrival_numbers(REGIONS, state.arrivals).tolist() == [2, 1, 3]


def test_an_assessment_of_another_positive_class_begins_again() -> None:
    ledger = ledger_of([outcome(number) for number in range(45)])
    checkpoint = due(ledger)
    assert checkpoint is not None
    base = Checkpoint(checkpoint, SPACE, None)
    same, other = (
        ErrorRateSettings.model_validate(FAIR | {"positive_class": name}) for name in SPACE.classes
    )
    assert RateBase.of(base, "fair", same, samples_traffic=False).capitals
    assert not RateBase.of(base, "fair", other, samples_traffic=False).capitals
