"""What estimates take the items of requests for that ended without a label."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from benchmarks.several_labels import NOW, REGION, Items, World, labelled, traffic_of
from service.config.model import ModelSettings
from service.config.settings import Settings
from service.domain.groupings import ALL
from service.domain.traffic import Traffic
from service.domain.traffic_tables import tables
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.outcome_aggregates import EXPIRED_CLASS, SKIPPED_CLASS
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groupings
from service.monitoring.unanswered_requests import UnansweredRequests, unanswered_requests
from service.store.outcome_entries import OutcomeEntry
from service.store.records import EXPIRED, SKIPPED, Fact, LabelFact

TRAFFIC, ACCURACY = 20_000, 0.8
WORLD = World(classes=2, regions=1)


def settings(**unanswered: str) -> Settings:
    model = {
        "classes": ["0", "1"],
        "score_bins": 10,
        "groupings": {REGION: {"by": "attribute", "attribute": REGION}},
        "assessments": {"ask": {"budget": {"labels": 1}}},
        "unanswered": unanswered,
        "alerts": {"max_ece": 0.04},
        "forgetting": {"after_change": False},
    }
    return Settings.model_validate({"models": {"m": model}})


def entry(
    number: int, correct: bool, missing: str = "", *, score: float = ACCURACY, attempt: int = 1
) -> OutcomeEntry:
    fact = Fact(f"r{number}", f"i{number}", ALL, ALL, "0", score, {REGION: "0"}, NOW, NOW)
    label = LabelFact("", NOW, "", unanswered=missing) if missing else LabelFact("01"[not correct], NOW, "")
    return OutcomeEntry((1, number), (1, number), "ask", fact, label, attempt=attempt)


def estimated(entries: Sequence[OutcomeEntry], **unanswered: str) -> dict[str, GroupingSnapshot]:
    made, rng = settings(**unanswered), np.random.default_rng(0)
    space = made.cell_space("m")
    scores = np.full(TRAFFIC, ACCURACY)
    zeros = np.zeros(TRAFFIC, np.intp)
    truth = (rng.random(TRAFFIC) > ACCURACY).astype(np.intp)
    traffic = traffic_of(Items(zeros, scores, zeros, truth), space, WORLD)
    ledger, index = labelled(list(entries), space, traffic, may_err=False)
    return assess_groupings(
        settings=made.models["m"], index=index, probability_sums={}, ledger=ledger, at=NOW
    )


def known(entries: Sequence[OutcomeEntry], **unanswered: str) -> UnansweredRequests:
    made = settings(**unanswered)
    ledger = OutcomeLedger(made.cell_space("m"))
    ledger.fold(entries)
    ledger.place()
    model: ModelSettings = made.models["m"]
    return unanswered_requests(model, ledger)


def mixed(count: int, missing: str, share: float, seed: int = 0) -> list[OutcomeEntry]:
    """Labels of which a share is missing at random."""
    rng = np.random.default_rng(seed)
    return [
        entry(number, bool(rng.random() < ACCURACY), missing if rng.random() < share else "")
        for number in range(count)
    ]


def ends(found: dict[str, GroupingSnapshot]) -> tuple[float, float]:
    accuracy = found[ALL].accuracy
    return float(accuracy.lower[0]), float(accuracy.upper[0])


def test_the_worst_case_reaches_from_all_incorrect_to_all_correct() -> None:
    entries = mixed(4_000, SKIPPED, 0.2)
    reasons = [each.label.unanswered for each in entries]
    correct = sum(each.label.true_class == "0" for each in entries) / len(entries)
    least, most = correct, correct + sum(map(bool, reasons)) / len(entries)
    error = np.sqrt(least * (1 - least) / len(entries))
    # One-sided at both ends, as the accuracy cannot be at both (Imbens and Manski, 2004).
    lower, upper = ends(estimated(entries))
    assert lower == pytest.approx(least - 1.645 * error, abs=0.004)
    assert upper == pytest.approx(most + 1.645 * error, abs=0.004)


@pytest.mark.parametrize("missing", [SKIPPED, EXPIRED])
def test_at_random_is_as_if_nothing_had_been_requested(missing: str) -> None:
    entries = mixed(200, missing, 0.2)
    answered = [each for each in entries if not each.label.unanswered]
    found = estimated(entries, skipped="at_random", expired="at_random")
    assert ends(found) == ends(estimated(answered))


def test_missing_labels_are_not_counted_as_labels() -> None:
    entries = mixed(200, SKIPPED, 0.2)
    answered = [each for each in entries if not each.label.unanswered]
    found, plain = estimated(entries)[ALL].beliefs, estimated(answered)[ALL].beliefs
    assert (found.labels_counted, found.labels) == (plain.labels_counted, pytest.approx(plain.labels))
    assert (found.labels_correct, found.correct) == (plain.labels_correct, pytest.approx(plain.correct))


def test_a_group_without_an_error_may_still_be_perfect() -> None:
    entries = [
        entry(number, correct=True, missing=SKIPPED if number % 5 == 0 else "") for number in range(50)
    ]
    lower, upper = ends(estimated(entries))
    assert upper == 1.0
    assert lower < 0.85


def test_groups_tell_what_share_of_their_requests_has_no_label() -> None:
    entries = [
        entry(number, correct=True, missing=SKIPPED if number % 5 == 0 else "") for number in range(50)
    ]
    assert estimated(entries)[ALL].unanswered.tolist() == [0.2]


def test_expiry_that_does_not_depend_on_the_item_widens_nothing() -> None:
    rng = np.random.default_rng(1)
    entries = [
        entry(number, correct=True, missing=EXPIRED if rng.random() < 0.3 else "", score=float(rng.random()))
        for number in range(300)
    ]
    found = known(entries)
    assert found.worst_case == frozenset()
    assert found.expiry_dependence < 0.5
    assert found.share == pytest.approx(0.3, abs=0.1)


def test_expiry_that_depends_on_the_score_is_the_worst_case() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(300)
    entries = [
        entry(number, correct=True, missing=EXPIRED if score < 0.3 else "", score=float(score))
        for number, score in enumerate(scores)
    ]
    found = known(entries)
    assert found.worst_case == {EXPIRED_CLASS}
    assert found.worst_case_share == found.share


def test_answers_of_later_attempts_that_differ_are_the_worst_case() -> None:
    rng = np.random.default_rng(1)
    entries = []
    for number in range(400):
        is_hard = rng.random() < 0.3
        missing = EXPIRED if is_hard and rng.random() < 0.5 else ""
        # Scores tell nothing, and hard items are answered late.
        score, attempt = float(rng.random()), 2 if is_hard else 1
        entries.append(entry(number, correct=not is_hard, missing=missing, score=score, attempt=attempt))
    assert known(entries).worst_case == {EXPIRED_CLASS}
    firsts = [
        entry(n, e.label.true_class == "0", e.label.unanswered, score=e.fact.score)
        for n, e in enumerate(entries)
    ]
    assert known(firsts).worst_case == frozenset()


def test_before_anything_is_known_the_worst_case_holds() -> None:
    assert known([entry(0, correct=True), entry(1, correct=True, missing=EXPIRED)]).worst_case == {
        EXPIRED_CLASS
    }


@pytest.mark.parametrize(
    ("treatment", "expected"),
    [("worst_case", {SKIPPED_CLASS}), ("tested", set()), ("at_random", set())],
)
def test_skips_are_treated_as_configured(treatment: str, expected: set[int]) -> None:
    rng = np.random.default_rng(1)
    entries = [
        entry(number, correct=True, missing=SKIPPED if rng.random() < 0.3 else "", score=float(rng.random()))
        for number in range(300)
    ]
    assert known(entries, skipped=treatment).worst_case == expected


def test_shares_are_of_use_from_twenty_requests_on() -> None:
    few = [entry(number, correct=True, missing=SKIPPED) for number in range(19)]
    assert not known(few).has_shares
    assert not known(few).is_problem
    enough = known([*few, entry(19, correct=True)])
    assert enough.has_shares
    assert enough.is_problem


def test_nothing_is_a_problem_without_requests() -> None:
    found = known([])
    assert (found.ended, found.share, found.is_problem) == (0, 0.0, False)


def test_what_is_missing_at_random_makes_no_scores_look_miscalibrated() -> None:
    correct = [number % 10 < 8 for number in range(3_000)]
    missing = np.random.default_rng(0).random(3_000) < 0.3
    entries = [entry(n, correct[n], SKIPPED if missing[n] else "") for n in range(3_000)]
    found = estimated(entries)[ALL]
    assert found.ece_above is not None
    assert found.ece_above[0] < 0.5
    assert (found.ece.lower[0], not found.miscalibrated[0]) == (0.0, True)
    # Both extremes are possible.
    assert found.ece.upper[0] > 0.15


def test_requests_without_a_label_count_however_many_are_answered_after_them() -> None:
    entries = [
        entry(number, correct=True, missing=SKIPPED if number < 30 else "") for number in range(20_100)
    ]
    found = known(entries)
    assert (found.ended, found.skipped, found.worst_case) == (20_100, 30, {SKIPPED_CLASS})


def test_an_outage_while_scores_are_lower_says_nothing_of_the_items() -> None:
    rng = np.random.default_rng(1)
    entries = []
    for number in range(2_000):
        # Every second time, half of the requests expire, and all scores are lower.
        is_out = number // 200 % 2 == 1
        missing = EXPIRED if is_out and rng.random() < 0.5 else ""
        score = 0.5 * rng.random() + (0.0 if is_out else 0.4)
        entries.append(entry(number, correct=True, missing=missing, score=float(score)))
    assert known(entries).worst_case == frozenset()


def test_answers_of_later_attempts_tell_whatever_scores_say() -> None:
    rng = np.random.default_rng(1)
    entries = []
    for number in range(10_000):
        is_hard = rng.random() < 0.2
        missing = EXPIRED if is_hard and rng.random() < 0.7 else ""
        entries.append(
            entry(
                number,
                bool(rng.random() < (0.6 if is_hard else 0.85)),
                missing,
                score=float(rng.random()),
                attempt=2 if is_hard else 1,
            )
        )
    assert known(entries).worst_case == {EXPIRED_CLASS}


def test_the_label_of_a_corrected_skip_is_that_of_who_corrected_it() -> None:
    ledger = OutcomeLedger(settings().cell_space("m"), may_err=True)
    skip = entry(0, correct=True, missing=SKIPPED)
    skip = msgspec.structs.replace(skip, label=msgspec.structs.replace(skip.label, annotator="ana"))
    label = LabelFact("0", NOW + 60, "bob")
    ledger.fold([skip, msgspec.structs.replace(skip, position=(2, 0), of=skip.position, label=label)])
    ledger.place()
    items = ledger.labelled_items(at=NOW + 60)
    assert items is not None
    assert [ledger.people[code] for code in items.people.tolist()] == [("", "bob")]
    assert ledger.last_label_at == NOW + 60


def test_what_is_missing_may_be_errors_of_the_most_expensive_kind() -> None:
    model = {
        "classes": ["0", "1", "2"],
        "score_bins": 10,
        "groupings": {"class": {"by": "predicted_class"}},
        "assessments": {"ask": {"grouping": "class", "budget": {"labels": 1}}},
        "costs": {"default": 1, "mistakes": [{"predicted": "0", "true": "2", "cost": 100}]},
        "forgetting": {"after_change": False},
    }
    made = Settings.model_validate({"models": {"m": model}})
    space = made.cell_space("m")
    traffic = Traffic(tables(space))
    traffic.landmark = NOW
    for table in traffic.tables.values():
        for block in table.blocks.values():
            for column in (block.counts, block.weights, block.score_sums):
                column[:1, :1] = 1
    entries = []
    for number in range(1_000):
        # A tenth are of class 2, which nobody can tell.
        true = "0000000012"[number % 10]
        each = entry(number, correct=True, missing=SKIPPED if true == "2" else "", score=0.05)
        label = msgspec.structs.replace(each.label, true_class="" if true == "2" else true)
        entries.append(msgspec.structs.replace(each, label=label))
    ledger, index = labelled(entries, space, traffic, may_err=False)
    found = assess_groupings(
        settings=made.models["m"], index=index, probability_sums={}, ledger=ledger, at=NOW
    )["class"].cost
    assert found is not None
    assert found.lower[0] < 0.1 * 1 + 0.1 * 100 < found.upper[0]
