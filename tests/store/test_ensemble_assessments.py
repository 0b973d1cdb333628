"""An ensemble and its members are watched with labels that they share."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from store_site import NOW, Record, Site, message, record

from service.domain.cells import MISSING, VOTES
from service.monitoring.monitor import ModelMonitor
from service.store.connection import Connection

COUNT = 2_000
MEMBERS = ("knn", "bayes", "logistic")
SKILL = {"knn": 0.9, "bayes": 0.75, "logistic": 0.95}


def ensemble() -> tuple[np.ndarray, np.ndarray]:
    """Which items are spam [N], and which member says so [N, members]; half of all errors are common."""
    rng = np.random.default_rng(11)
    spam = rng.random(COUNT) < 0.4
    hard = rng.random(COUNT) < 0.1
    wrong = np.stack(
        [(rng.random(COUNT) > SKILL[name]) | (hard & (rng.random(COUNT) < 0.5)) for name in MEMBERS]
    )
    return spam, spam[:, None] ^ wrong.T


SPAM, SAID = ensemble()
TOGETHER = SAID.sum(axis=1) >= 2


def word(spam: bool) -> str:
    return "spam" if spam else "ham"


def stream(**fields: Any) -> list[Record]:
    return [
        record(
            i,
            message(
                i,
                predicted_class=word(bool(TOGETHER[i])),
                score=0.8,
                **({"votes": {m: word(bool(v)) for m, v in zip(MEMBERS, SAID[i], strict=True)}} | fields),
            ),
        )
        for i in range(COUNT)
    ]


def configured(connection: Connection, **changes: Any) -> Site:
    asked = {
        "task": "ensemble",
        "positive_class": "spam",
        "members": list(MEMBERS),
        "member_labels": 60,
        "budget": {"labels": 1_000},
        "max_in_flight": 40,
    }
    settings = {
        "classes": ["ham", "spam"],
        "score_bins": 1,
        "traffic_half_life_days": None,
        # Ever one in a thousand is out.
        "interval": 0.999,
        "assessments": {"votes": asked | changes},
    }
    return Site(connection, {"m": settings})


def watched(connection: Connection, records: list[Record] | None = None, **changes: Any) -> Site:
    site = configured(connection, **changes)
    site.take_in(stream() if records is None else records)
    return site


def answered(site: Site, monitor: ModelMonitor, rounds: int = 20) -> list[int]:
    """Numbers of the items that were asked for until nothing more was."""
    seen: list[int] = []
    for _ in range(rounds):
        monitor.refresh(NOW)
        if not monitor.ask(epoch=1, now=NOW).issued["votes"]:
            break
        seen += site.answer("m", lambda item: word(bool(SPAM[item])))
    return seen


def test_labels_are_shared_until_every_member_has_enough(connection: Connection) -> None:
    site = watched(connection)
    monitor = site.monitor("m")
    asked = answered(site, monitor)
    found = monitor.refresh(NOW).ensembles["votes"]
    assert found.plan.sum() == 0
    assert len(asked) < 0.6 * 60 * 4
    assert found.saving > 0.4
    assert np.all(found.labels >= 55)


def test_every_members_precision_is_within_its_interval(connection: Connection) -> None:
    site = watched(connection, member_labels=120)
    monitor = site.monitor("m")
    answered(site, monitor)
    found = monitor.refresh(NOW).ensembles["votes"]
    assert found.members == ("ensemble", *MEMBERS)
    truth = [SPAM[TOGETHER].mean(), *(SPAM[SAID[:, m]].mean() for m in range(3))]
    for name, value, lower, upper in zip(
        found.members, truth, found.beliefs.lower, found.beliefs.upper, strict=True
    ):
        assert lower <= value <= upper, name
        assert upper - lower < 0.25, name


def test_what_nobody_calls_positive_is_not_asked_about(connection: Connection) -> None:
    site = watched(connection)
    asked = answered(site, site.monitor("m"), rounds=3)
    assert len(asked) > 80
    assert (SAID[asked].any(axis=1) | TOGETHER[asked]).all()


def test_requests_in_flight_count_as_labels(connection: Connection) -> None:
    site = watched(connection)
    monitor = site.monitor("m")
    before = monitor.refresh(NOW).ensembles["votes"].plan.sum()
    issued = monitor.ask(epoch=1, now=NOW).issued["votes"]
    assert monitor.refresh(NOW).ensembles["votes"].plan.sum() == before - issued


def test_a_target_that_a_member_misses_is_reported(connection: Connection) -> None:
    # About as far from what the one reaches as from what the other does: three standard errors of 250 labels.
    site = watched(connection, targets={"precision": 0.75}, member_labels=250)
    monitor = site.monitor("m")
    answered(site, monitor)
    missed = monitor.refresh(NOW).ensembles["votes"].missed
    assert missed is not None
    by_name = dict(zip(("ensemble", *MEMBERS), missed, strict=True))
    assert by_name["bayes"] > 0.9
    assert by_name["logistic"] < 0.1


def test_what_labellers_see_shows_no_vote(connection: Connection) -> None:
    site = watched(connection)
    monitor = site.monitor("m")
    monitor.refresh(NOW)
    monitor.ask(epoch=1, now=NOW)
    for text in site.requests("m").read_outbox().values():
        said = json.loads(text)
        assert "votes" not in said
        assert VOTES not in json.dumps(said)


def test_before_the_first_prediction_nothing_is_estimated_of_an_ensemble(connection: Connection) -> None:
    monitor = configured(connection).monitor("m")
    assert monitor.refresh(NOW).ensembles == {}
    assert monitor.ask(epoch=1, now=NOW).issued["votes"] == 0


def test_predictions_without_all_votes_are_a_group_of_their_own(connection: Connection) -> None:
    site = watched(connection, stream(votes={"knn": "spam"}))
    snapshot = site.monitor("m").refresh(NOW)
    assert snapshot.groupings[VOTES].groups == [MISSING]
    assert snapshot.ensembles == {}


def test_after_a_restart_nothing_is_another_group(connection: Connection) -> None:
    records = stream()
    site = watched(connection, records[:900])
    site.take_in(records)
    groups = site.monitor("m").refresh(NOW).groupings[VOTES]
    shares = dict(zip(groups.groups, groups.beliefs.shares, strict=True))
    votes = [f"{int(t)}" + "".join(f"{int(v)}" for v in said) for t, said in zip(TOGETHER, SAID, strict=True)]
    assert shares["1111"] * COUNT == votes.count("1111")
    assert shares["0010"] * COUNT == votes.count("0010")
