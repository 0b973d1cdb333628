"""The stream keeps entries, not outcomes: further draws and corrections take places of labels."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from rate_checkpoint_examples import REGIONS, SPACE, Entry, outcome, proof, trimmed

from service.monitoring.outcome_table import OutcomeLedger
from service.store.outcome_entries import OutcomeEntry, SharedDraw


def drawn_again(of: OutcomeEntry, number: int) -> SharedDraw:
    """A further draw of the same prediction, for an assessment of another grouping."""
    fact = msgspec.structs.replace(
        of.fact, grouping="all", group="all", definition=b"", estimator=b"", requested_at=number + 0.5
    )
    return SharedDraw((of.position[0], 1), of.position, "ask", fact)


def corrected(of: OutcomeEntry, number: int) -> OutcomeEntry:  # noqa: ARG001 - as the other
    """A correction of it, which says the same class."""
    return msgspec.structs.replace(of, position=(of.position[0], 1))


@pytest.mark.parametrize("further", [drawn_again, corrected])
def test_evidence_is_that_of_all_labels_if_a_third_of_the_entries_are_no_outcomes(
    further: Callable[[OutcomeEntry, int], Entry],
) -> None:
    outcomes = [outcome(number, REGIONS[number // 3 % 3]) for number in range(150)]
    entries: list[Entry] = []
    for number, each in enumerate(outcomes):
        entries.append(each)
        if number % 2:
            entries.append(further(each, number))
    kept, checkpoint = trimmed(entries)
    every = OutcomeLedger(SPACE)
    every.fold(entries)
    every.place()
    np.testing.assert_allclose(proof(kept, checkpoint).log_e, proof(every).log_e)
