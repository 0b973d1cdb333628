"""The monitor asks: within its budgets, each item once, in proportion to traffic, giving nothing away."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
from redis_cluster import node_port
from scipy.stats import chisquare
from store_site import HASH_KEY, NOW, Record, Site, message, outcomes, page, record, restore, save

from service.app.pool_sizing import asked_pools
from service.config.settings import RedisSettings
from service.demo.servers import Child, EmbeddedRedis, _redis_binary
from service.domain.errors import FenceRefused
from service.domain.messages import LabelRequest
from service.domain.pool_key import PoolKey
from service.domain.siphash import siphash24
from service.monitoring.monitor import ModelMonitor
from service.monitoring.request_issuer import Round
from service.statistics.policies import POLICIES
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.labels import LabelEvent
from service.store.requests import OpenRequest

CLASSES = ["cat", "dog", "owl"]
REGION = {"region": {"by": "attribute", "attribute": "region"}}
DAY = 86_400.0


def model(assessments: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    plain = {"classes": CLASSES, "score_bins": 4, "groupings": REGION, "traffic_half_life_days": None}
    return {"m": {**plain, "assessments": dict(assessments), **fields}}


def asking(**fields: Any) -> dict[str, Any]:
    """An assessment; a random one of everything, unless it is said otherwise."""
    return {"policy": "random", "budget": {"labels": 1_000}, "max_in_flight": 1_000, **fields}


def stream(count: int, *, first: int = 0, **fields: Any) -> list[Record]:
    """One record for each of the items `first`, `first + 1`, ..."""
    rng = np.random.default_rng(first)
    return [
        record(
            offset,
            message(
                first + offset,
                predicted_class=CLASSES[int(rng.integers(3))],
                score=round(float(rng.uniform()), 3),
                attributes={"region": ["north", "south"][int(rng.integers(2))]},
                **fields,
            ),
        )
        for offset in range(count)
    ]


def ask(monitor: ModelMonitor, *, epoch: int = 1, now: float = NOW) -> Round:
    """One round of a leader."""
    monitor.refresh(now)
    return monitor.ask(epoch=epoch, now=now)


def opened(site: Site) -> dict[str, OpenRequest]:
    return site.reader("m").requests().open


def outbox(site: Site) -> list[dict[str, Any]]:
    """The messages to be published, by item."""
    messages = [json.loads(text) for text in site.requests("m").read_outbox().values()]
    return sorted(messages, key=lambda one: str(one["item_id"]))


def answer(site: Site, count: int) -> None:
    """Answer as many of the open requests."""
    waiting = [one for one in outbox(site) if one["request_id"] in opened(site)]
    site.labels("m").apply(
        0,
        [
            LabelEvent(one["request_id"], one["item_id"], "answer", "cat", f"{i:016x}", NOW, "ana")
            for i, one in enumerate(waiting[:count])
        ],
        now=NOW,
    )


def test_nothing_is_asked_before_the_first_look(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking()}))
    site.take_in(stream(20))
    assert site.monitor("m").ask(epoch=1, now=NOW) == Round({}, {}, {}, 0, 0)


def test_nothing_is_asked_of_a_model_without_traffic(connection: Connection) -> None:
    site = Site(
        connection, model({"ask": asking(), "least": asking(task="identification", grouping="region")})
    )
    assert ask(site.monitor("m")) == Round(*[{"ask": 0, "least": 0}] * 3, 0, 0)


def test_requests_in_flight_stay_within_their_bound(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking(max_in_flight=7)}))
    site.take_in(stream(200))
    monitor = site.monitor("m")
    assert ask(monitor).issued == {"ask": 7}
    assert ask(monitor).issued == {"ask": 0}
    answer(site, 3)
    assert ask(monitor).issued == {"ask": 3}
    assert len(opened(site)) == 7


def test_a_budget_is_spent_and_not_exceeded(connection: Connection) -> None:
    ends = asking(budget={"labels": 10}, max_in_flight=4)
    site = Site(connection, model({"ask": ends}))
    site.take_in(stream(200))
    monitor = site.monitor("m")
    issued = []
    for _ in range(5):
        issued.append(ask(monitor).issued["ask"])
        answer(site, 4)
    assert issued == [4, 4, 2, 0, 0]
    assert site.reader("m").requests().budget == {"ask|0": 10}
    assert monitor.refresh(NOW).assessments["ask"].budget.remaining == 0


def test_leaders_with_an_old_picture_exceed_no_budget(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking(budget={"labels": 10})}))
    site.take_in(stream(200))
    monitors = [site.monitor("m", seed) for seed in range(3)]
    for monitor in monitors:
        monitor.refresh(NOW)
    assert sum(monitor.ask(epoch=1, now=NOW).issued["ask"] for monitor in monitors) == 10


def test_a_budget_is_renewed_with_its_window(connection: Connection) -> None:
    daily = asking(budget={"labels": 5, "per_days": 1, "burst": 1, "reserve": 0}, lease_seconds=1e7)
    site = Site(connection, model({"ask": daily}))
    site.take_in(stream(200))
    monitor = site.monitor("m")
    midnight = NOW // DAY * DAY + DAY
    assert ask(monitor, now=midnight - 2).issued == {"ask": 5}
    assert ask(monitor, now=midnight - 1).issued == {"ask": 0}
    later = [replace(each, timestamp=int(midnight * 1_000)) for each in stream(200, first=200)]
    site.take_in(later, partition=1, now=midnight)
    assert sum(ask(monitor, now=midnight + hour * 3_600).issued["ask"] for hour in range(24)) == 5
    assert sorted(site.reader("m").requests().budget.values()) == [5, 5]


def test_no_item_is_asked_for_twice(connection: Connection) -> None:
    questions = {"ask": asking(), "regions": asking(grouping="region", policy="thompson")}
    site = Site(connection, model(questions))
    site.take_in(stream(300))
    site.take_in(stream(300, first=150), partition=1)
    monitor = site.monitor("m")
    asked: list[str] = []
    for _ in range(12):
        ask(monitor)
        asked += [one["item_id"] for one in outbox(site)]
        site.requests("m").remove_published(list(site.requests("m").read_outbox()))
    assert len(asked) > 60
    assert len(asked) == len(set(asked))
    assert len(asked) == sum(site.reader("m").requests().budget.values())


def test_a_leader_of_the_past_asks_for_nothing(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking(max_in_flight=5)}))
    site.take_in(stream(50))
    old, new = site.monitor("m", 1), site.monitor("m", 2)
    old.refresh(NOW)
    ask(new, epoch=8)
    with pytest.raises(FenceRefused):
        old.ask(epoch=7, now=NOW)
    assert len(opened(site)) == 5


def test_every_request_is_a_message_of_the_contract(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking(lease_seconds=90.0)}))
    payloads = [{"payload": {"text": "grün"}}, {"payload_uri": "s3://a"}, {}]
    site.take_in([record(i, message(i, **fields)) for i, fields in enumerate(payloads)])
    assert ask(site.monitor("m")).issued == {"ask": 3}
    inline, linked, bare = [
        LabelRequest.model_validate_json(json.dumps(one, ensure_ascii=False)) for one in outbox(site)
    ]
    assert inline.model == "m"
    assert [one.item_id for one in (inline, linked, bare)] == ["0", "1", "2"]
    assert inline.classes == CLASSES
    assert inline.attempt == 1
    assert inline.requested_at.timestamp() == NOW
    assert inline.deadline.timestamp() == NOW + 90
    assert (inline.payload, inline.payload_uri) == ({"text": "grün"}, None)
    assert (linked.payload, linked.payload_uri) == (None, "s3://a")
    assert (bare.payload, bare.payload_uri) == (None, None)
    assert len({one.request_id for one in (inline, linked, bare)}) == 3


def test_what_a_labeller_sees_is_the_same_whatever_the_model_predicted(connection: Connection) -> None:
    seen = []
    for name, says in [
        ("sure", {"predicted_class": "cat", "score": 0.99, "attributes": {"region": "north"}}),
        ("unsure", {"probabilities": [0.2, 0.3, 0.5], "predicted_class": ..., "score": ...}),
        ("ensemble", {"predicted_class": "owl", "score": 0.1, "votes": {"first": "dog"}}),
    ]:
        site = Site(
            Connection(connection.client, f"{connection.prefix}.{name}"),
            model({"ask": asking(), "region": asking(grouping="region")}),
        )
        site.take_in([record(0, message("a", payload="picture", **says))])
        ask(site.monitor("m"))
        seen.append(list(site.requests("m").read_outbox().items()))
    assert len(seen[0]) == 1
    assert seen[0] == seen[1] == seen[2]


def test_a_prediction_is_revealed_where_it_is_configured(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking(reveal_prediction=True)}))
    site.take_in([record(0, message("a", predicted_class="dog", score=0.75))])
    ask(site.monitor("m"))
    (one,) = outbox(site)
    revealed = LabelRequest.model_validate_json(json.dumps(one)).prediction
    assert revealed is not None
    assert (revealed.predicted_class, revealed.score) == ("dog", 0.75)


def test_draws_within_a_group_are_uniform_over_its_traffic(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking(max_in_flight=400)}))
    rng = np.random.default_rng(3)
    bins = rng.choice(4, p=[0.4, 0.3, 0.2, 0.1], size=1_000)
    pooled = [
        message(i, score=(int(b) + 0.5) / 4, time=f"2027-01-01T00:{i // 60:02d}:{i % 60:02d}Z")
        for i, b in enumerate(bins)
    ]
    site.take_in([record(0, *pooled[0::2])])
    site.take_in([record(0, *pooled[1::2])], partition=1)
    assert ask(site.monitor("m")).issued == {"ask": 400}
    drawn = [int(one["item_id"]) for one in outbox(site)]
    # A cell's slots hold all of its items, so every item of the traffic is as likely as every other. Whatever
    # the seeds give, so small a probability is not chance.
    for name, part in [
        ("score bins", lambda item: int(bins[item])),
        ("partitions", lambda item: item % 2),
        ("time", lambda item: item // 250),
    ]:
        expected = Counter(part(item) for item in range(1_000))
        found = Counter(part(item) for item in drawn)
        parts = sorted(expected)
        result = chisquare([found[p] for p in parts], [expected[p] * 400 / 1_000 for p in parts])
        assert result.pvalue > 1e-4, name


def test_what_is_drawn_of_a_group_has_the_highest_priorities_of_all_its_partitions(
    connection: Connection,
) -> None:
    six = model({"ask": asking(max_in_flight=6)}, score_bins=1)
    site = Site(connection, six)
    items = [message(i) for i in range(24)]
    site.take_in([record(0, *items[:8])])
    site.take_in([record(0, *items[8:])], partition=1)
    ask(site.monitor("m"))
    key = PoolKey(HASH_KEY, "m")
    times = np.full(24, NOW)
    hashes = key.item_hashes(siphash24([str(item).encode() for item in range(24)], HASH_KEY), times, times)
    noise = key.noise(asked_pools(site.settings, "m", site.space("m"))["all"], hashes)
    assert {int(one["item_id"]) for one in outbox(site)} == set(np.argsort(noise)[-6:].tolist())


def test_an_exhausted_group_gives_way_to_the_next_best(connection: Connection) -> None:
    weakest = asking(task="identification", grouping="region", policy="thompson", max_in_flight=10)
    site = Site(connection, model({"ask": weakest}, score_bins=1))
    few = [message(f"s{i}", score=0.01, attributes={"region": "south"}) for i in range(6)]
    many = [message(f"n{i}", score=0.99, attributes={"region": "north"}) for i in range(30)]
    site.take_in([record(0, *few, *many)])
    done = ask(site.monitor("m"))
    assert done.issued == {"ask": 10}
    assert done.shortfall == {"ask": 0}
    groups = Counter(one.group for one in opened(site).values())
    assert groups == {"south": 6, "north": 4}


def test_a_shortfall_is_told_when_the_pool_is_exhausted(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking(max_in_flight=10)}, score_bins=1))
    site.take_in([record(0, *[message(i) for i in range(4)])])
    done = ask(site.monitor("m"))
    assert done.issued == {"ask": 4}
    assert done.shortfall == {"ask": 6}


def test_a_group_whose_pool_is_used_up_waits_for_further_predictions(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking()}, score_bins=1))
    step, monitor = site.prediction_step(), site.monitor("m")
    step.assign(0, 0)
    for now in (NOW, NOW + 20, NOW + 40, NOW + 60):
        first = int(now - NOW)
        step.process(0, [record(first + i, message(first + i)) for i in range(10)], now)
        step.flush(0, now)
        assert ask(monitor).issued == {"ask": 10}
        assert ask(monitor).issued == {"ask": 0}
        step.process(0, [record(first + 10, b"[]")], now)
        step.flush(0, now + 10)


def test_requests_in_flight_count_as_labelled_when_the_next_are_chosen(connection: Connection) -> None:
    thompson = asking(grouping="region", policy="thompson", max_in_flight=20)
    site = Site(connection, model({"ask": thompson}, score_bins=1))
    site.take_in([record(0, *[message(f"n{i}", attributes={"region": "north"}) for i in range(100)])])
    assert ask(site.monitor("m")).issued == {"ask": 20}
    site.take_in([record(1, *[message(f"s{i}", attributes={"region": "south"}) for i in range(100)])])
    more = Site(connection, model({"ask": {**thompson, "max_in_flight": 30}}, score_bins=1))
    assert ask(more.monitor("m")).issued == {"ask": 10}
    groups = Counter(one.group for one in opened(site).values())
    assert groups["south"] >= 8, "the north has its twenty, though none is answered"


def test_an_unanswered_request_is_issued_again_and_then_expires(connection: Connection) -> None:
    site = Site(
        connection,
        model({"ask": asking(max_in_flight=2, max_attempts=3, lease_seconds=60, budget={"labels": 2})}),
    )
    site.take_in([record(0, message("a"), message("b"))])
    monitor = site.monitor("m")
    assert ask(monitor).issued == {"ask": 2}
    first = outbox(site)
    for attempt in (2, 3):
        now = NOW + 60 * (attempt - 1)
        assert ask(monitor, now=now - 1).reissued == 0
        assert ask(monitor, now=now) == Round(*[{"ask": 0}] * 3, 0, 2)
        again = [LabelRequest.model_validate_json(json.dumps(one)) for one in outbox(site)]
        assert [one.request_id for one in again] == [one["request_id"] for one in first]
        assert {one.attempt for one in again} == {attempt}
        assert {one.deadline.timestamp() for one in again} == {now + 60}
        assert site.reader("m").requests().budget == {"ask|0": 2}
    assert ask(monitor, now=NOW + 180) == Round(*[{"ask": 0}] * 3, 2, 0)
    facts = site.reader("m").requests()
    assert facts.open == {}
    assert facts.outbox_size == 0
    assert facts.budget == {"ask|0": 0}
    site.take_in([record(1, message("c"))])
    assert ask(monitor, now=NOW + 181).issued == {"ask": 1}, "what expired may be spent on another item"


def test_requests_of_an_assessment_that_is_gone_expire(connection: Connection) -> None:
    before = Site(connection, model({"ask": asking(lease_seconds=60)}))
    before.take_in(stream(3))
    ask(before.monitor("m"))
    after = Site(connection, model({"other": asking()}))
    assert ask(after.monitor("m"), now=NOW + 60).expired == 3


def test_labels_reach_the_beliefs_and_leave_them_when_redis_is_restored(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking(max_in_flight=10)}))
    site.take_in(stream(100))
    monitor = site.monitor("m")
    ask(monitor)
    answer(site, 4)
    assert monitor.refresh(NOW).outcomes == 4
    backup = save(connection)
    answer(site, 6)
    assert monitor.refresh(NOW).outcomes == 10
    restore(connection, backup)
    assert monitor.refresh(NOW).outcomes == 4
    restore(connection, {})
    assert monitor.refresh(NOW).outcomes == 0


def test_outcomes_are_read_page_by_page(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(connection, model({"ask": asking(max_in_flight=10)}))
    site.take_in(stream(100))
    ask(site.monitor("m"))
    answer(site, 10)
    for size in (3, 5):
        monkeypatch.setattr("service.store.facts._PAGE", size)
        assert len(page(site).entries) == size
        assert site.monitor("m").refresh(NOW).outcomes == 10


def test_a_monitor_that_runs_on_forgets_what_the_stream_lets_go_of_like_one_that_starts_again(
    connection: Connection,
) -> None:
    site = Site(connection, model({"ask": asking(max_in_flight=10)}))
    site.take_in(stream(100))
    monitor = site.monitor("m")
    ask(monitor)
    answer(site, 10)
    assert monitor.refresh(NOW).outcomes == 10
    first, *_ = outcomes(site)
    revised = LabelEvent(first.fact.request_id, first.fact.item_id, "correction", "dog", "f" * 16, NOW, "ana")
    assert site.labels("m").apply(0, [revised], now=NOW)[0].status == "applied"
    connection.client.xtrim(site.keys("m").outcomes, maxlen=7, approximate=False)
    taken, anew = monitor.refresh(NOW), site.monitor("m").refresh(NOW)
    assert taken.outcomes == anew.outcomes == 6, "the correction has lost what it revises"
    for name, grouping in taken.groupings.items():
        np.testing.assert_array_equal(grouping.beliefs.labels, anew.groupings[name].beliefs.labels)
        np.testing.assert_array_equal(grouping.accuracy.mean, anew.groupings[name].accuracy.mean)
    assert taken.recent == anew.recent


@pytest.fixture
def cluster(redis_server: EmbeddedRedis, tmp_path: Path) -> Iterator[Connection]:  # noqa: ARG001 - skips without a server
    """A Redis Cluster of one node, which refuses keys of different slots in one script."""
    port = node_port()
    options = {"port": port, "bind": "127.0.0.1", "cluster-enabled": "yes", "dir": tmp_path, "save": ""}
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    client = build_redis(RedisSettings.model_validate({"url": f"redis://127.0.0.1:{port}/0"}))

    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False

    with Child("a Redis Cluster", [_redis_binary(), *arguments]) as server:
        server.wait_until(answers)
        client.execute_command("CLUSTER", "ADDSLOTS", *range(16_384))
        server.wait_until(lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"))
        yield Connection(client, "p")
        client.close()


def test_everything_runs_on_a_redis_cluster(cluster: Connection) -> None:
    site = Site(cluster, model({"ask": asking(max_in_flight=4, max_attempts=2, lease_seconds=60)}))
    site.take_in(stream(50))
    site.take_in(stream(50, first=50), partition=1)
    monitor = site.monitor("m")
    assert ask(monitor).issued == {"ask": 4}
    answer(site, 2)
    assert ask(monitor).issued == {"ask": 2}
    assert ask(monitor, now=NOW + 60).reissued == 4
    assert ask(monitor, now=NOW + 120).expired == 4
    site.take_in(stream(60))
    labels = site.label_step()
    labels.assign(0, 0)
    labels.process(0, [record(0, b"{")], NOW)
    labels.flush(0, NOW)
    assert monitor.refresh(NOW).outcomes == 2
    assert site.facts("m").offsets == {0: 60, 1: 50}


BY_CLASS = {**REGION, "class": {"by": "predicted_class"}}


def shared(site: Site, assessment: str) -> int:
    """Draws of an assessment that cost nothing, as their items had been requested before."""
    return site.reader("m").requests().tallies.get(("shared", assessment), 0)


EVERY_QUESTION = {
    "accuracy": {"grouping": "class"},
    "overall": {"metric": "overall_accuracy"},
    "calibration": {"metric": "calibration", "grouping": "region"},
    "confusion": {"metric": "confusion", "grouping": "class"},
    "worst": {"task": "identification", "grouping": "class", "top_m": 2},
    "least-calibrated": {"task": "identification", "metric": "calibration", "grouping": "region"},
    "dearest": {"task": "identification", "metric": "cost", "grouping": "class"},
    "compare": {"task": "comparison", "grouping": "class", "between": ["cat", "owl"]},
}

NOT_CERTIFIED = {"overall", "compare"}
"""Questions that the configuration refuses with the policy certify: of score bins, or of two groups alone."""


@pytest.mark.parametrize("prior", ["learned", "informed_jeffreys"])
@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "adaptive"])
def test_every_policy_asks_every_question(connection: Connection, policy: str, prior: str) -> None:
    refused = NOT_CERTIFIED if policy == "certify" else ()
    questions = {
        name: asking(**question, policy=policy, max_in_flight=6)
        for name, question in EVERY_QUESTION.items()
        if name not in refused
    }
    keys = {"costs": {"default": 2}, "alerts": {"min_accuracy": 0.9}}
    site = Site(connection, model(questions, groupings=BY_CLASS, prior=prior, **keys))
    site.take_in(stream(600))
    monitor = site.monitor("m")
    issued = ask(monitor).issued
    drawn = {name: count + shared(site, name) for name, count in issued.items()}
    assert drawn == dict.fromkeys(questions, 6)
    answer(site, 30)
    assert 0 < sum(ask(monitor).issued.values()) <= 30 + 6 * len(questions) - sum(issued.values())
    assert {one.group for one in opened(site).values() if one.assessment == "compare"} <= {"cat", "owl"}


def test_overall_accuracy_is_asked_by_score_bin_and_its_labels_say_so(connection: Connection) -> None:
    question = asking(metric="overall_accuracy", policy="thompson", max_in_flight=40)
    site = Site(connection, model({"ask": question}))
    site.take_in(stream(400))
    assert ask(site.monitor("m")).issued == {"ask": 40}
    bins = {"[0,0.25)", "[0.25,0.5)", "[0.5,0.75)", "[0.75,1]"}
    assert {one.group for one in opened(site).values()} == bins
    answer(site, 40)
    assert {(one.fact.grouping, one.fact.group) for one in outcomes(site)} == {
        ("score_bin", name) for name in bins
    }


def test_what_was_named_in_a_round_counts_as_answered(connection: Connection) -> None:
    even = asking(grouping="region", policy="epsilon_greedy", max_in_flight=40)
    site = Site(connection, model({"ask": even}, prior="uniform", score_bins=1))
    items = [message(i, attributes={"region": "north" if i < 60 else "south"}) for i in range(100)]
    site.take_in([record(0, *items)])
    ask(site.monitor("m"))
    groups = Counter(one.group for one in opened(site).values())
    # Without counting, the group of more traffic would be asked all the time, but for one label in 20.
    assert min(groups.values()) >= 12


def test_a_comparison_waits_until_both_groups_have_traffic(connection: Connection) -> None:
    question = asking(task="comparison", grouping="region", between=["north", "west"])
    site = Site(connection, model({"ask": question}))
    site.take_in(stream(50))
    assert ask(site.monitor("m")).issued == {"ask": 0}


def test_class_probabilities_of_all_partitions_come_together(connection: Connection) -> None:
    site = Site(connection, model({}, groupings=BY_CLASS, traffic_half_life_days=1))
    shown = {"predicted_class": ..., "score": ...}
    later = {"time": "2027-01-02T00:00:00Z"}
    site.take_in([record(0, message(1, probabilities=[0.7, 0.2, 0.1], time="2027-01-01T00:00:00Z", **shown))])
    site.take_in([record(0, message(2, probabilities=[0.5, 0.5, 0.0], **later, **shown))], partition=1)
    site.take_in([record(0, message(3, predicted_class="owl", **later))], partition=2)
    facts = site.reader("m").traffic()
    assert list(facts.probability_sums) == [0]
    # The first is a half-life older than the second.
    expected = 0.5 * np.array([0.7, 0.2, 0.1]) + [0.5, 0.5, 0.0]
    found = facts.probability_sums[0]
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), rtol=1e-9)
    assert site.monitor("m").refresh(NOW).groupings["class"].confusion is not None


def test_a_process_that_starts_again_recalls_what_was_estimated(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking(grouping="region", max_in_flight=40)}))
    site.take_in(stream(200))
    ask(site.monitor("m"))
    waiting = [one for one in outbox(site) if one["request_id"] in opened(site)]
    labels = [
        LabelEvent(
            one["request_id"], one["item_id"], "answer", "cat", f"{i:016x}", NOW + 3_600 * (1 + i % 4), ""
        )
        for i, one in enumerate(waiting)
    ]
    site.labels("m").apply(0, labels, now=NOW)
    started, now = site.monitor("m"), NOW + 5 * 3_600
    started.refresh(now)
    recalled = 0
    while started.recall(now):
        recalled += 1
    past = started.refresh(now).past
    assert len(past) == recalled + 1, "now is remembered, not recalled"
    counts = [int(moment.groupings["all"].labels[0]) for moment in past]
    assert counts == sorted(counts)
    assert {10, 20, 30} <= set(counts)


def test_the_age_of_the_pool_is_reported_from_a_sample_of_all_its_parts(connection: Connection) -> None:
    site = Site(connection, model({"ask": asking()}))
    old, young = ({"time": f"2027-01-15T0{hour}:00:00Z"} for hour in (6, 7))
    site.take_in(stream(300, **old))
    site.take_in(stream(100, first=300, **young), partition=1)
    taken = site.monitor("m").refresh(NOW)
    assert taken.pool_items == 400
    assert taken.pool_item_age == 2 * 3_600


def drifting_site(connection: Connection, *, interval: float = 0.95, **drift: Any) -> Site:
    """A model of which one region's scores have fallen since the reference."""
    question = asking(grouping="region", max_in_flight=100)
    settings = {"window_hours": 1, "reference_predictions": 100, **drift}
    shown = model({"ask": question}, drift=settings, interval=interval)
    site = Site(connection, shown)

    def scores(low: str, first: int) -> list[Any]:
        return [
            message(i, attributes={"region": region}, score=0.3 if region == low else 0.9)
            for i in range(first, first + 1_000)
            for region in ["north" if i % 10 else "south"]
        ]

    reference = record(0, *scores("nowhere", 0), timestamp=int((NOW - 2 * 3_600) * 1_000))
    site.take_in([reference])
    monitor = site.monitor("m")
    monitor.refresh(NOW - 60)
    monitor.ask(epoch=1, now=NOW - 60)
    site.take_in([reference, record(1, *scores("south", 1_000), timestamp=int((NOW - 60) * 1_000))])
    return site


def test_a_group_that_drifts_is_asked_more_than_its_policy_would(connection: Connection) -> None:
    site = drifting_site(connection, label_share=0.5)
    done = ask(site.monitor("m"))
    assert done.issued == {"ask": 0}  # all that may be in flight is in flight
    answer(site, 100)
    done = ask(site.monitor("m"))
    assert done.issued == {"ask": 100}
    # Five standard deviations of a binomial around one half.
    assert 25 <= done.aimed["ask"] <= 75
    groups = Counter(one.group for one in opened(site).values())
    assert groups["south"] >= done.aimed["ask"]


def test_a_label_share_of_none_leaves_all_to_the_policy(connection: Connection) -> None:
    site = drifting_site(connection, label_share=0)
    answer(site, 100)
    done = ask(site.monitor("m"))
    assert (done.issued, done.aimed) == ({"ask": 100}, {"ask": 0})


def test_labels_requested_by_drift_do_not_bias_estimates(connection: Connection) -> None:
    # Ever one in a thousand is out.
    site = drifting_site(connection, interval=0.999, label_share=0.5)
    monitor = site.monitor("m")
    for _ in range(6):
        site.answer("m", lambda item: "cat" if item % 4 else "dog")
        ask(monitor)
    taken = monitor.refresh(NOW)
    assert taken.drift is not None
    assert taken.groupings["region"].beliefs.labels_counted.sum() >= 500
    # Three of four predictions are right, wherever labels were asked.
    overall = taken.groupings["all"]
    assert overall.accuracy.lower[0] < 0.75 < overall.accuracy.upper[0]


def test_every_process_knows_the_reference_and_recent_traffic(connection: Connection) -> None:
    site = drifting_site(connection)
    drift = site.monitor("m").refresh(NOW).drift
    assert drift is not None
    assert drift.reference_predictions == 1_000
    assert drift.groupings["region"].drifted.tolist() == [False, True]


def test_a_shard_that_is_filled_again_has_the_marks_of_what_it_reads(connection: Connection) -> None:
    site = drifting_site(connection)
    connection.client.delete(site.keys("m").shard(0), site.keys("m").traffic(0))
    site.take_in(stream(500))
    assert site.monitor("m").refresh(NOW).drift is None
    (mark, _) = site.reader("m").marked_traffic()[1].timeline.shards[0]
    assert mark.predictions == 0
