"""Evidence continues when labels are gone, and counts no label before its predecessors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traffic_tables import every_cell, traffic_of

from service.config.model import ModelSettings
from service.domain.cells import OTHER, CellSpace, definitions
from service.domain.groupings import ByAttribute
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import due_checkpoint, model_evidence
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.grouped_e_processes import STATE
from service.store.checkpoints import EvidenceCheckpoint
from service.store.outcome_entries import OutcomeEntry
from service.store.records import SKIPPED, Fact, LabelFact
from service.store.references import ReferenceWindow
from service.store.requests import OpenRequest

REGIONS = ("north", "south", "west")
SPACE = CellSpace(
    ("cat", "dog"),
    (0.5,),
    {
        "region": ByAttribute("region", "region"),
        "device": ByAttribute("device", "device"),
    },
)
MODEL = ModelSettings.model_validate(
    {
        "classes": ["cat", "dog"],
        "alerts": {"min_accuracy": 0.8},
        "reference": {"labels": 6},
        "groupings": {
            "region": {"by": "attribute", "attribute": "region"},
            "device": {"by": "attribute", "attribute": "device"},
        },
        "assessments": {
            name: {"task": "identification", "grouping": name, "budget": {"labels": 9}}
            for name in ("region", "device")
        },
    }
)
COMBINATIONS = [("__other__", "__other__"), *(("phone", region) for region in REGIONS)]
LIMIT = 40


def outcome(
    number: int, *, right: bool | None, region: str = "", grouping: str = "region", answered: int = -1
) -> OutcomeEntry:
    """A label whose request was made at second `number`, and answered as number `answered` of all.

    None of a request that was skipped.
    """
    region = region or REGIONS[number % 3]
    fact = Fact(
        request_id=f"request-{number}",
        item_id=f"item-{number}",
        grouping=grouping,
        group=region if grouping == "region" else "phone",
        predicted_class="cat",
        score=0.4 + number % 5 / 10,
        attributes={"region": region, "device": "phone"},
        predicted_at=float(number),
        requested_at=float(number),
        definition=definitions(SPACE)[grouping],
    )
    position = (number if answered < 0 else answered, 0)
    given = LabelFact("cat" if right else "dog", float(position[0]), "")
    if right is None:
        given = LabelFact("", float(position[0]), "", unanswered=SKIPPED)
    return OutcomeEntry(position, position, grouping, fact, given)


def ledger_of(entries: list[OutcomeEntry]) -> OutcomeLedger:
    ledger = OutcomeLedger(SPACE)
    ledger.fold(entries)
    ledger.place()
    return ledger


def index_of(
    ledger: OutcomeLedger, combinations: list[tuple[str, ...]] = COMBINATIONS, space: CellSpace = SPACE
) -> GroupIndex:
    return GroupIndex(space, traffic_of(space, every_cell(space, combinations)), ledger.cells)


def evidence(
    ledger: OutcomeLedger,
    *,
    checkpoint: EvidenceCheckpoint | None = None,
    reference: ReferenceWindow | None = None,
    opened: Mapping[str, OpenRequest] | None = None,
    combinations: list[tuple[str, ...]] = COMBINATIONS,
    before: Mapping[str, GroupingEvidence] | None = None,
) -> dict[str, GroupingEvidence]:
    return model_evidence(
        settings=MODEL,
        index=index_of(ledger, combinations),
        ledger=ledger,
        open_requests=opened or {},
        reference=reference,
        checkpoint=checkpoint,
        before=before or {},
    )


def due(
    ledger: OutcomeLedger,
    checkpoint: EvidenceCheckpoint | None = None,
    *,
    reference: ReferenceWindow | None = None,
    opened: Mapping[str, OpenRequest] | None = None,
) -> EvidenceCheckpoint | None:
    found = due_checkpoint(
        settings=MODEL,
        index=index_of(ledger),
        ledger=ledger,
        open_requests=opened or {},
        reference=reference,
        checkpoint=checkpoint,
        outcome_limit=LIMIT,
    )
    # As it is stored.
    return (
        None
        if found is None
        else msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=EvidenceCheckpoint)
    )


def request(number: int, region: str = "north", assessment: str = "region") -> dict[str, OpenRequest]:
    return {f"request-{number}": OpenRequest(assessment, region, {}, "cat", 0.7, 1, float(number))}


def assert_same(found: Mapping[str, GroupingEvidence], expected: Mapping[str, GroupingEvidence]) -> None:
    assert found.keys() == expected.keys()
    for name, there in found.items():
        assert there.groups == expected[name].groups
        assert there.watched.numbers.tolist() == expected[name].watched.numbers.tolist()
        for column, values in vars(there.state).items():
            estimated = getattr(expected[name].state, column)
            assert values == pytest.approx(estimated, nan_ok=True, rel=1e-9, abs=1e-9), column
        for kind, confirmed in there.confirmed.items():
            assert confirmed.tolist() == expected[name].confirmed[kind].tolist()


labels = st.lists(
    st.tuples(
        st.sampled_from([True, False, None]),
        st.integers(0, 2),
        st.sampled_from(["region", "region", "device"]),
    ),
    min_size=LIMIT,
    max_size=6 * LIMIT,
)


@settings(deadline=None, max_examples=40)
@given(labels, st.sampled_from([None, ReferenceWindow(-np.inf, 9.0, 0.0)]), st.integers(3, 11))
def test_what_the_stream_lets_go_of_goes_on_to_count(
    said: list[tuple[bool | None, int, str]], window: ReferenceWindow | None, every: int
) -> None:
    entries = [
        outcome(number, right=right, region=REGIONS[region], grouping=grouping)
        for number, (right, region, grouping) in enumerate(said)
    ]
    checkpoint, ledger = None, OutcomeLedger(SPACE)
    for begin in range(0, len(entries), every):
        ledger.fold(entries[begin : begin + every])
        ledger.forget(
            entries[max(0, begin + every - LIMIT)].position if begin + every < len(entries) else (0, 0)
        )
        ledger.place()
        checkpoint = due(ledger, checkpoint, reference=window) or checkpoint
    found = evidence(ledger, checkpoint=checkpoint, reference=window)
    assert_same(found, evidence(ledger_of(entries), reference=window))
    # So does a process that starts now.
    last = entries[max(0, len(entries) - LIMIT) :]
    assert_same(evidence(ledger_of(last), checkpoint=checkpoint, reference=window), found)


def test_a_checkpoint_of_a_version_that_knew_no_unanswered_requests_is_read() -> None:
    entries = [outcome(number, right=True) for number in range(2 * LIMIT)]
    checkpoint = due(ledger_of(entries))
    assert checkpoint is not None
    for state in checkpoint.groupings:
        del state.columns["unanswered"], state.columns["reference_unanswered"]
    assert_same(evidence(ledger_of(entries), checkpoint=checkpoint), evidence(ledger_of(entries)))


def test_without_the_checkpoint_what_is_gone_would_count_no_more() -> None:
    entries = [outcome(number, right=number % 4 > 0) for number in range(4 * LIMIT)]
    part, whole = evidence(ledger_of(entries[-LIMIT:])), evidence(ledger_of(entries))
    assert part["region"].state.labels.sum() == LIMIT
    assert whole["region"].state.labels.sum() == 4 * LIMIT


def test_a_checkpoint_reaches_no_further_than_the_first_open_request() -> None:
    entries = [outcome(number, right=True) for number in range(LIMIT)]
    assert due(ledger_of(entries[: LIMIT // 2])) is None
    free, bounded = due(ledger_of(entries)), due(ledger_of(entries), opened=request(5))
    assert free is not None
    assert bounded is not None
    assert bounded.position < free.position
    assert sum(evidence(ledger_of([]), checkpoint=bounded)["region"].state.labels) == 5


def test_a_confirmed_change_keeps_its_time_when_its_labels_are_gone() -> None:
    entries = [outcome(number, right=number < 150, region="north") for number in range(300)]
    ledger = ledger_of(entries)
    then = evidence(ledger)["region"].changes
    checkpoint = due(ledger)
    later = entries[-LIMIT // 2 :]
    later += [outcome(number, right=False, region="north") for number in range(300, 310)]
    now = evidence(ledger_of(later), checkpoint=checkpoint)["region"].changes
    (group, change), (_, dated) = *then.items(), *now.items()
    assert then.keys() == now.keys() == {group}
    assert abs(dated.at - change.at) < 3
    assert dated.labels == change.labels + 10


def test_labels_since_a_change_are_no_requests_without_one() -> None:
    entries = [outcome(number, right=number < 150, region="north") for number in range(300)]
    ledger = ledger_of(entries)
    checkpoint, change = due(ledger), evidence(ledger)["region"].changes
    later = [outcome(number, right=None, region="north") for number in range(300, 310)]
    now = evidence(ledger_of([*entries, *later]), checkpoint=checkpoint)["region"].changes
    assert [each.labels for each in now.values()] == [each.labels for each in change.values()]


def test_once_a_reference_is_set_evidence_begins_again() -> None:
    entries = [outcome(number, right=True) for number in range(2 * LIMIT)]
    checkpoint = due(ledger_of(entries))
    window = ReferenceWindow(-np.inf, 50.0, 9.0)
    found = evidence(ledger_of(entries), checkpoint=checkpoint, reference=window)
    assert_same(found, evidence(ledger_of(entries), reference=window))


def test_groups_that_have_no_traffic_now_keep_what_the_checkpoint_knows() -> None:
    entries = [outcome(number, right=number % 3 > 0) for number in range(2 * LIMIT)]
    checkpoint = due(ledger_of(entries))
    assert checkpoint is not None
    later = [outcome(number, right=True, region="north") for number in range(2 * LIMIT, 4 * LIMIT)]
    reappeared, ledger = COMBINATIONS[1:2], ledger_of(later)
    next_one = due_checkpoint(
        settings=MODEL,
        index=index_of(ledger, reappeared),
        ledger=ledger,
        open_requests={},
        reference=None,
        checkpoint=checkpoint,
        outcome_limit=LIMIT,
    )
    assert next_one is not None
    before, after = (evidence(ledger_of([]), checkpoint=each)["region"] for each in (checkpoint, next_one))
    for name in STATE:
        for region in ("south", "west"):
            column, then = getattr(after.state, name), getattr(before.state, name)
            np.testing.assert_array_equal(
                column[after.groups.index(region)], then[before.groups.index(region)]
            )


WITHOUT_DEVICES = replace(SPACE, groupings={"region": SPACE.groupings["region"]})


def due_without_devices(entries: list[OutcomeEntry], checkpoint: EvidenceCheckpoint) -> EvidenceCheckpoint:
    """The next checkpoint, made while one of the groupings is not configured."""
    ledger = OutcomeLedger(WITHOUT_DEVICES)
    ledger.fold(entries)
    ledger.place()
    found = due_checkpoint(
        settings=MODEL,
        index=index_of(ledger, [(region,) for _, region in COMBINATIONS], WITHOUT_DEVICES),
        ledger=ledger,
        open_requests={},
        reference=None,
        checkpoint=checkpoint,
        outcome_limit=LIMIT,
    )
    assert found is not None
    assert found.position > checkpoint.position
    return found


@pytest.mark.parametrize("meanwhile", [0, 1])
def test_a_grouping_that_was_removed_and_is_restored_leaves_out_no_label_of_its_own(meanwhile: int) -> None:
    both = [
        outcome(number, right=number % 4 > 0, grouping=("region", "device")[number % 2])
        for number in range(2 * LIMIT)
    ]
    checkpoint = due(ledger_of(both))
    assert checkpoint is not None
    before = evidence(ledger_of([]), checkpoint=checkpoint)["device"].state.labels
    assert before.sum() > 0
    passed = [outcome(2 * LIMIT + n, right=False, grouping="device") for n in range(meanwhile)]
    later = [outcome(number, right=True) for number in range(3 * LIMIT, 5 * LIMIT)]
    labelled = [each for each in both if each.assessment == "region"] + passed + later
    restored = due_without_devices(labelled, checkpoint)
    assert [state.grouping for state in restored.groupings] == (
        ["region"] if meanwhile else ["region", "device"]
    )
    after = [outcome(number, right=True, grouping="device") for number in range(5 * LIMIT, 5 * LIMIT + 7)]
    found = evidence(ledger_of([*passed, *after]), checkpoint=restored)["device"].state.labels
    assert found.sum() == 7 + (0 if meanwhile else before.sum())


def test_the_order_of_arrival_is_that_of_requests_whatever_traffic_there_is_again() -> None:
    # The south was asked about first, then the north, and then all devices.
    entries = [outcome(1, right=True, region="south"), outcome(2, right=True, region="north")]
    entries += [outcome(3, right=True, grouping="device"), outcome(4, right=True, region="west")]
    expected = {"north": 2, "south": 1, "west": 4}
    for count in range(2, len(COMBINATIONS) + 1):
        there = COMBINATIONS[1:count]
        found = evidence(ledger_of(entries), combinations=there)["region"]
        numbers = dict(zip(found.groups, found.watched.numbers.tolist(), strict=True))
        assert {name: numbers[name] for name in expected if name in numbers} == {
            name: expected[name] for name in numbers if name in expected
        }
    assert evidence(ledger_of(entries))["device"].watched.numbers[1] == 3


def test_a_group_has_arrived_once_a_label_is_requested_for_it() -> None:
    entries = [outcome(number, right=True, region="south") for number in range(5, 9)]
    found = evidence(ledger_of(entries), opened=request(1, "north"))["region"]
    assert dict(zip(found.groups, found.watched.numbers.tolist(), strict=True))["south"] == 2


def test_a_label_counts_once_all_earlier_requests_for_its_group_have_ended() -> None:
    entries = [outcome(number, right=True, region="north") for number in (1, 2, 4, 5)]
    north = evidence(ledger_of(entries))["region"].groups.index("north")
    waiting = evidence(ledger_of(entries), opened=request(3))["region"]
    assert waiting.state.labels[north] == 2
    # Open requests of other groups, and of other groupings, do not matter.
    for other in (request(3, "south"), request(3, "north", "device")):
        assert evidence(ledger_of(entries), opened=other)["region"].state.labels[north] == 4
    # That of a removed assessment may be of any grouping.
    assert evidence(ledger_of(entries), opened=request(3, "north", "gone"))["region"].state.labels[north] == 2
    ended = evidence(ledger_of(entries), before={"region": waiting})["region"]
    assert ended.state.labels[north] == 4


def test_labels_count_in_the_order_of_requests_however_answers_come() -> None:
    rng = np.random.default_rng(0)
    right = rng.random(90) < 0.8
    in_order = [outcome(number, right=bool(right[number])) for number in range(90)]
    answers = rng.permutation(90).tolist()
    shuffled = [
        outcome(number, right=bool(right[number]), answered=place) for place, number in enumerate(answers)
    ]
    assert_same(evidence(ledger_of(shuffled)), evidence(ledger_of(in_order)))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 30)), max_size=60),
    st.lists(st.integers(1, 90), min_size=1, max_size=6),
)
def test_rounds_find_what_one_finds_that_looks_at_all_labels_whatever_is_open(
    requests: list[tuple[bool, int, int]], looks: list[int]
) -> None:
    """Requests are answered some time after they were made."""
    answered = sorted(range(len(requests)), key=lambda number: (number + requests[number][2], number))
    entries = [
        outcome(number, right=requests[number][0], region=REGIONS[requests[number][1]], answered=place)
        for place, number in enumerate(answered)
    ]
    before: dict[str, GroupingEvidence] = {}
    for now in sorted(looks):
        there = [e for e in entries if (n := int(e.fact.requested_at)) + requests[n][2] <= now]
        opened: dict[str, OpenRequest] = {}
        for number, (_, region, delay) in enumerate(requests):
            if number <= now < number + delay:
                opened |= request(number, REGIONS[region])
        ledger = ledger_of(there)
        before = evidence(ledger, opened=opened, before=before)
        assert_same(before, evidence(ledger, opened=opened))


def test_two_groupings_that_are_the_same_share_the_weights_of_their_groups() -> None:
    both = replace(SPACE, groupings=dict(SPACE.groupings) | {"site": ByAttribute("site", "region")})
    entries = [outcome(number, right=True) for number in range(30)]
    ledger = OutcomeLedger(both)
    ledger.fold(entries + [replace_grouping(outcome(number, right=True), "site") for number in range(30, 60)])
    ledger.place()
    found = model_evidence(
        settings=MODEL,
        index=index_of(ledger, space=both),
        ledger=ledger,
        open_requests={},
        reference=None,
        checkpoint=None,
        before={},
    )
    assert found["region"].watched.sharing == found["site"].watched.sharing == 2


def replace_grouping(entry: OutcomeEntry, grouping: str) -> OutcomeEntry:
    return msgspec.structs.replace(entry, fact=msgspec.structs.replace(entry.fact, grouping=grouping))


def test_values_that_are_not_told_apart_have_no_evidence_together() -> None:
    entries = [outcome(number, right=False, region=f"island {number}") for number in range(60)]
    found = evidence(ledger_of([*entries, outcome(100, right=True)]))
    groups = found["region"].groups
    assert found["region"].labels.counts[groups.index(OTHER)] == 0
    assert not found["region"].alarming.any()


def test_a_checkpoint_comes_earlier_where_several_people_label_an_item() -> None:
    # The stream keeps labels, and has room for half as many items if each has two.
    items = LIMIT // 2 - 3
    firsts = [outcome(number, right=True, answered=2 * number) for number in range(items)]
    seconds = [
        msgspec.structs.replace(entry, position=place, of=place, item=entry.position)
        for entry in firsts
        for place in [(entry.position[0] + 1, 0)]
    ]
    entries = sorted([*firsts, *seconds], key=lambda entry: entry.position)
    alone, both = OutcomeLedger(SPACE), OutcomeLedger(SPACE, may_err=True)
    for ledger, some in ((alone, firsts), (both, entries)):
        ledger.fold(some)
        ledger.place()
    assert len(both) == items
    assert due(alone) is None
    assert due(both) is not None
