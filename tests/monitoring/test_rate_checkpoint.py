"""Evidence on error rates continues when its labels are trimmed."""

from __future__ import annotations

import numpy as np
import pytest
from rate_checkpoint_examples import (
    FAIR,
    LIMIT,
    REGIONS,
    SPACE,
    asking,
    due,
    index_of,
    ledger_of,
    outcome,
    proof,
    trimmed,
)

from service.config.assessments import ErrorRateSettings
from service.domain.request_order import requested_at
from service.monitoring.evidence_base import Checkpoint
from service.monitoring.model_evidence import due_checkpoint
from service.monitoring.rate_base import RateBase, arrival_numbers
from service.store.references import ReferenceWindow


def test_evidence_is_that_of_all_labels_however_many_were_trimmed() -> None:
    entries = [outcome(number) for number in range(150)]
    kept, checkpoint = trimmed(entries)
    of_all = proof(ledger_of(entries))
    assert checkpoint is not None
    np.testing.assert_allclose(proof(kept, checkpoint).log_e, of_all.log_e)
    assert not np.allclose(proof(kept).log_e, of_all.log_e)


def test_a_difference_continues_too() -> None:
    apart = asking(fair={"max_differences": {"false_positive_rate": 0.05}})
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
    stricter = asking(fair={"limits": {"false_positive_rate": 0.1}})
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
