"""`credence dead-letters`: refused messages are looked at, and sent back once."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from typing import Any

import pytest
from harness import Deploy, Deployment, Labeller, prediction, wait_for
from letter_topic import header, letters_of

from service.app.cli import main
from service.config.loader import load_settings
from service.domain.messages import PREDICTION_TYPE
from service.store.outcome_entries import BEGINNING, OutcomeEntry


def desk(deployment: Deployment, *arguments: str) -> str:
    """What one command prints; it must succeed."""
    with redirect_stdout(io.StringIO()) as printed:
        assert main(["dead-letters", *arguments, "--config", str(deployment.config)]) == 0
    return printed.getvalue()


def listed(deployment: Deployment, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in desk(deployment, "list", "--json", *arguments).splitlines()]


def another_class(deployment: Deployment) -> None:
    """Mend the configuration: the model may say fox."""
    text = deployment.config.read_text()
    deployment.config.write_text(text.replace("classes: [cat, dog, owl]", "classes: [cat, dog, owl, fox]"))
    deployment.settings = load_settings(deployment.config, {})


def taken_over(deployment: Deployment) -> bool:
    """Whether all partitions of predictions are owned; with `latest`, what is sent earlier is not read."""
    return len(deployment.facts().traffic().offsets) == deployment.settings.kafka.partitions


def fox(number: int) -> bytes:
    return json.dumps(prediction(number) | {"predicted_class": "fox"}).encode()


def replayed_into(deployment: Deployment, kind: str, count: int) -> list[Any]:
    """Records that a topic was sent by a replay; there must be exactly so many."""
    consumer = deployment.consumer(kind)
    found: list[Any] = []

    def enough() -> bool:
        for records in consumer.poll(200).values():
            found.extend(record for record in records if header(record, "credence-replayed-from"))
        return len(found) >= count

    wait_for(enough, seconds=60, what=f"{count} replayed {kind}")
    assert len(found) == count
    return found


@pytest.fixture(scope="module")
def refused(module_deploy: Deploy) -> Deployment:
    """A deployment that has refused a few messages, and plays no longer."""
    deployment = module_deploy()
    deployment.send_predictions(range(10))
    deployment.send("predictions", fox(10), "item-000010")
    deployment.send("predictions", b'{"secret": "\x1b[31mhunter2"}', "k")
    deployment.send("predictions", b"[5, " + json.dumps(prediction(11)).encode() + b", {}]")
    deployment.send("labels", b"not JSON")
    deployment.producer.flush()
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=60, what="ready")
        wait_for(lambda: deployment.predictions_stored() == 11, seconds=60, what="11 stored")
        letters_of(deployment, 5)
    return deployment


def test_it_lists_every_letter_with_its_reason_and_where_it_stood(refused: Deployment) -> None:
    letters = listed(refused)
    assert sorted((letter["reason"], letter["source_index"]) for letter in letters) == [
        ("invalid_field", 0),
        ("malformed_json", None),
        ("malformed_json", None),
        ("missing_field", 2),
        ("unknown_class", None),
    ]
    assert {letter["source_topic"] for letter in letters} == {
        f"{refused.name}.labels",
        f"{refused.name}.predictions",
    }


def test_it_shows_no_content_unless_it_is_asked_to(refused: Deployment) -> None:
    assert "hunter2" not in desk(refused, "list")
    assert "hunter2" not in desk(refused, "list", "--json")
    assert any("hunter2" in letter["value"] for letter in listed(refused, "--values"))


def test_content_that_a_terminal_would_obey_is_escaped(refused: Deployment) -> None:
    shown = desk(refused, "list", "--values")
    assert "\x1b" not in shown
    assert "\\x1b[31mhunter2" in shown


def test_it_counts_them_by_source_and_reason(refused: Deployment) -> None:
    shown = desk(refused, "list", "--summary")
    assert "unknown_class" in shown
    assert "5 dead letters" in shown


def test_filters_choose_letters(refused: Deployment) -> None:
    assert {letter["reason"] for letter in listed(refused, "--reason", "missing_field")} == {"missing_field"}
    assert len(listed(refused, "--reason", "missing_field", "--reason", "invalid_field")) == 2
    assert len(listed(refused, "--source-topic", f"{refused.name}.labels")) == 1
    partitions = [len(listed(refused, "--partition", str(partition))) for partition in range(4)]
    assert sum(partitions) == 5
    assert len(listed(refused, "--limit", "2")) == 2
    assert len(listed(refused, "--since", "1h")) == 5
    assert listed(refused, "--until", "1h") == []
    assert listed(refused, "--since", "2999-01-01") == []


@pytest.mark.parametrize("bad", [("--since", "noon"), ("--limit", "0"), ("--partition", "x"), ("--reason",)])
def test_options_that_make_no_sense_are_refused_at_once(refused: Deployment, bad: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dead-letters", "list", *bad, "--config", str(refused.config)])
    assert ended.value.code == 2


def test_an_empty_topic_has_no_letters(deploy: Deploy) -> None:
    assert listed(deploy()) == []


def test_nothing_is_sent_without_yes(refused: Deployment) -> None:
    result = desk(refused, "replay", "--reason", "malformed_json")
    assert "dry run: 2 of 2 would be" in result
    assert result == desk(refused, "replay", "--reason", "malformed_json", "--dry-run")


def test_a_prediction_of_a_model_that_was_added_is_replayed_and_counted_once(deploy: Deploy) -> None:
    deployment = deploy()
    lost = json.dumps(prediction(5) | {"model": "newcomer"}).encode()
    array = json.dumps([prediction(6), prediction(7) | {"model": "newcomer"}]).encode()
    deployment.send("predictions", lost, "item-000005")
    deployment.send("predictions", array, "item-000006")
    deployment.producer.flush()
    with deployment.process("consume", "predictions") as process:
        wait_for(process.ready, seconds=60, what="ready")
        letters_of(deployment, 2)
        wait_for(lambda: deployment.predictions_stored() == 1, seconds=60, what="1 stored")
    text = deployment.config.read_text()
    deployment.config.write_text(text + "  newcomer: {classes: [cat, dog, owl]}\n")
    consumed = 'credence_predictions_consumed_total{model="newcomer"}'
    with deployment.process("consume", "predictions") as process:
        wait_for(process.ready, seconds=60, what="ready")
        assert "2 replayed, 0 skipped" in desk(deployment, "replay", "--reason", "unknown_model", "--yes")
        wait_for(lambda: process.metric(consumed) == 2, seconds=60, what="2 taken")
        assert "0 replayed, 2 skipped" in desk(deployment, "replay", "--yes")
        assert "it was replayed before" in desk(deployment, "replay")
        deployment.send_predictions(range(20, 21))
        wait_for(lambda: deployment.predictions_stored() == 2, seconds=60, what="what came later")
        assert process.metric(consumed) == 2
    replayed = replayed_into(deployment, "predictions", 2)
    assert {record.value for record in replayed} == {lost, json.dumps(json.loads(array)[1]).encode()}


def test_what_a_change_of_classes_reads_again_is_not_replayed_as_well(deploy: Deploy) -> None:
    deployment = deploy()
    deployment.send("predictions", fox(1), "item-000001")
    deployment.producer.flush()
    with deployment.process("consume", "predictions") as process:
        wait_for(process.ready, seconds=60, what="ready")
        letters_of(deployment, 1)
    another_class(deployment)
    with deployment.process("consume", "predictions") as process:
        consumed = 'credence_predictions_consumed_total{model="sorter"}'
        wait_for(lambda: process.metric(consumed) == 1, seconds=60, what="read again")
        result = desk(deployment, "replay", "--yes")
        assert "0 replayed, 1 skipped" in result
        assert "read again" in result


def test_a_refused_prediction_is_replayed_after_a_change_of_classes_that_reads_nothing_again(
    deploy: Deploy,
) -> None:
    deployment = deploy()
    text = deployment.config.read_text().replace(
        "session_timeout_seconds: 6", "session_timeout_seconds: 6\n  start: latest"
    )
    deployment.config.write_text(text)
    consumed = 'credence_predictions_consumed_total{model="sorter"}'
    with deployment.process("consume", "predictions"):
        wait_for(lambda: taken_over(deployment), seconds=60, what="all partitions")
        deployment.send("predictions", fox(1), "item-000001")
        deployment.producer.flush()
        letters_of(deployment, 1)
    another_class(deployment)
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: taken_over(deployment), seconds=60, what="all partitions")
        assert "1 replayed, 0 skipped" in desk(deployment, "replay", "--yes")
        wait_for(lambda: process.metric(consumed) == 1, seconds=60, what="taken")
        assert "0 replayed, 1 skipped" in desk(deployment, "replay", "--yes")


def outcomes_of(deployment: Deployment) -> list[OutcomeEntry]:
    page = deployment.facts().outcomes(BEGINNING)
    assert page is not None
    return page.labelled


def test_a_refused_label_is_replayed_with_its_time_and_headers_and_is_counted_once(deploy: Deploy) -> None:
    deployment = deploy()
    deployment.send_predictions(range(100))
    labeller = Labeller(deployment)
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=60, what="ready")
        wait_for(lambda: labeller.answer(true_class="fox"), seconds=30, what="a request")
        count = len(labeller.seen)
        letters_of(deployment, count)
    another_class(deployment)
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=60, what="ready")
        assert f"{count} replayed, 0 skipped" in desk(
            deployment, "replay", "--source-topic", f"{deployment.name}.labels", "--yes"
        )
        wait_for(lambda: len(outcomes_of(deployment)) == count, seconds=60, what="their outcomes")
    sent = letters_of(deployment, count)
    times = {header(letter, "credence-source-timestamp") for letter in sent}
    labels = replayed_into(deployment, "labels", count)
    assert {str(record.timestamp) for record in labels} == times


def test_a_message_that_was_cut_is_not_replayed(deploy: Deploy) -> None:
    deployment = deploy()
    deployment.config.write_text(deployment.config.read_text() + "bounds: {message_bytes: 256}\n")
    deployment.send("predictions", b'{"a": "' + b"x" * 300 + b'"}')
    deployment.producer.flush()
    with deployment.process("consume", "predictions"):
        letters_of(deployment, 1, seconds=60)
    result = desk(deployment, "replay", "--yes")
    assert "0 replayed, 1 skipped" in result
    assert "not all of its message was kept" in result


def test_records_of_others_in_the_topic_are_shown_and_not_replayed(deploy: Deploy) -> None:
    deployment = deploy()
    for headers in (
        [],
        [("credence-source-topic", b"elsewhere"), ("credence-source-partition", b"x")],
        [
            ("credence-source-topic", b"elsewhere"),
            ("credence-source-partition", b"0"),
            ("credence-source-offset", b"0"),
            ("credence-reason", b"\xff"),
            ("ce_type", PREDICTION_TYPE.encode()),
        ],
    ):
        deployment.producer.send(f"{deployment.name}.dead-letters", value=b"[/]", headers=headers)
    deployment.producer.flush()
    assert "not written by Credence" in desk(deployment, "list", "--values")
    assert [letter["source_topic"] for letter in listed(deployment)].count(None) == 2
    assert "0 replayed, 3 skipped" in desk(deployment, "replay", "--yes")
