"""What is known of a model stays known as a challenger or an ensemble is added, changed or taken away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from store_site import NOW, Record, Site, message, page, record

from service.domain.cells import CHALLENGE, MISSING, SCORE_BIN, VOTES
from service.domain.groupings import ALL
from service.monitoring.group_index import GroupIndex, has_voteless_traffic
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.performance_facts import performance_facts
from service.monitoring.snapshot import ModelSnapshot
from service.statistics.binary.score_bins import UNLABELLED
from service.store.connection import Connection

COUNT = 1_200
CLASSES = ("cat", "dog")
REGIONS = ("north", "south")
TRIED_AT, BEGIN = NOW - 1_000, NOW - 10_000
"""Votes count for what is predicted once another classifier is tried out."""

CHALLENGED = {
    "next": {"task": "challenge", "challenger": "v2", "budget": {"labels": 300}, "max_in_flight": 60}
}
POOLED = {
    "members": {
        "task": "ensemble",
        "positive_class": "cat",
        "members": ["v2", "v3"],
        "member_labels": 80,
        "budget": {"labels": 300},
        "max_in_flight": 60,
    }
}


def made() -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """True classes, what the model and the others say [N], regions, and scores; the south fails."""
    rng = np.random.default_rng(23)
    true, region = rng.integers(2, size=(2, COUNT))
    hard = rng.random(COUNT) < 0.1
    said = [np.where(rng.random(COUNT) < np.where(hard, 0.4, 0.02), 1 - true, true) for _ in range(3)]
    model = np.where((region == 1) & (rng.random(COUNT) < 0.4), 1 - true, said[0])
    return true, model, {"v2": said[1], "v3": said[2]}, region, np.where(rng.random(COUNT) < 0.5, 0.95, 0.7)


TRUE, MODEL, OTHERS, REGION, SCORE = made()


def stream(*voters: str, begin: float = BEGIN, first: int = 0) -> list[Record]:
    """Two predictions a second; those of other items are alike."""
    records = []
    for i in range(COUNT):
        votes = {"votes": {name: CLASSES[OTHERS[name][i]] for name in voters}} if voters else {}
        shown = message(
            first + i,
            predicted_class=CLASSES[MODEL[i]],
            score=SCORE[i],
            attributes={"region": REGIONS[REGION[i]]},
            **votes,
        )
        records.append(record(first + i, shown, timestamp=int(1_000 * (begin + i / 2))))
    return records


def configured(connection: Connection, assessments: dict[str, Any] | None = None, **fields: Any) -> Site:
    own = {"grouping": "region", "policy": "random", "budget": {"labels": 240}, "max_in_flight": 60}
    settings = {
        "classes": list(CLASSES),
        "score_bins": 2,
        "traffic_half_life_days": None,
        "alerts": {"min_accuracy": 0.85},
        "groupings": {
            "region": {"by": "attribute", "attribute": "region"},
            "class": {"by": "predicted_class"},
        },
        "assessments": {"regions": own} | (assessments or {}),
    }
    return Site(connection, {"m": settings | fields})


def labelled(site: Site, rounds: int = 4) -> ModelSnapshot:
    """What is known after so many rounds of requests have been answered."""
    monitor = site.monitor("m")
    for _ in range(rounds):
        monitor.refresh(NOW)
        monitor.ask(epoch=1, now=NOW)
        site.answer("m", lambda item: CLASSES[TRUE[item % COUNT]])
    return monitor.refresh(NOW)


def taken(site: Site, *voters: str, first: int = COUNT) -> ModelSnapshot:
    """What a new process knows once traffic like that before has come, with these votes."""
    site.take_in(stream(*voters, begin=TRIED_AT, first=first))
    return site.monitor("m").refresh(NOW)


@pytest.fixture
def before(connection: Connection) -> ModelSnapshot:
    """What is known of the model before another classifier is tried out."""
    site = configured(connection)
    site.take_in(stream())
    return labelled(site)


def assert_known_as_before(found: ModelSnapshot, before: ModelSnapshot) -> None:
    assert before.groupings["region"].beliefs.labels_counted.sum() == 240
    for name in ("region", "class", SCORE_BIN, ALL):
        now, then = found.groupings[name], before.groupings[name]
        assert now.groups == then.groups
        assert now.beliefs.labels_counted.tolist() == then.beliefs.labels_counted.tolist()
        assert now.beliefs.labels == pytest.approx(then.beliefs.labels)
        for shown in ("mean", "lower", "upper"):
            assert getattr(now.accuracy, shown) == pytest.approx(getattr(then.accuracy, shown), rel=1e-6)
            assert getattr(now.ece, shown) == pytest.approx(getattr(then.ece, shown), rel=1e-6)


def assert_alarms_as_before(found: ModelSnapshot, before: ModelSnapshot) -> None:
    now, then = found.groupings["region"], before.groupings["region"]
    assert then.low.tolist() == now.low.tolist() == [False, True]
    assert now.evidence is not None
    assert then.evidence is not None
    assert then.evidence.confirmed["below_threshold"].tolist() == [False, True]
    assert now.evidence.alarming.tolist() == then.evidence.alarming.tolist()
    for kind, shown in then.evidence.log_e.items():
        assert now.evidence.log_e[kind].tolist() == pytest.approx(shown.tolist(), nan_ok=True)


@pytest.mark.parametrize(
    ("added", "voters"), [(CHALLENGED, ["v2"]), (POOLED, ["v2", "v3"])], ids=["challenger", "ensemble"]
)
class TestAdded:
    def test_labels_from_before_tell_of_the_model_what_they_told(
        self, connection: Connection, before: ModelSnapshot, added: dict[str, Any], voters: list[str]
    ) -> None:
        assert_known_as_before(taken(configured(connection, added), *voters), before)

    def test_alerts_and_evidence_go_on(
        self, connection: Connection, before: ModelSnapshot, added: dict[str, Any], voters: list[str]
    ) -> None:
        assert_alarms_as_before(taken(configured(connection, added), *voters), before)

    def test_labels_from_before_say_nothing_of_groups_by_votes(
        self, connection: Connection, before: ModelSnapshot, added: dict[str, Any], voters: list[str]
    ) -> None:
        found = taken(configured(connection, added), *voters)
        assert found.outcomes == before.outcomes > 0
        for name in {CHALLENGE, VOTES} & found.groupings.keys():
            assert found.groupings[name].beliefs.labels_counted.sum() == 0

    def test_nothing_is_lost_where_traffic_from_before_is_read_again(
        self, connection: Connection, before: ModelSnapshot, added: dict[str, Any], voters: list[str]
    ) -> None:
        site = configured(connection, added)
        again = [*stream(), *stream(*voters, begin=TRIED_AT, first=COUNT)]
        site.take_in([record(i, one.value, timestamp=one.timestamp) for i, one in enumerate(again)])
        found = site.monitor("m").refresh(NOW)
        assert_known_as_before(found, before)
        assert_alarms_as_before(found, before)

    def test_what_is_learned_with_it_leaves_the_model_as_accurate_as_it_is(
        self, connection: Connection, before: ModelSnapshot, added: dict[str, Any], voters: list[str]
    ) -> None:
        # Ever one in a thousand is out.
        site = configured(connection, added, interval=0.999)
        site.take_in(stream(*voters, begin=TRIED_AT, first=COUNT))
        found = labelled(site)
        there, then = found.groupings["region"], before.groupings["region"]
        right = MODEL == TRUE
        truth = np.array([right[region == REGION].mean() for region in range(2)])
        assert (there.beliefs.labels > then.beliefs.labels).all()
        assert (there.accuracy.lower <= truth).all()
        assert (there.accuracy.upper >= truth).all()

    def test_once_it_is_taken_away_all_is_as_it_was(
        self, connection: Connection, before: ModelSnapshot, added: dict[str, Any], voters: list[str]
    ) -> None:
        site = configured(connection, added)
        site.take_in(stream(*voters, begin=TRIED_AT, first=COUNT))
        labelled(site)
        found = configured(connection).monitor("m").refresh(NOW)
        assert found.outcomes > before.outcomes
        assert_known_as_before(found, before)
        assert_alarms_as_before(found, before)


def test_evidence_goes_on_with_the_first_predictions_that_carry_votes(
    connection: Connection, before: ModelSnapshot
) -> None:
    site = configured(connection, CHALLENGED)
    monitor = site.monitor("m")
    assert CHALLENGE not in monitor.refresh(NOW).groupings
    few = stream("v2", begin=TRIED_AT, first=COUNT)[:20]
    site.take_in(few)
    found, then = monitor.refresh(NOW).groupings["region"], before.groupings["region"]
    assert found.evidence is not None
    assert then.evidence is not None
    for kind, shown in then.evidence.log_e.items():
        assert found.evidence.log_e[kind].tolist() == pytest.approx(shown.tolist(), nan_ok=True)
    assert found.beliefs.labels_counted.tolist() == then.beliefs.labels_counted.tolist()


def test_a_binary_classifiers_performance_is_learned_from_labels_of_before(
    connection: Connection, before: ModelSnapshot
) -> None:
    curve = {"curve": {"task": "performance", "positive_class": "cat", "budget": {"labels": 1}}}
    worth = []
    for turn, (added, voters) in enumerate((({}, []), (CHALLENGED, ["v2"])), start=1):
        site = configured(connection, curve | added)
        site.take_in(stream(*voters, begin=TRIED_AT, first=turn * COUNT))
        space, reader = site.space("m"), site.reader("m")
        traffic, ledger = reader.traffic(), OutcomeLedger(space)
        ledger.fold(page(site).entries)
        ledger.place(votes_missing=has_voteless_traffic(space, traffic.traffic))
        index = GroupIndex(space, traffic.traffic, ledger.cells)
        facts = performance_facts(index, ledger, [], positive="cat", decay=0.0, now=NOW)
        assert facts is not None
        worth.append(facts.label_weights[facts.labels != UNLABELLED])
    assert len(worth[0]) == before.outcomes
    assert worth[1].tolist() == pytest.approx(worth[0].tolist())


@pytest.mark.parametrize("aimed", [0.8, 1.0])
def test_the_more_a_challenger_asks_the_more_is_known_of_the_model(
    connection: Connection, before: ModelSnapshot, aimed: float
) -> None:
    site = configured(connection, {"next": CHALLENGED["next"] | {"disagreement_share": aimed}})
    site.take_in(stream("v2", begin=TRIED_AT, first=COUNT))
    found = labelled(site, rounds=6)
    counted = found.groupings[CHALLENGE].beliefs.labels_counted.sum()
    assert counted > before.groupings["region"].beliefs.labels_counted.sum()
    now, then = (taken.groupings[ALL].accuracy for taken in (found, before))
    assert now.upper[0] - now.lower[0] < 1.01 * (then.upper[0] - then.lower[0])


def test_another_challenger_leaves_what_is_known_of_the_model(
    connection: Connection, before: ModelSnapshot
) -> None:
    first = configured(connection, CHALLENGED)
    first.take_in(stream("v2", begin=TRIED_AT, first=COUNT))
    labelled(first)
    other = configured(connection, {"next": CHALLENGED["next"] | {"challenger": "v3"}})
    found = taken(other, "v3", first=2 * COUNT)
    assert_known_as_before(found, before)
    assert_alarms_as_before(found, before)
    assert found.challenges["next"].labels.sum() == 0


def test_another_member_leaves_what_is_known_of_the_model(
    connection: Connection, before: ModelSnapshot
) -> None:
    first = configured(connection, POOLED)
    first.take_in(stream("v2", "v3", begin=TRIED_AT, first=COUNT))
    labelled(first)
    other = configured(connection, {"members": POOLED["members"] | {"members": ["v2"]}})
    found = taken(other, "v2", first=2 * COUNT)
    assert_known_as_before(found, before)
    assert_alarms_as_before(found, before)
    assert found.ensembles["members"].labels.sum() == 0


def test_predictions_that_still_lack_votes_are_known_by_their_own_labels(connection: Connection) -> None:
    site = configured(connection, CHALLENGED)
    shown = stream("v2", begin=TRIED_AT, first=COUNT)
    # The challenger is never asked about the south.
    untold = stream(begin=TRIED_AT, first=COUNT)
    site.take_in([untold[i] if REGION[i] else shown[i] for i in range(COUNT)])
    found = labelled(site)
    missing = found.groupings[CHALLENGE].groups.index(MISSING)
    south = found.groupings["region"].groups.index("south")
    counted = found.groupings["region"].beliefs.labels_counted
    assert found.groupings[CHALLENGE].beliefs.labels_counted[missing] == counted[south] > 0
