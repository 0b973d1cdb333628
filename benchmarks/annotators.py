"""Do intervals of the accuracy hold if people err? Simulated people, items and models of many kinds.

Items have one to three answers, as in `credence replay --task annotators`. docs/annotators.md explains the
figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Floats, Ints
from service.replay.annotators_command import COLUMNS, OF_MISSING, Summary, measured, summary
from service.replay.crowd import Crowd
from service.replay.tables import Cell, Table, print_tables

MASS: Final = 0.95


@dataclass(frozen=True)
class World:
    """A model, its items, and people; what is not said is usual."""

    accuracy: float = 0.9
    classes: int = 2
    people: int = 30
    ability: float = 3.0  # 3 knows 91% of items of mean difficulty, and guesses the others
    unlike: float = 0.5  # standard deviation of abilities
    difficulty: float = 0.7  # standard deviation of the log of difficulties
    harder: float = 1.0  # by so much are wrongly predicted items more difficult
    coin_flips: float = 0.0  # share of items that nobody knows
    spammers: float = 0.0  # share of people who guess
    lazy: float = 0.0  # share of people who always answer class 0
    adversaries: float = 0.0  # share of people who answer wrongly what they know
    confused: float = 0.0  # share of wrong answers that are the next class

    def crowd(self, items: int, rng: np.random.Generator) -> Crowd:
        """Answers of everybody about every item."""
        truth = rng.integers(0, self.classes, items)
        correct = rng.random(items) < self.accuracy
        predicted = np.where(correct, truth, self._another(truth, rng))
        ease = np.exp(-self.difficulty * rng.normal(size=items) - np.where(correct, 0.0, self.harder))
        answers = np.stack([self._answers(place, truth, ease, rng) for place in range(self.people)], axis=1)
        return Crowd("simulated", predicted, self._shared_coin_flips(answers, rng), truth)

    def _answers(self, place: int, truth: Ints, ease: Floats, rng: np.random.Generator) -> Ints:
        """Of the person at this place among all."""
        share = (place + 0.5) / self.people
        ability = self.ability + self.unlike * rng.normal()
        if share < self.lazy:
            return np.zeros_like(truth)
        if share < self.lazy + self.spammers:
            ability = 0.0
        knows = np.tanh(0.5 * ability * ease)
        is_adversary = share > 1 - self.adversaries
        known_answer = self._another(truth, rng) if is_adversary else truth
        guess = rng.integers(0, self.classes, len(truth))
        guess = np.where(rng.random(len(truth)) < self.confused, (truth + 1) % self.classes, guess)
        return np.where(rng.random(len(truth)) < knows, known_answer, guess)

    def _shared_coin_flips(self, answers: Ints, rng: np.random.Generator) -> Ints:
        nobody = rng.random(len(answers)) < self.coin_flips
        return np.where(nobody[:, None], rng.integers(0, self.classes, answers.shape), answers)

    def _another(self, classes: Ints, rng: np.random.Generator) -> Ints:
        others: Ints = (classes + rng.integers(1, self.classes, len(classes))) % self.classes
        return others


WORLDS: Final[Mapping[str, World]] = {
    "two classes, 30 people": World(),
    "10 people": World(people=10),
    "200 people": World(people=200),
    "5 classes": World(classes=5),
    "20 classes, difficult items": World(classes=20, difficulty=1.0, harder=1.5),
    "accuracy .6": World(accuracy=0.6, classes=3),
    "accuracy .99": World(accuracy=0.99),
    "excellent people": World(ability=6.0, harder=0.5),
    "poor people": World(ability=2.0),
    "a tenth of the items known to nobody": World(coin_flips=0.1),
    "wrong answers mostly the same class": World(classes=5, confused=0.8),
    "a fifth of the people guess": World(spammers=0.2),
    "a fifth guess, 20 classes": World(classes=20, spammers=0.2),
    "a tenth always answer one class": World(classes=3, lazy=0.1),
    "a tenth answer wrongly on purpose": World(adversaries=0.1),
}


def held(world: World, items: int, runs: int, seed: int = 0) -> Summary:
    """Over many runs, each with people and items of its own."""
    found = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        found.append(measured(world.crowd(items, rng), items, MASS, rng))
    return summary(found, world.accuracy)


def table(items: int, runs: int) -> Table:
    """Of all worlds."""
    columns = tuple(name for name in COLUMNS if name not in OF_MISSING)
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (name, held(world, items, runs).cells(columns)) for name, world in WORLDS.items()
    ]
    title = f"{MASS:.0%} intervals of the accuracy from {items} items; {runs} runs"
    return Table(title, "world", columns, rows)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure intervals of the accuracy if people err.")
    parser.add_argument("--items", type=int, default=300, help="of every run")
    parser.add_argument("--runs", type=int, default=100, help="of every world")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    print_tables([table(options.items, options.runs)], as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
