"""A study of changing inputs: many streams under every change, watched without labels and with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.studies.inputs_items import Change, Items
from benchmarks.studies.inputs_labelled import WAYS, Labelled, LabelStream, Way
from benchmarks.studies.inputs_watched import Stream, Watched, watch
from service.replay.workers import Workers, batches

_RUNS_AT_ONCE = 20
_SHORTEST = 4


@dataclass(frozen=True)
class Seen:
    """What was seen of all runs under one change.

    Attributes:
        watched: without labels, run by run [R].
        labelled: with labels, by the way they were asked.
    """

    watched: list[Watched]
    labelled: Mapping[Way, Labelled]

    @classmethod
    def joined(cls, parts: list[Seen]) -> Seen:
        """Runs of several batches."""
        return cls(
            [each for part in parts for each in part.watched],
            {way: Labelled.joined([part.labelled[way] for part in parts]) for way in parts[0].labelled},
        )


@dataclass(frozen=True)
class InputsStudy:
    """The question, asked of one model.

    Attributes:
        items: that traffic is of.
        groups: how many share the traffic.
        predictions: of all groups, from one label to the next.
        alpha: expected share of false ones among groups of which evidence tells.
        runs: streams under every change.
        seed: of all chance.
    """

    items: Items
    groups: int
    predictions: int
    alpha: float
    runs: int
    seed: int

    def run(self, change: Change, workers: Workers, name: str = "") -> Seen:
        """All runs under one change."""
        parts = batches(self.runs, _RUNS_AT_ONCE)
        arguments = [(self, change, *part) for part in parts]
        return Seen.joined(workers.each(run_batch, arguments, name, [runs for _, runs in parts]))


def run_batch(study: InputsStudy, change: Change, first: int, runs: int) -> Seen:
    """Some runs under one change: a function of its arguments alone, whoever runs it."""
    # Seeds of fewer than five words are the same with zeros behind them, so short names are filled up.
    key = (study.seed, *change.name.encode().ljust(_SHORTEST))
    watched = [
        watch(Stream(study.items, change, study.groups, (*key, run))) for run in range(first, first + runs)
    ]
    labels = LabelStream(study.items, change, study.groups, study.predictions, study.alpha)
    return Seen(watched, {way: labels.ask(way, watched, (*key, first)) for way in WAYS})
