"""The certificate of a grouping: which labels count for it, when, and what becomes of it later."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_evidence_checkpoint import LIMIT, MODEL, REGIONS, index_of, ledger_of, outcome, request

from service.config.model import ModelSettings
from service.domain.assessments import MOST_TARGET
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.certificate import Certificate
from service.monitoring.model_evidence import due_checkpoint, model_evidence
from service.store.checkpoints import EvidenceCheckpoint
from service.store.outcome_entries import OutcomeEntry
from service.store.references import ReferenceWindow
from service.store.requests import OpenRequest


def model(**sections: Any) -> ModelSettings:
    return ModelSettings.model_validate(MODEL.model_dump() | sections)


def evidence(
    entries: list[OutcomeEntry],
    *,
    settings: ModelSettings = MODEL,
    opened: Mapping[str, OpenRequest] | None = None,
    checkpoint: EvidenceCheckpoint | None = None,
    reference: ReferenceWindow | None = None,
    before: Mapping[str, GroupingEvidence] | None = None,
    has_traffic: bool = True,
) -> dict[str, GroupingEvidence]:
    ledger = ledger_of(entries)
    return model_evidence(
        settings=settings,
        index=index_of(ledger) if has_traffic else index_of(ledger, []),
        ledger=ledger,
        open_requests=opened or {},
        reference=reference,
        checkpoint=checkpoint,
        before=before or {},
    )


def certificate(entries: list[OutcomeEntry], **options: Any) -> Certificate:
    found = evidence(entries, **options)["region"].certificate
    assert found is not None
    return found


def labels(count: int, *, right: bool | None = True, begin: int = 0) -> list[OutcomeEntry]:
    """Labels of all regions in turn."""
    return [outcome(number, right=right) for number in range(begin, begin + count)]


def regions(found: Certificate) -> list[bool]:
    """Whether each region is shown to meet the threshold; the group before them is `__other__`."""
    return found.shown[1:].tolist()


def test_groups_without_errors_are_shown_to_meet_the_threshold() -> None:
    found = certificate(labels(20 * len(REGIONS)))
    assert regions(found) == [True] * len(REGIONS)
    assert found.labels_left[1:].tolist() == [0.0] * len(REGIONS)


def test_a_group_without_labels_is_not_shown_to_meet_it() -> None:
    found = certificate([outcome(number, right=True, region="north") for number in range(60)])
    assert regions(found) == [True, False, False]


@pytest.mark.parametrize("threshold", [math.nextafter(1.0, 0.0), 1 - 1e-15, 1 - 1e-9])
def test_nothing_is_shown_to_meet_a_threshold_that_hardly_differs_from_1(threshold: float) -> None:
    found = evidence(labels(60), settings=model(alerts={"min_accuracy": threshold}))
    assert found["region"].certificate is None


def test_the_highest_threshold_that_can_be_shown_has_bets_that_are_numbers() -> None:
    mixed = [*labels(60), *labels(3, right=False, begin=60)]
    found = certificate(mixed, settings=model(alerts={"min_accuracy": MOST_TARGET}))
    assert np.isfinite(found.log_e).all()
    assert not np.isnan(found.labels_left).any()


def test_folded_values_are_never_shown_to_meet_it() -> None:
    assert not certificate(labels(300)).shown[0]


def test_a_label_counts_once_all_earlier_requests_of_the_grouping_have_ended() -> None:
    entries = [outcome(number, right=True, region="north") for number in (1, 2, 4, 5)]
    found = certificate(entries, opened=request(3, "south"))
    assert found.collected.labels[0].tolist() == [0, 2, 0, 0]
    assert found.waiting.tolist() == [0, 2, 0, 0]
    # Requests of other groupings do not matter.
    assert certificate(entries, opened=request(3, "north", "device")).collected.labels[0, 1] == 4


def test_a_round_adds_only_what_is_new_and_finds_what_all_labels_say() -> None:
    entries = [outcome(number, right=number % 7 > 0) for number in range(90)]
    before = evidence(entries[:50], opened=request(40))
    now = certificate(entries, before=before)
    np.testing.assert_allclose(now.log_e, certificate(entries).log_e)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 30)), min_size=1, max_size=60),
    st.lists(st.integers(1, 90), min_size=1, max_size=6),
)
def test_what_has_counted_is_the_same_whatever_is_answered_later(
    requests: list[tuple[bool, int, int]], looks: list[int]
) -> None:
    """Requests are answered some time after they were made; what counts is before the first open one."""
    entries = [
        outcome(number, right=right, region=REGIONS[region])
        for number, (right, region, _) in enumerate(requests)
    ]
    before: dict[str, GroupingEvidence] = {}
    for now in sorted(looks):
        made = range(min(now + 1, len(requests)))
        waiting = [number for number in made if number + requests[number][2] > now]
        opened: dict[str, OpenRequest] = {}
        for number in waiting:
            opened |= request(number, REGIONS[requests[number][1]])
        there = [entries[number] for number in made if number not in waiting]
        before = evidence(there, opened=opened, before=before)
        ended = entries[: min(waiting, default=len(made))]
        if ended:
            found = before["region"].certificate
            assert found is not None
            np.testing.assert_allclose(found.log_e, certificate(ended).log_e, atol=1e-9)


def test_without_news_a_round_computes_nothing() -> None:
    entries = labels(30)
    before = evidence(entries)
    assert certificate(entries, before=before) is before["region"].certificate


def test_without_traffic_there_is_no_certificate() -> None:
    entries, checkpoint = labels(120), kept(labels(120))
    before = evidence(entries, checkpoint=checkpoint)
    without = evidence(entries, checkpoint=checkpoint, before=before, has_traffic=False)
    assert without["region"].certificate is None


def test_a_corrected_label_counts_as_if_it_had_been_right_from_the_start() -> None:
    entries = labels(60)
    before = evidence(entries)
    corrected = [outcome(6, right=False) if number == 6 else entry for number, entry in enumerate(entries)]
    found = certificate(corrected, before=before)
    np.testing.assert_allclose(found.log_e, certificate(corrected).log_e)
    assert regions(certificate(entries)) == [True] * 3
    assert regions(found) == [False, True, True]


def test_items_that_may_have_any_class_count_as_incorrect() -> None:
    skipped, wrong = labels(9, right=None, begin=60), labels(9, right=False, begin=60)
    found = certificate(labels(60) + skipped)
    np.testing.assert_allclose(found.log_e, certificate(labels(60) + wrong).log_e)


def test_if_no_request_is_answered_nothing_is_shown() -> None:
    found = certificate(labels(60, right=None))
    assert regions(found) == [False] * 3
    assert np.isinf(found.labels_left[1:]).all()


def test_without_a_threshold_there_is_no_certificate() -> None:
    for alerts in ({}, {"min_accuracy": 1.0}, {"min_accuracy": 0.0}):
        assert evidence(labels(9), settings=model(alerts=alerts))["region"].certificate is None


def test_labels_that_may_be_wrong_have_to_agree_more_often() -> None:
    found = certificate(labels(60), settings=model(labels_per_item={"reliability": 0.95, "max_error": 0.1}))
    assert found.test.target == pytest.approx(0.8 + 0.2 * 0.1)


def test_a_certificate_begins_again_once_a_reference_is_set() -> None:
    found = certificate(labels(60), reference=ReferenceWindow(-math.inf, 30.0, 30.0))
    np.testing.assert_allclose(found.log_e, certificate(labels(30, begin=30)).log_e)


def kept(
    entries: list[OutcomeEntry],
    settings: ModelSettings = MODEL,
    checkpoint: EvidenceCheckpoint | None = None,
) -> EvidenceCheckpoint:
    ledger = ledger_of(entries)
    found = due_checkpoint(
        settings=settings,
        index=index_of(ledger),
        ledger=ledger,
        open_requests={},
        reference=None,
        checkpoint=checkpoint,
        outcome_limit=LIMIT,
    )
    assert found is not None
    return found


def test_a_certificate_outlasts_its_labels() -> None:
    checkpoint = kept(labels(90))
    left = [entry for entry in labels(90) if entry.fact.requested_at >= 60]
    np.testing.assert_allclose(certificate(left, checkpoint=checkpoint).log_e, certificate(labels(90)).log_e)


def test_evidence_for_one_threshold_is_none_for_another() -> None:
    checkpoint = kept(labels(90))
    left = [entry for entry in labels(90) if entry.fact.requested_at >= 60]
    higher = certificate(left, checkpoint=checkpoint, settings=model(alerts={"min_accuracy": 0.81}))
    assert regions(certificate(left, checkpoint=checkpoint)) == [True] * 3
    assert regions(higher) == [False] * 3


def test_labels_of_a_time_without_a_threshold_are_not_left_out_of_a_certificate() -> None:
    said = [outcome(number, right=not 90 <= number < 180, region="north") for number in range(190)]
    checkpoint = kept(said[:180], model(alerts={}), kept(said[:90]))
    left = [entry for entry in said if entry.fact.requested_at >= 150]
    assert not certificate(left, checkpoint=checkpoint).shown.any()


def test_a_group_that_arrives_later_has_to_be_shown_too() -> None:
    north = [outcome(number, right=True, region="north") for number in range(60)]
    west = [outcome(number, right=True, region="west") for number in range(60, 120)]
    before = evidence(north)
    assert regions(certificate(north, before=before)) == [True, False, False]
    assert regions(certificate([*north, *west], before=before)) == [True, False, True]


def own(**groups: float | None) -> dict[str, Any]:
    """Thresholds of the model, and those of some regions."""
    thresholds = {group: {"min_accuracy": least} for group, least in groups.items()}
    return {"min_accuracy": 0.8, "groupings": {"region": {"groups": thresholds}}}


def test_every_group_is_shown_to_meet_its_own_threshold() -> None:
    # Two of three labels of every region are correct.
    mixed = [outcome(number, right=number // 3 % 3 > 0) for number in range(300)]
    assert regions(certificate(mixed)) == [False] * 3
    assert regions(certificate(mixed, settings=model(alerts=own(south=0.4)))) == [False, True, False]


def test_a_group_without_a_threshold_that_can_be_shown_has_no_labels_that_count() -> None:
    for least in (None, 1.0):
        found = certificate(labels(90), settings=model(alerts=own(south=least)))
        assert regions(found) == [True, False, True]
        assert found.collected.labels[0].tolist() == [0, 30, 0, 30]
        assert np.isinf(found.labels_left[2])


def test_the_certificate_begins_again_in_the_group_whose_threshold_changed_and_only_there() -> None:
    checkpoint = kept(labels(90))
    left = [entry for entry in labels(90) if entry.fact.requested_at >= 60]
    found = certificate(left, checkpoint=checkpoint, settings=model(alerts=own(south=0.81)))
    assert regions(found) == [True, False, True]
    # With that threshold from the start, as with the former one, it is shown.
    assert regions(certificate(labels(90), settings=model(alerts=own(south=0.81)))) == [True] * 3
