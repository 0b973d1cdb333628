"""Evidence on error rates keeps what a checkpoint knows, whatever traffic, names and limits become."""

from __future__ import annotations

import msgspec
import pytest
from rate_checkpoint_examples import LIMIT, asking, ledger_of, outcome
from rate_checkpoint_examples import due as due_of
from rate_checkpoint_examples import proof as proof_of
from traffic_tables import every_cell, traffic_of

from service.config.settings import Settings
from service.domain.assessments import RateName
from service.domain.cells import CellSpace
from service.monitoring.error_rate_evidence import (
    RateProof,
)
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import due_checkpoint
from service.monitoring.outcome_table import OutcomeLedger
from service.store.checkpoints import EvidenceCheckpoint
from service.store.outcome_entries import OutcomeEntry

FPR: RateName = "false_positive_rate"
TWO = ["north", "south"]
THREE = [*TWO, "west"]


def due(
    entries: list[OutcomeEntry],
    settings: Settings,
    checkpoint: EvidenceCheckpoint | None = None,
    *,
    regions: list[str],
) -> EvidenceCheckpoint:
    """The checkpoint that is due; some has to be."""
    found = due_of(ledger_of(entries), checkpoint, settings=settings, regions=regions)
    assert found is not None
    return found


def proof(
    ledger: OutcomeLedger,
    settings: Settings,
    checkpoint: EvidenceCheckpoint | None = None,
    *,
    regions: list[str],
    name: str = "fair",
) -> RateProof:
    return proof_of(ledger, checkpoint, settings=settings, regions=regions, name=name)


def labels(count: int, regions: list[str] = TWO) -> list[OutcomeEntry]:
    return [outcome(number, regions[number // 3 % len(regions)]) for number in range(count)]


def of_north(found: RateProof) -> float:
    return float(found.log_e[0])


def test_a_group_with_a_limit_of_its_own_that_appears_ends_no_evidence_of_others() -> None:
    own = asking(fair={"group_limits": {"west": {FPR: 0.3}}})
    entries = labels(45)
    ledger, checkpoint = ledger_of(entries), due(entries, own, regions=TWO)
    before = of_north(proof(ledger, own, checkpoint, regions=TWO))
    assert of_north(proof(ledger, own, checkpoint, regions=THREE)) == pytest.approx(before)


def test_a_group_with_a_limit_of_its_own_that_vanishes_ends_no_evidence_of_others() -> None:
    own = asking(fair={"group_limits": {"west": {FPR: 0.3}}})
    entries = labels(45, THREE)
    ledger, checkpoint = ledger_of(entries), due(entries, own, regions=THREE)
    before = of_north(proof(ledger, own, checkpoint, regions=THREE))
    assert of_north(proof(ledger, own, checkpoint, regions=TWO)) == pytest.approx(before)


def test_a_group_that_alone_has_a_limit_keeps_its_evidence_while_it_has_no_traffic() -> None:
    own = asking(fair={"limits": {}, "group_limits": {"west": {FPR: 0.2}}})
    entries = labels(45, ["west", "north"])
    first = due(entries, own, regions=THREE)
    before = proof(ledger_of(entries[:20]), own, regions=THREE).log_e[2]
    second = due([*entries[30:], *labels(90, TWO)[45:]], own, first, regions=TWO)
    assert second.position > first.position
    assert before != 0
    assert proof(ledger_of([]), own, second, regions=THREE).log_e[2] != 0


def test_evidence_stays_while_no_group_has_traffic() -> None:
    asked, entries = asking(fair={}), labels(60)
    first = due(entries[:45], asked, regions=TWO)
    assert of_north(proof(ledger_of([]), asked, first, regions=TWO)) != 0
    second = due(entries[20:], asked, first, regions=[])
    assert second.position > first.position
    of_first = of_north(proof(ledger_of([]), asked, first, regions=TWO))
    assert of_north(proof(ledger_of([]), asked, second, regions=TWO)) == pytest.approx(of_first)


def test_a_51st_group_ends_no_evidence_on_limits() -> None:
    apart = asking(fair={"max_differences": {FPR: 0.1}})
    regions = [*TWO, *(f"z{number}" for number in range(49))]
    entries = labels(45)
    ledger, checkpoint = ledger_of(entries), due(entries, apart, regions=regions[:50])
    before = of_north(proof(ledger, apart, checkpoint, regions=regions[:50]))
    assert of_north(proof(ledger, apart, checkpoint, regions=regions)) == pytest.approx(before)


def test_a_51st_group_ends_no_evidence_on_differences_once_it_has_gone() -> None:
    apart = asking(fair={"limits": {}, "max_differences": {FPR: 0.1}})
    regions = [*TWO, *(f"z{number}" for number in range(49))]
    entries = labels(60)
    first = due(entries[:45], apart, regions=regions[:50])
    second = due(entries[20:], apart, first, regions=regions)
    assert second.rates[0].capitals.keys() == first.rates[0].capitals.keys()


def test_evidence_that_allows_for_wrong_labels_continues_from_its_checkpoint() -> None:
    erring = asking({"reliability": 0.95, "max_error": 0.02}, fair={})
    entries = labels(60)
    whole = of_north(proof(ledger_of(entries), erring, regions=TWO))
    checkpoint = due(entries, erring, regions=TWO)
    assert of_north(proof(ledger_of([]), erring, checkpoint, regions=TWO)) != 0
    assert of_north(proof(ledger_of(entries), erring, checkpoint, regions=TWO)) == pytest.approx(whole)


def test_labels_of_a_checkpoint_do_not_count_if_more_of_them_may_be_wrong_than_it_allows_for() -> None:
    fewer, more = (asking({"reliability": 0.95, "max_error": most}, fair={}) for most in (0.02, 0.1))
    checkpoint = due(labels(60), fewer, regions=TWO)
    assert of_north(proof(ledger_of([]), more, checkpoint, regions=TWO)) == 0


def test_a_limit_that_is_removed_for_a_while_leaves_out_no_label_of_that_time() -> None:
    asked, without = asking(fair={}), asking(fair={"limits": {}, "max_differences": {FPR: 0.1}})
    entries = labels(60)
    first = due(entries[:45], asked, regions=TWO)
    assert of_north(proof(ledger_of([]), asked, first, regions=TWO)) != 0
    second = due(entries[20:], without, first, regions=TWO)
    assert second.position > first.position
    assert of_north(proof(ledger_of([]), asked, second, regions=TWO)) == 0


def test_a_difference_that_is_limited_now_ends_no_evidence_on_limits_that_stay() -> None:
    asked, apart = asking(fair={}), asking(fair={"max_differences": {FPR: 0.1}})
    entries = labels(45)
    ledger, checkpoint = ledger_of(entries), due(entries, asked, regions=TWO)
    before = of_north(proof(ledger, asked, checkpoint, regions=TWO))
    assert of_north(proof(ledger, apart, checkpoint, regions=TWO)) == pytest.approx(before)


def test_an_assessment_that_is_only_renamed_keeps_its_evidence() -> None:
    entries = labels(45)
    ledger, checkpoint = ledger_of(entries), due(entries, asking(fair={}), regions=TWO)
    before = of_north(proof(ledger, asking(fair={}), checkpoint, regions=TWO))
    renamed = proof(ledger, asking(even={}), checkpoint, regions=TWO, name="even")
    assert of_north(renamed) == pytest.approx(before)


def test_an_assessment_that_is_removed_and_restored_keeps_its_evidence() -> None:
    """None of its labels came meanwhile: those of another one, of another grouping, made a checkpoint due."""
    asked, entries = asking(fair={}), labels(60)
    first = due(entries[:45], asked, regions=TWO)
    of_first = of_north(proof(ledger_of([]), asked, first, regions=TWO))
    without = Settings.model_validate(
        {
            **asking(fair={}).model_dump(mode="json", include={"kafka", "redis"}),
            "models": {
                "m": {
                    "classes": ["flag", "pass"],
                    "groupings": {"region": {"by": "attribute", "attribute": "region"}},
                    "assessments": {"ask": {"grouping": "all", "budget": {"labels": 9}}},
                }
            },
        }
    )
    space = without.cell_space("m")
    others = OutcomeLedger(space)
    others.fold([of_all(entry) for entry in labels(120)[60:]])
    others.place()
    second = due_checkpoint(
        settings=without.models["m"],
        index=plain_index(others, space),
        ledger=others,
        open_requests={},
        reference=None,
        checkpoint=first,
        outcome_limit=LIMIT,
    )
    assert second is not None
    assert of_north(proof(ledger_of([]), asked, second, regions=TWO)) == pytest.approx(of_first)


def of_all(entry: OutcomeEntry) -> OutcomeEntry:
    fact = msgspec.structs.replace(entry.fact, grouping="all", group="all", definition=b"", estimator=b"")
    return msgspec.structs.replace(entry, fact=fact, assessment="ask")


def plain_index(ledger: OutcomeLedger, space: CellSpace) -> GroupIndex:
    cells = every_cell(space, [(region,) for region in TWO])
    return GroupIndex(space, traffic_of(space, cells), ledger.cells)


def test_the_size_of_a_checkpoint_is_bounded_by_the_groups_that_are_compared() -> None:
    """Two values have rows at any time; each pair displaces the one before."""
    apart = asking(fair={"max_differences": {FPR: 0.1}})
    checkpoint, sizes = None, []
    for turn in range(28):
        regions = [f"a{turn}", f"b{turn}"]
        entries = [outcome(number, regions[number % 2]) for number in range(100 * turn, 100 * turn + 45)]
        checkpoint = due(entries, apart, checkpoint, regions=regions)
        sizes.append(len(msgspec.msgpack.encode(checkpoint)))
    assert sizes[24] - sizes[23] > 30_000
    assert sizes[27] - sizes[26] < 1_000
