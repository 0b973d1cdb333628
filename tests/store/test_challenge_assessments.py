"""A challenger is compared with the model, with labels that serve both."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from store_site import NOW, Record, Site, message, record

from service.domain.cells import AGREE, CHALLENGE, DISAGREE, MISSING
from service.domain.groupings import ALL
from service.monitoring.challenger import ChallengeSnapshot
from service.monitoring.monitor import ModelMonitor
from service.store.connection import Connection
from service.store.references import ReferenceStore, ReferenceWindow

COUNT = 3_000
CLASSES = ("cat", "dog", "owl")
REGIONS = ("north", "south")


def both() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """True classes, what the model and its challenger say [N], and regions; the challenger is better."""
    rng = np.random.default_rng(7)
    true = rng.integers(3, size=COUNT)
    shared = rng.random(COUNT) < 0.06
    wrong = (true + rng.integers(1, 3, COUNT)) % 3
    model = np.where(shared | (rng.random(COUNT) < 0.12), wrong, true)
    challenger = np.where(shared | (rng.random(COUNT) < 0.04), wrong, true)
    return true, model, challenger, rng.integers(2, size=COUNT)


TRUE, MODEL, CHALLENGER, REGION = both()
DIFFER = MODEL != CHALLENGER


def stream(votes: bool = True) -> list[Record]:
    return [
        record(
            i,
            message(
                i,
                predicted_class=CLASSES[MODEL[i]],
                score=0.9,
                attributes={"region": REGIONS[REGION[i]]},
                **({"votes": {"v2": CLASSES[CHALLENGER[i]]}} if votes else {}),
            ),
        )
        for i in range(COUNT)
    ]


def configured(connection: Connection, **changes: Any) -> Site:
    asked = {
        "task": "challenge",
        "challenger": "v2",
        "grouping": "region",
        "margin": 0.02,
        "budget": {"labels": 1_000},
        "max_in_flight": 50,
    }
    settings = {
        "classes": list(CLASSES),
        "score_bins": 1,
        # Ever one in a thousand is out.
        "interval": 0.999,
        "traffic_half_life_days": None,
        "groupings": {"region": {"by": "attribute", "attribute": "region"}},
        "assessments": {"next": asked | changes},
    }
    return Site(connection, {"m": settings})


def answered(site: Site, monitor: ModelMonitor, rounds: int) -> list[int]:
    """Numbers of the items that were asked for."""
    seen: list[int] = []
    for _ in range(rounds):
        monitor.refresh(NOW)
        monitor.ask(epoch=1, now=NOW)
        seen += site.answer("m", lambda item: CLASSES[TRUE[item]])
    return seen


def challenge_rounds(
    connection: Connection, rounds: int = 6
) -> tuple[ChallengeSnapshot, list[int], ModelMonitor]:
    site = configured(connection)
    site.take_in(stream())
    monitor = site.monitor("m")
    asked = answered(site, monitor, rounds)
    return monitor.refresh(NOW).challenges["next"], asked, monitor


def test_the_better_one_is_found_overall_and_in_every_group(connection: Connection) -> None:
    found, asked, _ = challenge_rounds(connection)
    assert found.groups == [ALL, *REGIONS]
    difference = (CHALLENGER == TRUE).mean() - (MODEL == TRUE).mean()
    assert found.difference.lower[0] <= difference <= found.difference.upper[0]
    assert found.better[0] > 0.99
    assert found.worse[0] < 0.01
    assert found.evidence_better[0] > 20
    assert (found.difference.mean[1:] > 0).all()
    # The latest labels count more than older ones, as the model may have changed. How much more differs from
    # run to run: all labels are of one instant, and identifiers of requests, which are random, order them.
    assert 0.1 * DIFFER[asked].sum() < found.labels[0] < DIFFER[asked].sum()
    assert found.labels[1:].sum() == pytest.approx(found.labels[0], rel=0.1)


def test_how_often_they_disagree_is_known_without_a_label(connection: Connection) -> None:
    found, _, _ = challenge_rounds(connection, rounds=0)
    expected = [DIFFER.mean(), *(DIFFER[r == REGION].mean() for r in range(2))]
    assert found.disagreement == pytest.approx(expected)
    assert found.labels.sum() == 0
    assert found.evidence_better == pytest.approx(1)
    assert found.known == 1


def test_four_of_five_labels_go_to_disagreements(connection: Connection) -> None:
    _, asked, _ = challenge_rounds(connection)
    assert len(asked) == 300
    # Three standard errors of 300 draws.
    assert DIFFER[asked].mean() == pytest.approx(0.8, abs=3 * (0.16 / 300) ** 0.5)


def test_where_disagreements_are_rare_the_budget_waits_for_them(connection: Connection) -> None:
    site, records = configured(connection), stream()
    rare = np.flatnonzero(DIFFER)[:16]
    site.take_in([records[i] for i in sorted({*rare.tolist(), *np.flatnonzero(~DIFFER)[:1_000].tolist()})])
    asked = answered(site, site.monitor("m"), 20)
    assert set(rare.tolist()) <= set(asked)
    # A fifth of all, which is a quarter of the disagreements, give or take one a round that has them.
    assert len(asked) <= 16 * 1.25 + 4


def test_another_challenger_begins_without_labels_and_the_model_is_no_worse_for_it(
    connection: Connection,
) -> None:
    site = configured(connection)
    # Of the other one, who agrees with the model as often, is known what it predicts, too.
    third = np.roll(CHALLENGER, 1)
    records = [
        record(
            offset,
            message(
                offset,
                predicted_class=CLASSES[MODEL[i]],
                score=0.9,
                attributes={"region": REGIONS[REGION[i]]},
                votes={"v2": CLASSES[CHALLENGER[i]], "v3": CLASSES[third[i]]},
            ),
        )
        for offset, i in enumerate([*range(COUNT), *range(COUNT)])
    ]
    site.take_in(records[:COUNT])
    answered(site, site.monitor("m"), 6)
    other = configured(connection, challenger="v3")
    other.take_in(records[COUNT:])
    snapshot = other.monitor("m").refresh(NOW)
    found, everything = snapshot.challenges["next"], snapshot.groupings[ALL]
    assert found.labels.sum() == 0
    assert found.evidence_worse == pytest.approx(1)
    assert everything.accuracy.upper[0] > (MODEL == TRUE).mean()


def test_the_models_own_accuracy_stays_right(connection: Connection) -> None:
    _, asked, monitor = challenge_rounds(connection)
    everything = monitor.refresh(NOW).groupings[ALL]
    truth = (MODEL == TRUE).mean()
    assert everything.accuracy.lower[0] <= truth <= everything.accuracy.upper[0]
    # Plainly counted, labels of disagreements would say far less.
    assert (MODEL == TRUE)[asked].mean() < 0.6 < everything.accuracy.mean[0]


def test_who_answers_as_the_challenger_does_speaks_for_it(connection: Connection) -> None:
    site = configured(connection)
    site.take_in(stream())
    monitor = site.monitor("m")
    monitor.refresh(NOW)
    monitor.ask(epoch=1, now=NOW)
    # Then it is right wherever the two disagree.
    site.answer("m", lambda item: CLASSES[CHALLENGER[item]])
    found = monitor.refresh(NOW).challenges["next"]
    assert found.difference.mean[0] == pytest.approx(
        found.disagreement[0] * found.labels[0] / (found.labels[0] + 1.5)
    )


def test_what_labellers_see_shows_nothing_of_the_challenger(connection: Connection) -> None:
    site = configured(connection)
    site.take_in(stream())
    monitor = site.monitor("m")
    monitor.refresh(NOW)
    monitor.ask(epoch=1, now=NOW)
    texts = list(site.requests("m").read_outbox().values())
    assert len(texts) == 50
    for text in texts:
        said = json.loads(text)
        assert "votes" not in said
        assert not {CHALLENGE, AGREE, DISAGREE} & set(json.dumps(said).split('"'))


def test_predictions_without_the_challengers_are_a_group_of_their_own(connection: Connection) -> None:
    site = configured(connection)
    site.take_in(stream(votes=False))
    snapshot = site.monitor("m").refresh(NOW)
    assert snapshot.groupings[CHALLENGE].groups == [MISSING]
    assert snapshot.challenges == {}


def test_before_the_first_prediction_nothing_is_known(connection: Connection) -> None:
    monitor = configured(connection).monitor("m")
    assert monitor.refresh(NOW).challenges == {}
    assert monitor.ask(epoch=1, now=NOW).issued["next"] == 0


def test_after_a_restart_nothing_is_another_group(connection: Connection) -> None:
    site = configured(connection)
    records = stream()
    site.take_in(records[:900])
    site.take_in(records)
    groups = site.monitor("m").refresh(NOW).groupings[CHALLENGE]
    shares = dict(zip(groups.groups, groups.beliefs.shares, strict=True))
    assert shares[DISAGREE] == pytest.approx(DIFFER.mean())


def test_evidence_begins_again_after_the_reference(connection: Connection) -> None:
    site = configured(connection)
    site.take_in(stream())
    monitor = site.monitor("m")
    answered(site, monitor, 6)
    assert monitor.refresh(NOW).challenges["next"].evidence_better[0] > 20
    ReferenceStore(connection, site.keys("m")).set(ReferenceWindow(-math.inf, NOW + 1, NOW + 1))
    assert monitor.refresh(NOW).challenges["next"].evidence_better == pytest.approx(1)
