"""`credence replay --task challenge`: labels until it is known which of two classifiers is better."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from service.domain.arrays import Flags, Indices
from service.domain.errors import RecordingError
from service.replay.recording import Recording, same_items
from service.replay.tables import Cell, Table
from service.replay.workers import Workers
from service.statistics.challenge import ChallengeBeliefs, PairedLabels

AIMED: Final = 0.8
"""Share of labels that go to disagreements, as in the service."""

_PAIR = 2
WAYS: Final = ("random", "aimed")


class Decided(NamedTuple):
    """Labels until a rule named a winner, all of them if it never did; and whom.

    That is 1 for the challenger, -1 for the champion and 0 for nobody.
    """

    labels: int
    named: int


@dataclass(frozen=True)
class Contest:
    """Two classifiers of the same items."""

    champion: Flags  # whether it is right [N]
    challenger: Flags  # whether it is right [N]
    differ: Flags  # whether they predict different classes [N]
    margin: float  # difference of accuracies that does not matter
    confidence: float  # of the posterior; 1 less it is the rate at which evidence of either side may err

    @property
    def difference(self) -> float:
        """Accuracy of the challenger less that of the champion, over all items."""
        return float(self.challenger.mean() - self.champion.mean())

    @property
    def winner(self) -> int:
        """1 for the challenger, -1 for the champion, 0 where they differ by the margin at most."""
        return int(np.sign(self.difference)) if abs(self.difference) > self.margin else 0

    def run(self, way: str, rng: np.random.Generator) -> tuple[Decided, Decided]:
        """What posterior and evidence decide, looking after every label of a disagreement.

        Labels are of `random` items, or `aimed` at disagreements; either without repetition.
        """
        items = rng.permutation(len(self.differ))
        asked = items[self.differ[items]]
        count = np.arange(1, len(asked) + 1)
        if way == "random":
            labels = np.flatnonzero(self.differ[items]) + 1
        else:
            labels = count + np.cumsum(rng.geometric(AIMED, len(asked)) - 1)
        won, lost = self.challenger[asked].cumsum(), self.champion[asked].cumsum()
        paired = PairedLabels(*(each.astype(np.float64) for each in (won, lost, count - won - lost)))
        beliefs = ChallengeBeliefs(np.full(len(asked), self.differ.mean()), paired)
        margin, enough = self.margin, np.log(2 / (1 - self.confidence))
        return (
            _decided(
                labels, beliefs.better(margin) >= self.confidence, beliefs.worse(margin) >= self.confidence
            ),
            _decided(labels, beliefs.log_e_better(margin) >= enough, beliefs.log_e_worse(margin) >= enough),
        )


def challenge_tables(
    recordings: Sequence[Recording], options: argparse.Namespace, crew: Workers
) -> list[Table]:
    """Replay champion and challenger, recorded in this order, and tell what was found.

    Raises:
        RecordingError: an option or a recording cannot be used for this task.
    """
    if len(recordings) != _PAIR:
        raise RecordingError(
            "challenge", f"it compares two recordings, the champion's first; there are {len(recordings)}"
        )
    if options.plots:
        raise RecordingError("--plots", "the task challenge draws nothing; leave it out")
    same_items(recordings)
    first, second = recordings
    contest = Contest(
        champion=first.correct,
        challenger=second.correct,
        differ=first.predicted != second.predicted,
        margin=options.region,
        confidence=options.interval,
    )
    if not contest.differ.any():
        raise RecordingError(second.name, f"it predicts what {first.name} does, throughout")
    numbers = [(contest, options.seed, run) for run in range(options.runs)]
    # By way, rule and figure.
    found = np.array(crew.each(run_once, numbers, f"{first.name}, then {second.name}")).transpose(1, 2, 3, 0)
    columns = tuple(
        f"{figure}, by {rule}"
        for rule in ("posterior", "evidence")
        for figure in ("labels", "decided %", "wrong %")
    )
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (way, tuple(figure for labels, named in rules for figure in _figures(labels, named, contest.winner)))
        for way, rules in zip(WAYS, found, strict=True)
    ]
    said = {1: "The challenger is better", -1: "The champion is better", 0: "Neither is better"}
    by = f"by {100 * contest.difference:+.2f} points, margin {100 * contest.margin:g}"
    share = f"{100 * contest.differ.mean():.1f}% of {len(contest.differ):,} items"
    notes = (
        f"{said[contest.winner]}: {by}; they disagree on {share}.",
        "Labels until a winner is named, looking after each; else, until no disagreement is left.",
        f"{options.runs} runs, seed {options.seed}.",
    )
    return [Table(f"{second.name} challenges {first.name}", "items", columns, rows, notes=notes)]


def run_once(contest: Contest, seed: int, run: int) -> list[tuple[Decided, Decided]]:
    """One run in each of the ways: a function of its arguments alone, whoever runs it."""
    return [contest.run(way, np.random.default_rng([seed, run, place])) for place, way in enumerate(WAYS)]


def _decided(labels: Indices, better: Flags, worse: Flags) -> Decided:
    named = better | worse
    if not named.any():
        return Decided(int(labels[-1]), 0)
    first = int(named.argmax())
    return Decided(int(labels[first]), 1 if better[first] else -1)


def _figures(labels: Indices, named: Indices, winner: int) -> tuple[float, float, float]:
    decided = named != 0
    return (
        float(labels.mean()),
        100 * float(decided.mean()),
        100 * float((decided & (named != winner)).mean()),
    )
