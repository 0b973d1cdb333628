"""Labels of items that were predicted again, and numbers of groups, once the stream is trimmed."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from rate_checkpoint_examples import REGIONS, SPACE, Entry, asking, outcome, proof, trimmed
from test_rate_checkpoint_settings import due as due_of
from test_rate_checkpoint_settings import proof as proof_of

from service.config.assessments import ErrorRateSettings
from service.domain.request_order import request_place
from service.monitoring.evidence_base import Checkpoint, arrival_order
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.rate_base import RateBase, arrival_numbers
from service.store.outcome_entries import OutcomeEntry, SharedDraw
from service.store.references import ReferenceWindow


def predicted_again(of: OutcomeEntry, number: int) -> SharedDraw:
    """A draw of a later prediction of the same item, for the same group: an outcome with the same label."""
    fact = msgspec.structs.replace(of.fact, predicted_at=float(number), requested_at=float(number))
    return SharedDraw((number, 0), of.position, "fair", fact)


def stream(count: int, gap: int) -> list[Entry]:
    """Every second label is that of an item which was labelled so many labels before."""
    outcomes = {number: outcome(number, REGIONS[number // 3 % 3]) for number in range(0, count, 2)}
    return [
        predicted_again(outcomes[number - gap], number)
        if number % 2 and number > gap
        else outcomes.get(number) or outcome(number, REGIONS[number // 3 % 3])
        for number in range(count)
    ]


@pytest.mark.parametrize("gap", [3, 25])
def test_labels_of_items_that_are_predicted_again_still_count_when_the_first_outcome_is_trimmed(
    gap: int,
) -> None:
    entries = stream(150, gap)
    kept, checkpoint = trimmed(entries)
    every = OutcomeLedger(SPACE)
    every.fold(entries)
    every.place()
    np.testing.assert_allclose(proof(kept, checkpoint).log_e, proof(every).log_e)


def test_groups_keep_the_number_of_their_arrival_if_a_reference_is_set() -> None:
    entries = [outcome(number, "south" if number < 20 else "north") for number in range(60)]
    asked = asking(fair={})
    first = due_of(entries[:45], asked, regions=["north", "south"])
    numbers = arrival_numbers(["north", "south"], first.rates[0].arrivals)
    fair = asked.models["m"].assessments["fair"]
    assert isinstance(fair, ErrorRateSettings)
    reference = ReferenceWindow(5.0, 20.0, 21.0)
    base = RateBase.of(Checkpoint(first, SPACE, reference), "fair", fair, samples_traffic=False)
    # The stream has labels of the north alone; those of the south were trimmed.
    left = {"north": request_place(30.0, "request-30")}
    assert arrival_numbers(["north", "south"], arrival_order(base.arrived, left)).tolist() == numbers.tolist()


def test_a_label_that_a_checkpoint_knows_does_not_count_again_in_a_census() -> None:
    """The census was configured before, was not when the checkpoint was written, and is again."""
    asked, entries = asking(fair={}), [outcome(number, "north") for number in range(45)]
    first = due_of(entries, asked, regions=["north"])
    known = [each for each in entries if request_place(each.fact.requested_at, "") < first.position]
    ledger = OutcomeLedger(SPACE, unrequested="census")
    ledger.fold([in_census(each) for each in known])
    ledger.fold(known)
    ledger.place()
    once = proof_of(ledger, asked, regions=["north"]).log_e
    np.testing.assert_allclose(proof_of(ledger, asked, first, regions=["north"]).log_e, once)


def in_census(of: OutcomeEntry) -> OutcomeEntry:
    """The same prediction, which waited for an unrequested label, too."""
    fact = msgspec.structs.replace(
        of.fact, request_id="", estimator=b"", grouping="", group="", definition=b""
    )
    position = (of.position[0], 1)
    return msgspec.structs.replace(of, position=position, of=position, assessment="", fact=fact)


@pytest.mark.parametrize("gap", [3, 18, 27, 32])
def test_labels_drawn_by_another_grouping_first_count_when_they_are_trimmed(gap: int) -> None:
    """Every sixth label was requested for another grouping, and is drawn for this one so much later."""
    entries: list[Entry] = []
    others: dict[int, OutcomeEntry] = {}
    for number in range(180):
        made = outcome(number, REGIONS[number // 3 % 3])
        if number % 6 == 0:
            fact = msgspec.structs.replace(
                made.fact, grouping="all", group="all", definition=b"", estimator=b""
            )
            others[number] = msgspec.structs.replace(made, fact=fact)
        entries.append(others.get(number, made))
        if number - gap in others:
            drawn = outcome(number - gap, REGIONS[(number - gap) // 3 % 3])
            fact = msgspec.structs.replace(drawn.fact, requested_at=number + 0.5)
            entries.append(SharedDraw((number, 1), drawn.position, "fair", fact))
    kept, checkpoint = trimmed(entries)
    every = OutcomeLedger(SPACE)
    every.fold(entries)
    every.place()
    np.testing.assert_allclose(proof(kept, checkpoint).log_e, proof(every).log_e)
