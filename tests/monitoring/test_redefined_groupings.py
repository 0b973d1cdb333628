"""A grouping is known by what it is by: what was asked by one that is configured no more does not count."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from traffic_tables import every_cell, traffic_of

from service.config.model import ModelSettings
from service.domain.cells import FORMER_GROUPING, CellSpace, definitions
from service.domain.groupings import ALL, ByAttribute, Everything
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import model_evidence
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.weighted_labels import weigh_model_labels
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact, decode_fact, encode_packed

MODEL = ModelSettings.model_validate({"classes": ["cat", "dog"], "reference": {"labels": 20}})
SPACE = CellSpace(
    ("cat", "dog"),
    (0.5,),
    {
        ALL: Everything(ALL),
        "place": ByAttribute("place", "region"),
        "device": ByAttribute("device", "device"),
    },
)
REDEFINED = replace(SPACE, groupings=dict(SPACE.groupings) | {"place": ByAttribute("place", "device")})
"""By the same name, another partition; `region` tells no cells apart any more."""

COUNT, NOW = 400, 1e6


def outcome(number: int, grouping: str, definition: bytes, *, correct: bool) -> OutcomeEntry:
    attributes = {"region": ["north", "south"][number % 2], "device": ["phone", "desk"][number // 2 % 2]}
    fact = Fact(
        request_id=f"request-{number}",
        item_id=f"item-{number}",
        grouping=grouping,
        group={"place": attributes["region"], "device": attributes["device"]}.get(grouping, grouping),
        predicted_class="cat",
        score=0.75,
        attributes=attributes,
        predicted_at=float(number),
        requested_at=float(number),
        definition=definition,
    )
    given = LabelFact("cat" if correct else "dog", float(number), "")
    return OutcomeEntry((number, 0), (number, 0), f"by-{grouping}", fact, given)


def outcomes(estimated: bool = True) -> list[OutcomeEntry]:
    """Labels that three groupings asked for, of which the devices' become wrong at the half."""
    known, entries = definitions(SPACE), []
    for number in range(COUNT):
        grouping = ("place", "device", ALL)[number % 3]
        correct = number % 10 < (9 if number < COUNT / 2 else 2)
        entries.append(outcome(number, grouping, known[grouping] if estimated else b"", correct=correct))
    return entries


def placed(entries: list[OutcomeEntry], space: CellSpace) -> tuple[GroupIndex, OutcomeLedger]:
    seen = [tuple(e.fact.attributes[name] for name in space.attributes) for e in outcomes()[:4]]
    ledger = OutcomeLedger(space)
    ledger.fold(entries)
    ledger.place()
    cells = every_cell(space, list(dict.fromkeys(seen)), count=100, weight=100.0, score=0.75)
    return GroupIndex(space, traffic_of(space, cells), ledger.cells), ledger


def proven(entries: list[OutcomeEntry], space: CellSpace) -> dict[str, dict[str, tuple[int, float]]]:
    """Of every grouping with evidence, its groups that have labels: how many, and how sure a change is."""
    index, ledger = placed(entries, space)
    found = model_evidence(
        settings=MODEL,
        index=index,
        ledger=ledger,
        open_requests={},
        reference=None,
        checkpoint=None,
        before={},
    )
    return {
        name: {
            estimated.groups[group]: (
                int(estimated.labels.counts[group]),
                float(estimated.log_e["changed"][group]),
            )
            for group in np.flatnonzero(estimated.labels.counts)
        }
        for name, estimated in found.items()
    }


def labels_of(found: dict[str, tuple[int, float]]) -> int:
    return sum(count for count, _ in found.values())


def test_its_labels_are_of_a_grouping_that_nobody_knows() -> None:
    _, ledger = placed(outcomes(), REDEFINED)
    asked = [draw for source in ledger.sources for draw in source.draws]
    whose = dict(zip(asked, ledger.has_known_density.tolist(), strict=True))
    assert whose == {
        ("by-place", FORMER_GROUPING): False,
        ("by-device", "device"): True,
        ("by-all", ALL): True,
    }


def test_nothing_is_believed_by_its_labels_as_their_density_is_unknown() -> None:
    without = [entry for entry in outcomes() if entry.fact.grouping != "place"]
    found, expected = (
        weigh_model_labels(MODEL, *placed(entries, REDEFINED), now=NOW) for entries in (outcomes(), without)
    )
    assert found.count == len(without)
    assert found.label_counts == expected.label_counts
    assert found.change_points.keys() == expected.change_points.keys() == {"device", ALL}
    for name, column in vars(expected.labels).items():
        assert getattr(found.labels, name) == pytest.approx(column), name


def test_its_evidence_begins_anew_and_that_of_others_goes_on() -> None:
    before, after = (proven(outcomes(), space) for space in (SPACE, REDEFINED))
    assert before.keys() - after.keys() == {"place"}
    assert after["device"] == before["device"]
    own = definitions(REDEFINED)["place"]
    fresh = [outcome(COUNT + i, "place", own, correct=True) for i in range(30)]
    assert labels_of(proven(outcomes() + fresh, REDEFINED)["place"]) == len(fresh)


def test_changes_are_looked_for_in_the_labels_of_the_grouping_as_it_is() -> None:
    entries = [entry for entry in outcomes() if entry.fact.grouping == "place"]
    before, after = (
        weigh_model_labels(MODEL, *placed(entries, space), now=NOW) for space in (SPACE, REDEFINED)
    )
    assert before.change_points.keys() == {"place"}
    assert not after.change_points


def test_once_it_is_defined_as_before_its_labels_count_again() -> None:
    meanwhile = {"place": ByAttribute("place", "floor")}
    gone = definitions(replace(SPACE, groupings=meanwhile))["place"]
    fresh = [outcome(COUNT + i, "place", gone, correct=True) for i in range(30)]
    assert proven(outcomes() + fresh, SPACE) == proven(outcomes(), SPACE)


def test_labels_asked_for_by_the_same_partition_under_another_name_are_its_own() -> None:
    same = definitions(REDEFINED)["place"]
    fresh = [outcome(COUNT + i, "place", same, correct=True) for i in range(30)]
    more, before = (
        labels_of(proven(entries, SPACE)["device"]) for entries in (outcomes() + fresh, outcomes())
    )
    assert more == before + len(fresh)


def test_beside_a_new_grouping_by_another_name_its_labels_go_on_to_count() -> None:
    added = {"site": ByAttribute("site", "device")}
    both = replace(SPACE, groupings=dict(SPACE.groupings) | added)
    assert proven(outcomes(), both) == proven(outcomes(), SPACE)
    found, expected = (
        weigh_model_labels(MODEL, *placed(outcomes(), space), now=NOW) for space in (both, SPACE)
    )
    assert found.labels.weights == pytest.approx(expected.labels.weights)
    assert found.count == len(outcomes())


def test_labels_from_before_definitions_were_kept_are_of_the_grouping_of_that_name() -> None:
    found = proven(outcomes(estimated=False), REDEFINED)
    assert found["place"].keys() == {"phone", "desk"}
    assert labels_of(found["place"]) == sum(entry.fact.grouping == "place" for entry in outcomes())


def test_a_grouping_that_is_renamed_keeps_its_labels_and_its_evidence() -> None:
    renamed = {name if name != "place" else "site": one for name, one in SPACE.groupings.items()}
    found = proven(outcomes(), replace(SPACE, groupings=renamed))
    expected = proven(outcomes(), SPACE)
    assert found == {name if name != "place" else "site": estimated for name, estimated in expected.items()}


def test_of_two_groupings_that_are_the_same_the_one_of_its_name_keeps_them() -> None:
    twice = {"site": ByAttribute("site", "region")} | dict(SPACE.groupings)
    _, ledger = placed(outcomes(), replace(SPACE, groupings=twice))
    assert any(("by-place", "place") in source.draws for source in ledger.sources)


def test_labels_of_a_grouping_that_is_configured_no_more_are_of_one_that_nobody_knows() -> None:
    less = {name: one for name, one in SPACE.groupings.items() if name != "place"}
    _, ledger = placed(outcomes(), replace(SPACE, groupings=less))
    assert any(("by-place", FORMER_GROUPING) in source.draws for source in ledger.sources)
    assert ledger.has_known_density.tolist() == [FORMER_GROUPING not in s.groupings for s in ledger.sources]


class FormerFact(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """A fact as processes read it that know no definitions."""

    request_id: str
    item_id: str
    grouping: str
    group: str
    predicted_class: str
    score: float
    attributes: dict[str, str]
    predicted_at: float
    requested_at: float
    votes: dict[str, str] = {}
    voters: str = ""


def fields(fact: Fact | FormerFact) -> dict[str, object]:
    return {name: getattr(fact, name) for name in FormerFact.__struct_fields__}


@pytest.mark.parametrize("definition", [b"", definitions(SPACE)["place"]])
def test_a_process_of_before_reads_what_is_written_now(definition: bytes) -> None:
    fact = outcome(0, "place", definition, correct=True).fact
    assert fields(msgspec.msgpack.decode(encode_packed(fact), type=FormerFact)) == fields(fact)


def test_what_a_process_of_before_has_written_is_read_now() -> None:
    fact = outcome(0, "place", b"", correct=True).fact
    former = FormerFact(**fields(fact))  # type: ignore[arg-type]
    assert decode_fact(encode_packed(former)) == fact


def test_a_definition_takes_six_bytes_suspicion_and_gold_one_each_and_no_stratum_two() -> None:
    fact = outcome(0, "place", definitions(SPACE)["place"], correct=True).fact
    former = FormerFact(**fields(fact))  # type: ignore[arg-type]
    assert len(encode_packed(fact)) == len(encode_packed(former)) + 4 + 2 + 1 + 1 + 2
