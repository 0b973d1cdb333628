"""The whole loop over real wire protocols."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import CLI, Deploy, Deployment, Labeller, Process, prediction, truth, wait_for
from kafka import KafkaProducer

from service.domain.messages import LabelRequest


@pytest.fixture(scope="module")
def finished(
    module_deploy: Deploy,
) -> Iterator[tuple[Deployment, Process, Labeller]]:
    """A deployment at the default tick that has spent its budget and read all answers."""
    deployment = module_deploy(tick=5)
    labeller = Labeller(deployment)
    deployment.send_predictions(range(1_000))
    with deployment.process("run") as process:
        wait_for(labeller.answer, seconds=60, what="the first label request")
        labeller.answer_until(120)
        wait_for(
            lambda: process.metric('credence_outcomes{model="sorter"}') == 120,
            seconds=20,
            what="all answers in the metrics",
        )
        yield deployment, process, labeller


def test_every_request_of_the_budget_is_answered_and_counted_once(
    finished: tuple[Deployment, Process, Labeller],
) -> None:
    deployment, _, labeller = finished
    requests = deployment.facts().requests()
    assert requests.open == {}
    assert sorted(requests.budget.values()) == [60, 60]
    assert len({request.item_id for request in labeller.seen}) == 120


def test_intervals_are_where_the_truth_of_both_regions_is(
    finished: tuple[Deployment, Process, Labeller],
) -> None:
    _, process, _ = finished
    for region in ("north", "south"):
        numbers = [n for n in range(1_000) if prediction(n)["attributes"]["region"] == region]
        accuracy = sum(prediction(n)["predicted_class"] == truth(n) for n in numbers) / len(numbers)
        at = f'{{group="{region}",grouping="region",model="sorter"}}'
        lower = process.metric(f"credence_group_accuracy_lower_ratio{at}")
        upper = process.metric(f"credence_group_accuracy_upper_ratio{at}")
        assert lower is not None
        assert upper is not None
        # A 95% interval misses now and then; one twice as wide never does, but for a loop that is broken.
        margin = (upper - lower) / 2
        assert lower - margin < accuracy < upper + margin


def test_the_weak_region_is_named(finished: tuple[Deployment, Process, Labeller]) -> None:
    _, process, _ = finished
    probability = process.metric(
        'credence_assessment_group_extreme_probability{assessment="weakest",group="south",model="sorter"}'
    )
    assert probability is not None
    # How sure one is depends on which 120 of 1,000 items were drawn, and so on when rounds came.
    assert probability > 0.5


def test_requests_say_nothing_of_the_prediction(finished: tuple[Deployment, Process, Labeller]) -> None:
    _, _, labeller = finished
    assert {request.prediction for request in labeller.seen} == {None}
    assert all(request.payload is not None for request in labeller.seen)


def test_status_shows_groups_and_assessments(finished: tuple[Deployment, Process, Labeller]) -> None:
    deployment, _, _ = finished
    shown = deployment.run_command("status").stdout
    assert "by region" in shown
    assert "south" in shown
    assert "weakest" in shown


def test_logs_carry_no_payloads(finished: tuple[Deployment, Process, Labeller]) -> None:
    _, process, _ = finished
    text = process.log.read_text()
    assert '"message": "labels requested"' in text
    assert "picture" not in text


def test_a_correction_and_a_retraction_change_the_outcomes(
    deploy: Deploy,
) -> None:
    deployment = deploy()
    labeller = Labeller(deployment)
    deployment.send_predictions(range(300))
    with deployment.process("run") as process:
        labeller.answer_until(3)
        first, second = labeller.seen[:2]
        events = 'credence_requests_total{{assessment="{}",event="{}",model="sorter"}}'

        def total(event: str) -> float:
            return sum(process.metric(events.format(a, event)) or 0 for a in ("weakest", "classes"))

        wait_for(lambda: total("answered") >= 3, seconds=20, what="answers")
        for request, kind, true_class in (
            (first, "correction", _another(first)),
            (second, "retraction", None),
        ):
            label = {
                "request_id": request.request_id,
                "model": "sorter",
                "item_id": request.item_id,
                "kind": kind,
                "true_class": true_class,
            }
            deployment.send("labels", json.dumps(label).encode(), request.item_id)
        deployment.producer.flush()
        wait_for(lambda: total("corrected") == 1, seconds=20, what="the correction")
        wait_for(lambda: total("retracted") == 1, seconds=20, what="the retraction")


def _another(request: LabelRequest) -> str:
    right = truth(int(request.item_id.removeprefix("item-")))
    return next(name for name in request.classes if name != right)


def test_bad_messages_reach_the_dead_letter_topic_with_their_source(
    deploy: Deploy,
) -> None:
    deployment = deploy()
    good = prediction(1)
    bad = {
        "malformed_json": b"{",
        "unknown_model": json.dumps(good | {"model": "nobody"}).encode(),
        "invalid_score": json.dumps(good | {"score": 1.2}).encode(),
        "unknown_class": json.dumps(good | {"predicted_class": "cow"}).encode(),
    }
    for value in bad.values():
        deployment.send("predictions", value, "k")
    deployment.send(
        "labels",
        json.dumps(
            {"request_id": "none", "model": "sorter", "item_id": "x", "kind": "answer", "true_class": "cat"}
        ).encode(),
    )
    deployment.send_predictions(range(10))
    letters = deployment.consumer("dead-letters")
    found: dict[str, dict[str, bytes]] = {}
    with deployment.process("run"):

        def all_there() -> bool:
            for records in letters.poll(200).values():
                for record in records:
                    headers = dict(record.headers)
                    found[headers["credence-reason"].decode()] = headers | {"value": record.value}
            return len(found) == 5

        wait_for(all_there, seconds=30, what="five dead letters")
        wait_for(lambda: deployment.predictions_stored() == 10, seconds=20, what="the good ones")
    assert found.keys() == {*bad, "unknown_request"}
    for reason, value in bad.items():
        assert found[reason]["value"] == value
        assert found[reason]["credence-source-topic"] == f"{deployment.name}.predictions".encode()
        assert found[reason]["credence-source-offset"].isdigit()


def test_responses_of_a_model_server_are_counted_and_asked_about(deploy: Deploy) -> None:
    deployment = deploy(model="tensors: {predicted_class: predict}")
    rows = [prediction(number) for number in range(300)]
    tensors = {
        "item_id": [row["item_id"] for row in rows],
        "predict": [row["predicted_class"] for row in rows],
        "score": [row["score"] for row in rows],
        "attributes.region": [row["attributes"]["region"] for row in rows],
    }
    tensors["predict"][7] = "cow"
    outputs = [
        {
            "name": name,
            "datatype": "FP32" if name == "score" else "BYTES",
            "shape": [len(rows), 1],
            "data": data,
        }
        for name, data in tensors.items()
    ]
    deployment.send("predictions", json.dumps({"model_name": "sorter", "outputs": outputs}).encode())
    letters = deployment.consumer("dead-letters")
    kept: list[bytes] = []
    with deployment.process("run"):

        def one_there() -> bool:
            kept.extend(record.value for records in letters.poll(200).values() for record in records)
            return bool(kept)

        wait_for(one_there, seconds=30, what="the bad row")
        wait_for(lambda: deployment.predictions_stored() == 299, seconds=20, what="the good ones")
        labeller = Labeller(deployment)
        labeller.answer_until(10)
    (letter,) = map(json.loads, kept)
    assert letter == {key: value for key, value in rows[7].items() if key != "payload"} | {
        "predicted_class": "cow"
    }
    assert {request.item_id for request in labeller.seen} <= set(tensors["item_id"])


def test_sigterm_flushes_what_is_held_and_exits_cleanly(
    deploy: Deploy,
) -> None:
    deployment = deploy()
    text = deployment.config.read_text().replace("kafka:", "kafka:\n  flush_seconds: 3600")
    deployment.config.write_text(text)
    deployment.send_predictions(range(500))
    with deployment.process("consume", "predictions") as process:
        wait_for(
            lambda: process.metric('credence_predictions_consumed_total{model="sorter"}') == 500,
            seconds=30,
            what="500 predictions read",
        )
        process.popen.send_signal(signal.SIGTERM)
        assert process.popen.wait(30) == 0
    assert deployment.predictions_stored() == 500


def test_a_broken_configuration_is_one_clear_message_and_exit_code_2(tmp_path: Path) -> None:
    config = tmp_path / "broken.yaml"
    config.write_text("models: {m: {classes: [a, b], groupings: {r: {by: attribute}}}}\nkafak: {}\n")
    done = subprocess.run(
        [*CLI, "run", "--config", str(config)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "kafak (line 2): unknown key" in done.stderr
    assert "models.m.groupings.r" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_marker_of_a_transaction_is_no_lag(deploy: Deploy) -> None:
    deployment = deploy()
    producer = KafkaProducer(bootstrap_servers=deployment.broker, transactional_id=deployment.name)
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(20):
        item = prediction(number)
        producer.send(f"{deployment.name}.predictions", json.dumps(item).encode(), item["item_id"].encode())
    producer.commit_transaction()
    producer.close()
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: deployment.predictions_stored() == 20, seconds=60, what="the predictions stored")
        lags = [
            line
            for line in process.get("/metrics")[1].splitlines()
            if line.startswith("credence_consumer_lag")
        ]
    assert len(lags) >= 2
    assert {line.rpartition(" ")[2] for line in lags} == {"0.0"}


def test_a_scrape_has_no_series_of_when_counters_were_made(
    finished: tuple[Deployment, Process, Labeller],
) -> None:
    _, process, _ = finished
    assert "_created" not in process.get("/metrics")[1]
