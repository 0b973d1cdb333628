"""Predictions that wait for unrequested labels, in words and numbers."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from rich.console import Console
from snapshots import NOW, snapshot, waiting

from service.app.status_command import status_view
from service.monitoring.absent_learning import LearnedAccuracies
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.models import model_state
from service.serving.documents.waiting import WaitingState
from service.statistics.absent_answers import AccuracyDraws

DRAWS = AccuracyDraws(np.zeros(1), np.zeros(1), [], [], np.zeros((1, 0)), 0.0)


@cache
def taken() -> ModelSnapshot:
    return snapshot()


def state(**fields: Any) -> WaitingState:
    found = model_state(
        replace(taken(), waiting=waiting(items=1_234, **fields)), now=NOW, tick_seconds=5.0
    ).waiting
    assert found is not None
    return found


def test_the_sentence_says_what_waits_since_when_and_what_was_not_joined() -> None:
    assert state(dropped=1).sentence == (
        "1,234 predictions wait for unrequested labels, the oldest since 2027-01-15T08:00:00Z. "
        "50.0% of the predictions are kept. Dropped hours of predictions: 1. "
        "Half of the labels came within 60 s, 99% within 2 h. "
        "Labels of the last day that were not joined: 2 too late."
    )


def test_what_is_as_it_should_be_is_not_said() -> None:
    sentence = state(level=0, oldest=None).sentence
    assert sentence.startswith("1,234 predictions wait for unrequested labels. Half of")


def test_what_items_without_a_label_are_imputed_from_is_said() -> None:
    learned = LearnedAccuracies(DRAWS, [], False, False, False, labels=480, at=NOW)
    found = model_state(
        replace(taken(), waiting=replace(waiting(), learned=learned)), now=NOW, tick_seconds=5.0
    ).waiting
    assert found is not None
    assert (found.imputed_from_labels, found.imputed_from_at) == (480, NOW)
    assert found.sentence.endswith("imputed from 480 answered requests, as of 2027-01-15T08:00:00Z.")


def test_delays_are_null_before_the_first_label() -> None:
    without = replace(waiting(), delays={}, not_joined={})
    found = model_state(replace(taken(), waiting=without), now=NOW, tick_seconds=5.0).waiting
    assert found is not None
    assert (found.median_delay_seconds, found.most_delay_seconds, found.not_joined) == (None, None, {})


def test_a_model_without_unrequested_labels_says_nothing_of_them() -> None:
    assert model_state(taken(), now=NOW, tick_seconds=5.0).waiting is None


def test_the_terminal_says_it_too() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(status_view([replace(taken(), waiting=waiting(items=7))], now=NOW, tick_seconds=5.0))
    assert "7 predictions wait for unrequested labels" in console.export_text()
