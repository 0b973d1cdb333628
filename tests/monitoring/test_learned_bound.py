"""Gold labels that the bound on wrong labels is learned from: in order, for ever, and what evidence does."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from test_evidence_checkpoint import LIMIT, MODEL, SPACE, index_of, outcome

from service.config.labels_per_item import GoldSettings, LabelsPerItem
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.gold_labels import allowed_errors, gold_counts
from service.monitoring.model_evidence import due_checkpoint, model_evidence
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.label_errors import GoldCounts
from service.store.checkpoints import EvidenceCheckpoint
from service.store.outcome_entries import OutcomeEntry
from service.store.records import EXPIRED, SKIPPED, Fact, LabelFact
from service.store.references import ReferenceWindow
from service.store.requests import OpenRequest

POLICY = LabelsPerItem(gold=GoldSettings(file="gold.jsonl"), max_error="learned")
LEARNING = MODEL.model_copy(update={"labels_per_item": POLICY})


def gold(number: int, label: str, *, predicted: str = "cat", true: str = "cat") -> OutcomeEntry:
    """A gold item that was requested at second `number`."""
    fact = Fact(
        *(f"gold-{number}", f"g{number}", "all", "", predicted, 0.9, {}, 0.0, float(number)), gold=true
    )
    place = (number, 1)
    given = LabelFact(label, float(number), "ana") if label else LabelFact("", 0.0, "", unanswered=EXPIRED)
    return OutcomeEntry(place, place, "region", fact, given)


def ledger_of(entries: list[OutcomeEntry]) -> OutcomeLedger:
    ledger = OutcomeLedger(SPACE, may_err=True)
    ledger.fold(entries)
    ledger.place()
    return ledger


def open_gold(number: int) -> dict[str, OpenRequest]:
    return {f"gold-{number}": OpenRequest("region", "", {}, "cat", 0.9, 1, float(number), gold=True)}


def counts(entries: list[OutcomeEntry], opened: Mapping[str, OpenRequest] | None = None) -> GoldCounts:
    return gold_counts(ledger_of(entries).gold_labels, opened or {}, None)


def test_right_and_wrong_labels_are_counted_by_whether_the_prediction_is_correct() -> None:
    entries = [
        gold(1, "cat"),
        gold(2, "dog"),
        gold(3, "dog", true="dog"),
        gold(4, "cat", true="dog"),
        gold(5, "cat", true="dog"),
        gold(6, ""),
    ]
    assert counts(entries) == GoldCounts(2, 1, 3, 2)


def test_a_label_counts_once_no_earlier_request_for_a_gold_item_is_open() -> None:
    entries = [gold(1, "cat"), gold(3, "dog"), gold(4, "cat")]
    assert counts(entries, open_gold(2)) == GoldCounts(1, 0, 0, 0)
    assert counts(entries, open_gold(5)) == GoldCounts(3, 1, 0, 0)


def test_a_further_label_of_a_gold_item_does_not_count() -> None:
    first = gold(1, "cat")
    second = msgspec.structs.replace(gold(2, "dog"), fact=first.fact, item=first.position)
    assert counts([first, second]) == GoldCounts(1, 0, 0, 0)


def revised(first: OutcomeEntry, label: str, number: int) -> OutcomeEntry:
    """A correction of a label; a retraction, if the label is empty."""
    given = LabelFact(label, float(number), "ana")
    return msgspec.structs.replace(first, position=(number, 2), label=given)


def test_a_wrong_label_counts_as_wrong_whatever_corrects_or_retracts_it_later() -> None:
    entries = [gold(1, "dog"), gold(2, "dog"), gold(3, "cat", true="dog"), gold(4, "cat")]
    later = [revised(entries[0], "cat", 5), revised(entries[1], "", 6), revised(entries[2], "dog", 7)]
    assert counts([*entries, *later]) == counts(entries) == GoldCounts(3, 2, 1, 1)


def test_a_right_label_counts_as_wrong_from_a_wrong_correction_on() -> None:
    entries = [gold(1, "cat"), gold(2, "cat")]
    wrong = revised(entries[0], "dog", 3)
    assert counts([*entries, wrong]) == GoldCounts(2, 1, 0, 0)
    assert counts([*entries, wrong, revised(entries[0], "cat", 4)]) == GoldCounts(2, 1, 0, 0)


def test_a_right_label_that_is_retracted_counts_as_it_was_and_a_further_one_does_not_replace_it() -> None:
    first = gold(1, "cat")
    second = msgspec.structs.replace(gold(2, "dog"), fact=first.fact, item=first.position)
    later = [revised(first, "", 3), revised(second, "bird", 4)]
    assert counts([first, second, *later]) == GoldCounts(1, 0, 0, 0)


def test_a_gold_item_that_is_skipped_counts_as_wrong_also_if_it_is_answered_later() -> None:
    skipped = msgspec.structs.replace(gold(1, ""), label=LabelFact("", 1.0, "ana", unanswered=SKIPPED))
    assert counts([skipped, gold(2, "cat")]) == GoldCounts(2, 1, 0, 0)
    assert counts([skipped, gold(2, "cat"), revised(skipped, "cat", 3)]) == GoldCounts(2, 1, 0, 0)


def evidence_of(
    entries: list[OutcomeEntry], before: dict[str, GroupingEvidence] | None = None
) -> dict[str, GroupingEvidence]:
    ledger = ledger_of(entries)
    return model_evidence(
        settings=LEARNING,
        index=index_of(ledger),
        ledger=ledger,
        open_requests={},
        reference=None,
        checkpoint=None,
        before=before or {},
        wrong_labels=allowed_errors(LEARNING, gold_counts(ledger.gold_labels, {}, None)),
    )


def test_evidence_against_the_threshold_begins_with_the_bound() -> None:
    usual = [outcome(number, right=number % 2 == 0) for number in range(1_000, 1_060)]
    without = evidence_of(usual)
    assert np.isnan(without["region"].log_e["below_threshold"]).all()
    labelled = [*(gold(number, "cat") for number in range(1, 400)), *usual]
    found = evidence_of(labelled, before=without)
    assert np.nanmin(found["region"].log_e["below_threshold"]) > 0
    for kind, values in evidence_of(labelled)["region"].log_e.items():
        np.testing.assert_array_equal(found["region"].log_e[kind], values)


def test_gold_labels_count_when_the_stream_has_trimmed_them() -> None:
    entries = [
        each
        for number in range(1, 61)
        for each in (outcome(number, right=True), gold(number, "dog" if number % 10 == 0 else "cat"))
    ]
    ledger = ledger_of(entries)
    checkpoint = due_checkpoint(
        settings=LEARNING,
        index=index_of(ledger),
        ledger=ledger,
        open_requests={},
        reference=None,
        checkpoint=None,
        outcome_limit=LIMIT,
    )
    assert checkpoint is not None
    assert 0 < checkpoint.gold[0] < 60
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(checkpoint), type=EvidenceCheckpoint)
    everything = gold_counts(ledger.gold_labels, {}, stored)
    ledger.forget((40, 0))
    assert gold_counts(ledger.gold_labels, {}, stored) == everything == GoldCounts(60, 6, 0, 0)


def checkpoint_of(
    ledger: OutcomeLedger, before: EvidenceCheckpoint | None, reference: ReferenceWindow | None
) -> EvidenceCheckpoint:
    found = due_checkpoint(
        settings=LEARNING,
        index=index_of(ledger),
        ledger=ledger,
        open_requests={},
        reference=reference,
        checkpoint=before,
        outcome_limit=LIMIT,
    )
    assert found is not None
    return found


def test_gold_labels_count_once_whatever_reference_is_set_after_the_stream_has_trimmed_them() -> None:
    entries = [
        each
        for number in range(1, 61)
        for each in (outcome(number, right=True), gold(number, "dog" if number % 10 == 0 else "cat"))
    ]
    ledger = ledger_of(entries)
    first = checkpoint_of(ledger, None, None)
    ledger.forget((40, 0))
    new = ReferenceWindow(50.0, 55.0, 60.0)
    assert gold_counts(ledger.gold_labels, {}, first) == GoldCounts(60, 6, 0, 0)
    second = checkpoint_of(ledger, first, new)
    assert second.position >= first.position
    assert gold_counts(ledger.gold_labels, {}, second) == GoldCounts(60, 6, 0, 0)


def test_a_checkpoint_waits_for_open_requests_for_gold_items() -> None:
    entries = [outcome(number, right=True) for number in range(1, 61)]

    def position(opened: dict[str, OpenRequest]) -> int:
        ledger = ledger_of(entries)
        found = due_checkpoint(
            settings=LEARNING,
            index=index_of(ledger),
            ledger=ledger,
            open_requests=opened,
            reference=None,
            checkpoint=None,
            outcome_limit=LIMIT,
        )
        return 0 if found is None else found.position

    assert 0 < position(open_gold(5)) < position({})


def test_a_checkpoint_from_before_gold_items_has_none() -> None:
    older = msgspec.msgpack.encode([7, None, [], []])
    assert msgspec.msgpack.decode(older, type=EvidenceCheckpoint).gold == (0, 0, 0, 0)
