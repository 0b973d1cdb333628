"""Processes are killed and servers go away; the facts do not change."""

from __future__ import annotations

import signal
from pathlib import Path

from apache_kafka import ApacheKafka
from harness import Deploy, Labeller, Process, wait_for
from stored import expected_cells, stored_cells

from service.demo.servers import EmbeddedBroker, EmbeddedRedis
from service.store.outcome_entries import BEGINNING


def test_a_kill_in_the_middle_changes_no_count(
    deploy: Deploy,
) -> None:
    deployment = deploy()
    labeller = Labeller(deployment)
    for part in range(3):
        with deployment.process("run") as process:
            wait_for(process.ready, seconds=40, what="ready")
            deployment.send_predictions(range(part * 700, part * 700 + 700))
            labeller.answer_until(40 * (part + 1))
            process.popen.send_signal(signal.SIGKILL)
            process.popen.wait()
    with deployment.process("run") as process:
        wait_for(lambda: deployment.predictions_stored() >= 2_100, seconds=40, what="all predictions")

        def all_answered() -> bool:
            labeller.answer()
            requests = deployment.facts().requests()
            return sum(requests.budget.values()) == 120 and not requests.open

        wait_for(all_answered, seconds=60, what="all answers")
        assert stored_cells(deployment) == expected_cells(deployment, range(2_100))
        page = deployment.facts().outcomes(BEGINNING)
        assert page is not None
        assert len(page.labelled) == 120
        assert len({entry.fact.item_id for entry in page.labelled}) == 120
        assert {(r.item_id, r.request_id) for r in labeller.seen} == {
            (entry.fact.item_id, entry.fact.request_id) for entry in page.labelled
        }


def test_redis_going_away_loses_nothing_and_is_told(tmp_path: Path, deploy: Deploy) -> None:
    (tmp_path / "redis").mkdir()
    redis = EmbeddedRedis(folder=tmp_path / "redis")
    deployment = deploy(redis_url=redis.url)
    try:
        with deployment.process("run") as process:
            wait_for(process.ready, seconds=40, what="ready")
            deployment.send_predictions(range(300))
            wait_for(lambda: deployment.predictions_stored() == 300, seconds=20, what="300 stored")
            redis.stop()
            deployment.send_predictions(range(300, 600))
            wait_for(lambda: not process.ready(), seconds=30, what="not ready")
            assert process.get("/healthz")[0] == 200
            redis = EmbeddedRedis(folder=tmp_path / "redis", port=redis.port)
            wait_for(lambda: deployment.predictions_stored() == 600, seconds=30, what="600 stored")
            wait_for(process.ready, seconds=30, what="ready again")
            assert stored_cells(deployment) == expected_cells(deployment, range(600))
    finally:
        redis.stop()


def test_a_broker_that_hangs_is_told_and_waited_for(
    own_broker: tuple[str, ApacheKafka | EmbeddedBroker], deploy: Deploy
) -> None:
    bootstrap_servers, broker = own_broker
    deployment = deploy(broker=bootstrap_servers)
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready")
        deployment.send_predictions(range(200))
        wait_for(lambda: deployment.predictions_stored() == 200, seconds=20, what="200 stored")
        broker.pause()
        try:
            wait_for(lambda: not process.ready(), seconds=40, what="not ready")
            assert process.get("/healthz")[0] == 200
        finally:
            broker.resume()
        wait_for(process.ready, seconds=60, what="ready again")
        deployment.send_predictions(range(200, 400))
        wait_for(lambda: deployment.predictions_stored() == 400, seconds=40, what="400 stored")


def test_it_waits_for_servers_that_are_away_at_the_start(tmp_path: Path, deploy: Deploy) -> None:
    (tmp_path / "redis").mkdir()
    redis = EmbeddedRedis(folder=tmp_path / "redis")
    deployment = deploy(redis_url=redis.url)
    redis.stop()
    with deployment.process("run") as process:
        wait_for(lambda: process.get("/healthz")[0] == 200, seconds=20, what="alive")
        assert process.get("/readyz")[0] == 503
        redis = EmbeddedRedis(folder=tmp_path / "redis", port=redis.port)
        try:
            wait_for(process.ready, seconds=40, what="ready")
        finally:
            process.kill()
            redis.stop()


def test_parts_share_the_work_and_one_scheduler_asks(
    deploy: Deploy,
) -> None:
    deployment = deploy()
    labeller = Labeller(deployment)
    with (
        deployment.process("consume", "predictions") as first,
        deployment.process("consume", "predictions") as second,
        deployment.process("consume", "labels"),
        deployment.process("schedule") as third,
        deployment.process("schedule") as fourth,
        deployment.process("serve") as shown,
    ):
        wait_for(first.ready, seconds=40, what="the first consumer")
        wait_for(second.ready, seconds=40, what="the second consumer")
        deployment.send_predictions(range(600))
        labeller.answer_until(30)

        def one_that_leads() -> list[Process] | None:
            # Who was so slow that its lease ended says for a moment yet that it leads.
            leaders = [p for p in (third, fourth) if p.metric("credence_leader") == 1]
            return leaders if len(leaders) == 1 else None

        (leader,) = wait_for(one_that_leads, seconds=20, what="one leader")
        leader.kill()
        (heir,) = {third, fourth} - {leader}
        wait_for(lambda: heir.metric("credence_leader") == 1, seconds=20, what="the other leads")
        labeller.answer_until(120)
        wait_for(
            lambda: shown.metric('credence_outcomes{model="sorter"}') == 120, seconds=30, what="120 outcomes"
        )
        taken = [
            p.metric('credence_predictions_consumed_total{model="sorter"}') or 0 for p in (first, second)
        ]
        assert sum(taken) >= 600
        assert deployment.predictions_stored() == 600


def test_too_many_bad_messages_pause_the_consumer(
    deploy: Deploy,
) -> None:
    deployment = deploy()
    text = deployment.config.read_text()
    deployment.config.write_text(text + "dead_letters: {pause_window: 100, pause_ratio: 0.5}\n")
    with deployment.process("consume", "predictions") as process:
        wait_for(process.ready, seconds=40, what="ready")
        for _ in range(1_000):
            deployment.send("predictions", b"{", "one-key")
        deployment.producer.flush()
        wait_for(
            lambda: process.metric('credence_consumer_paused{topic="predictions"}') == 1,
            seconds=20,
            what="too many bad messages",
        )
        status, body = process.get("/readyz")
        assert status == 503
        assert "paused" in body
        discarded = (
            process.metric('credence_dead_letters_total{reason="malformed_json",topic="predictions"}') or 0
        )
        assert discarded < 1_000
