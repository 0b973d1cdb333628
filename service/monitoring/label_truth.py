"""Labels of people who err: whether predictions are correct is imputed several times (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.monitoring.item_labels import Person
from service.monitoring.outcome_aggregates import NO_CLASS
from service.statistics.annotator_prior import AnnotatorPrior
from service.statistics.rival_classes import Rivals
from service.statistics.strata_accuracy import CurvedAccuracy
from service.statistics.truth_chain import Answers, State, TruthChain

IMPUTATIONS: Final = 20
_WARM_UP = 300  # sweeps
_BETWEEN, _MOST_BETWEEN, _WORK = 20, 30, 15_000  # sweeps, and items of these sweeps: few items are quick
LEARNED_FROM: Final = 5_000  # items, the newest ones
_PAIR: Final = 2
_PARTS: Final = 2  # of a group: predictions with lower and with higher scores
_LEAST_SCORE: Final = 1e-4  # from 0 and 1


class ItemGroups(Protocol):
    """Groups of items, of which those of one group have accuracies that are alike."""

    @property
    def names(self) -> Sequence[str]:
        """Of all groups [G]."""

    @property
    def numbers(self) -> Indices:
        """Group of every label cell; of cells without one, the number of groups [cells]."""


@dataclass(frozen=True)
class LabelledItems:
    """Items [N] with all their labels [M], which are sorted by item."""

    rows: Indices  # row of the outcome [N]
    cells: Indices  # label cell [N]
    predicted: Indices  # index of the predicted class [N]
    scores: Floats  # of the predicted class [N]
    items: Indices  # item of every label [M]
    people: Indices  # code of who gave it [M]
    classes: Indices  # index of its class [M]
    as_given: Indices  # the same before any correction [M]
    delays: Floats  # from the first issue of its request to the label, seconds [M]
    original: Flags  # whether labels were requested for this prediction, not for an earlier one [N]
    # class that another classifier predicts and this one does not, -1 where there is none; None if nobody
    # compares them [N]
    rivals: Indices | None = None

    @property
    def agrees(self) -> Flags:
        """Whether a label is the predicted class [M]."""
        agrees: Flags = self.classes == self.predicted[self.items]
        return agrees

    def newest(self, count: int) -> LabelledItems:
        """The last items."""
        return self.part(np.arange(len(self.rows)) >= len(self.rows) - count)

    def part(self, which: Flags) -> LabelledItems:
        """Some items [N] with their labels."""
        kept, numbers = which[self.items], np.cumsum(which) - 1
        return LabelledItems(
            rows=self.rows[which],
            cells=self.cells[which],
            predicted=self.predicted[which],
            scores=self.scores[which],
            items=numbers[self.items[kept]],
            people=self.people[kept],
            classes=self.classes[kept],
            as_given=self.as_given[kept],
            delays=self.delays[kept],
            original=self.original[which],
            rivals=None if self.rivals is None else self.rivals[which],
        )


@dataclass(frozen=True)
class KnownItems:
    """Gold items [N] with all their labels [M]."""

    labelled: LabelledItems
    true_classes: Indices  # index of the true class [N]
    people: Sequence[Person]  # who labelled, in the order of their codes

    @property
    def is_correct(self) -> Flags:
        """Whether the prediction is correct [N]."""
        correct: Flags = self.labelled.predicted == self.true_classes
        return correct

    @property
    def is_first(self) -> Flags:
        """Whether a label is the first one of its item [M]: others are requested where that one differs."""
        return np.diff(self.labelled.items, prepend=-1) > 0

    @property
    def is_wrong(self) -> Flags:
        """Whether a label is wrong [M]."""
        wrong: Flags = self.labelled.classes != self.true_classes[self.labelled.items]
        return wrong

    def newest(self, count: int) -> KnownItems:
        """The last items."""
        return replace(self, labelled=self.labelled.newest(count), true_classes=self.true_classes[-count:])

    def beside(self, people: Sequence[Person]) -> KnownItems:
        """The same, where people have the codes that they have in `people`, and others the next ones."""
        codes = {person: code for code, person in enumerate(dict.fromkeys((*people, *self.people)))}
        own = np.array([codes[person] for person in self.people], np.intp)
        return replace(
            self, labelled=replace(self.labelled, people=own[self.labelled.people]), people=[*codes]
        )


@dataclass(frozen=True)
class LearnedTruth:
    """Draws of what labels leave open, from which correctness is imputed.

    Accuracies are of the groups of groupings, each in two parts by score.
    """

    states: Sequence[State]  # equally probable
    people: Sequence[Person]  # of the abilities in every state
    labels: Ints  # labels of every person that this was learned from [people]
    reliability: Floats  # draws of the share of items about which every person is right [draws, people]
    groupings: Sequence[str]  # whose groups, or their intersections, these are
    groups: Sequence[str]  # names, in the order of accuracies
    middle: float  # score between the two parts
    accuracy: CurvedAccuracy  # of groups and parts, and of items without a group
    classes: int  # number of the model's classes

    def imputations(
        self, items: LabelledItems, people: Sequence[Person], groups: ItemGroups
    ) -> Iterator[tuple[Flags, Indices]]:
        """Whether every prediction is correct, and its true class [N], once for every state.

        The true class of an incorrect one is that of one of its labels, or not known (`NO_CLASS`) if all
        labels are the predicted class; or it is that of a rival, as often as labels support it. Whether items
        are correct is imputed alike when further ones come behind them.
        """
        codes = {person: code for code, person in enumerate(self.people)}
        of_people = np.array([codes.get(person, -1) for person in people], np.intp)
        numbers = {name: number for number, name in enumerate(self.groups)}
        of_groups = np.array([numbers.get(name, -1) for name in groups.names] + [len(numbers)], np.intp)
        accuracy = self._accuracy_of(of_groups)
        strata = _strata(items, groups, self.middle)
        answers = _answers(items, strata, accuracy, people=len(people), classes=self.classes)
        has_rivals = bool(self.states[0].rivals.size)
        if not has_rivals:
            answers = replace(answers, rivals=None)
        for number, state in enumerate(self.states):
            rng = np.random.default_rng(number)
            # Of the items first, so that they do not depend on what comes later.
            uniform, chosen = rng.random((len(items.rows), 2)).T
            shared, deviations = state.shared, np.append(state.accuracies.groups, 0.0)
            own = np.vstack([state.accuracies.own.reshape(-1, _PARTS), np.zeros(_PARTS)])[of_groups]
            strangers = shared.ability + np.exp(shared.log_unlike) * rng.standard_t(4, len(people))
            fitted = replace(
                state,
                abilities=np.where(of_people >= 0, np.append(state.abilities, 0.0)[of_people], strangers),
                rivals=np.append(state.rivals, state.rivals.mean())[of_groups]
                if has_rivals
                else state.rivals,
                accuracies=accuracy.at(state.accuracies.curve, deviations[of_groups], own.ravel()),
            )
            chain = TruthChain(answers, AnnotatorPrior(), rng, start=fitted)
            probability = chain.probability_correct()
            correct, other = uniform < probability, _other_class(items, ~items.agrees, chosen)
            if items.rivals is not None:
                other = np.where(items.rivals >= 0, items.rivals, other)
            if answers.rivals is not None:
                # From 0 to 1 for incorrect predictions, and uniform again.
                left = (uniform - probability) / np.maximum(1 - probability, np.finfo(float).tiny)
                rival, likely = chain.probability_of_truths()[:2]
                of_others = np.where(left < rival + likely, answers.rivals.likely, NO_CLASS)
                other = np.where(answers.rivals.has_rival & (left >= rival), of_others, other)
            other[(other < 0) | (other >= self.classes)] = NO_CLASS  # the model has it no more
            yield correct, np.where(correct, items.predicted, other)

    def _accuracy_of(self, groups: Indices) -> CurvedAccuracy:
        """The same of other groups, in the order of these numbers; -1 is one that is not known."""
        known = self.accuracy
        scores = np.vstack([known.scores.reshape(-1, _PARTS), np.full(_PARTS, known.centre)])[groups]
        return CurvedAccuracy(scores.ravel(), np.arange(scores.size) // _PARTS, len(groups), known.centre)


def learn_truth(
    items: LabelledItems,
    people: Sequence[Person],
    groups: ItemGroups,
    *,
    groupings: Sequence[str],
    classes: int,
    rng: np.random.Generator,
    reliability: float | None = None,
    gold: KnownItems | None = None,
) -> LearnedTruth:
    """Learn from at least one item, and from the newest `LEARNED_FROM` if there are more; takes seconds.

    Before any label, people are expected to be right in this share of items (`reliability`). Gold items say
    how often the same people are right, and nothing of the model's accuracy.
    """
    # People label an item once, however often it is predicted.
    items = items.part(items.original).newest(LEARNED_FROM)
    of_labels = items.people
    if gold is not None:
        gold = gold.beside(people)
        people, of_labels = gold.people, np.append(of_labels, gold.labelled.people)
    known, codes = np.unique(of_labels, return_inverse=True)
    people = [people[code] for code in known.tolist()]
    items, of_gold = replace(items, people=codes[: len(items.people)]), codes[len(items.people) :]
    middle, mean = float(np.median(items.scores)), items.scores.mean()
    strata, count = _strata(items, groups, middle), _PARTS * (len(groups.names) + 1)
    # As if every stratum had one more item, with the mean score.
    sums = np.bincount(strata, items.scores, count) + mean
    scores = _logit(sums / (np.bincount(strata, minlength=count) + 1))
    accuracy = CurvedAccuracy(scores, np.arange(count) // _PARTS, count // _PARTS, float(_logit(mean)))
    answers = _answers(items, strata, accuracy, people=len(people), classes=classes)
    if gold is not None:
        answers = replace(
            answers,
            items=np.append(answers.items, len(items.rows) + gold.labelled.items),
            annotators=np.append(answers.annotators, of_gold),
            agrees=np.append(answers.agrees, gold.labelled.agrees),
            gold=gold.is_correct,
        )
    prior = AnnotatorPrior()
    chain = TruthChain(answers, prior if reliability is None else prior.expecting(reliability, classes), rng)
    for _ in range(_WARM_UP):
        chain.sweep()
        chain.adapt()
    states, shares_right = [], []
    between = min(max(_WORK // len(items.rows), _BETWEEN), _MOST_BETWEEN)
    for _ in range(IMPUTATIONS):
        for _ in range(between):
            chain.sweep()
            shares_right.append(chain.reliability())
        states.append(chain.state)
    labels = np.bincount(codes, minlength=len(people))
    return LearnedTruth(
        states, people, labels, np.array(shares_right), groupings, groups.names, middle, accuracy, classes
    )


def _strata(items: LabelledItems, groups: ItemGroups, middle: float) -> Indices:
    """Stratum of every item: group and part; items without a group are one group more."""
    return _PARTS * groups.numbers[items.cells] + (items.scores >= middle)


def _answers(
    items: LabelledItems, strata: Indices, accuracy: CurvedAccuracy, *, people: int, classes: int
) -> Answers:
    rivals = None
    if items.rivals is not None and classes > _PAIR:
        rivals = Rivals.of(
            items.items,
            items.classes,
            predicted=items.predicted,
            rivals=items.rivals,
            groups=strata // _PARTS,
            group_count=accuracy.group_count,
        )
    found = Answers(items.items, items.people, items.agrees, strata, people, classes, accuracy)
    return replace(found, rivals=rivals)


def _logit(scores: Floats) -> Floats:
    return np.asarray(special.logit(np.clip(scores, _LEAST_SCORE, 1 - _LEAST_SCORE)), np.float64)


def _other_class(items: LabelledItems, candidates: Flags, uniform: Floats) -> Indices:
    """The class of a random label of some candidates [M] by item [N]; `NO_CLASS` without one."""
    others = np.flatnonzero(candidates)
    counts = np.bincount(items.items[others], minlength=len(items.rows))
    starts = np.cumsum(counts) - counts
    places = np.minimum(starts + (uniform * counts).astype(np.intp), max(len(others) - 1, 0))
    classes = items.classes[others][places] if others.size else np.full(len(places), NO_CLASS)
    return np.where(counts > 0, classes, NO_CLASS)
