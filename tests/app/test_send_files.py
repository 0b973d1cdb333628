"""`credence predictions send` and `credence labels send` on a real broker: what arrives, and what is said."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from harness import CLI, Deploy, Deployment, wait_for
from kafka import KafkaConsumer
from pyarrow import parquet

from consumers.formats.native import decode_label
from consumers.formats.records import decode_records
from service.app.cli import main
from service.app.files import delivery
from service.demo.ports import free_port
from service.demo.servers import EmbeddedBroker
from service.domain.messages import PREDICTION_TYPE
from service.store.request_registry import request_id_of

HEADER = "item_id,predicted_class,score,region\n"


class Sender:
    """Runs a command for a deployment in this process."""

    def __init__(self, deployment: Deployment, capsys: pytest.CaptureFixture[str], kind: str) -> None:
        self.deployment = deployment
        self.kind = kind
        self._capsys = capsys
        self.said = self.warned = ""

    def __call__(self, path: Path | str, *options: str) -> int:
        config = str(self.deployment.config)
        code = main([self.kind, "send", str(path), *options, "--config", config])
        self.said, self.warned = self._capsys.readouterr()
        return code

    def records(self) -> list[Any]:
        """All records of the topic."""
        consumer = self.deployment.consumer(self.kind)
        return read_all(consumer)

    def items(self) -> list[str]:
        records = self.records()
        decoded = decode_records(records, message_bytes=1_000_000, formats=())
        assert decoded.errors == []
        return sorted(prediction.item_id for prediction in decoded.predictions)


def read_all(consumer: KafkaConsumer) -> list[Any]:
    ends = consumer.end_offsets(list(consumer.assignment()))
    records: list[Any] = []

    def is_read() -> bool:
        for polled in consumer.poll(200).values():
            records.extend(polled)
        return all(consumer.position(tp) >= end for tp, end in ends.items())

    wait_for(is_read, seconds=30, what="all records")
    return records


@pytest.fixture
def send(deploy: Deploy, capsys: pytest.CaptureFixture[str]) -> Sender:
    deployment = deploy()
    capsys.readouterr()
    return Sender(deployment, capsys, "predictions")


@pytest.fixture
def send_labels(send: Sender, capsys: pytest.CaptureFixture[str]) -> Sender:
    return Sender(send.deployment, capsys, "labels")


def csv_file(folder: Path, *rows: str, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


# Predictions


def test_each_row_of_csv_is_a_record_that_the_consumer_takes(send: Sender, tmp_path: Path) -> None:
    path = csv_file(tmp_path, "007,cat,0.9,north", '"a,b",dog,1,"so ""uth"""')
    assert send(path) == 0
    assert send.said == f"2 rows read, 2 sent to {send.deployment.name}.predictions, 0 refused\n"
    assert send.warned == ""
    records = {record.key: record for record in send.records()}
    assert records.keys() == {b"007", b"a,b"}
    assert json.loads(records[b"a,b"].value) == {
        "model": "sorter",
        "item_id": "a,b",
        "predicted_class": "dog",
        "score": 1.0,
        "attributes": {"region": 'so "uth"'},
    }
    assert dict(records[b"007"].headers)["ce_type"] == PREDICTION_TYPE.encode()


def test_records_of_an_item_are_in_the_partition_of_its_key(send: Sender, tmp_path: Path) -> None:
    items = [f"item-{number}" for number in range(40)]
    assert send(csv_file(tmp_path, *(f"{item},cat,1," for item in items))) == 0
    send.deployment.send_predictions(range(0))
    for item in items:
        send.deployment.send("predictions", b"", item)
    send.deployment.producer.flush()
    partitions: dict[bytes, set[int]] = {}
    for record in send.records():
        partitions.setdefault(record.key, set()).add(record.partition)
    assert {len(found) for found in partitions.values()} == {1}


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.jsonl", "rows.jsonl.gz", "rows.parquet"])
def test_files_of_other_formats_are_sent(send: Sender, tmp_path: Path, name: str) -> None:
    rows = [{"item_id": 1, "predicted_class": "cat", "score": 0.5, "region": "n"} for _ in range(3)]
    path = tmp_path / name
    if name == "rows.parquet":
        parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        if "csv" in name:
            text = HEADER + "1,cat,0.5,n\n" * 3
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert send(path) == 0
    assert send.items() == ["1"] * 3


def test_bad_rows_are_named_without_their_content_and_the_others_are_sent(
    send: Sender, tmp_path: Path
) -> None:
    bad = [f"secret-{number},cat,secret,north" for number in range(12)]
    path = csv_file(tmp_path, "a,cat,0.9,north", *bad, "b,secret,1,", "c,cat,1,")
    assert send(path) == 1
    assert send.items() == ["a", "c"]
    lines = send.warned.splitlines()
    assert lines[0] == "line 3, column score: invalid_field: expected a number, with a decimal point"
    assert (len(lines), lines[-1]) == (11, "further rows are refused; the summary counts them")
    assert send.said.splitlines()[1:] == ["  invalid_field: 12", "  unknown_class: 1"]
    assert "secret" not in send.warned + send.said


def test_if_rows_are_bad_a_strict_run_sends_nothing(send: Sender, tmp_path: Path) -> None:
    path = csv_file(tmp_path, "a,cat,0.9,north", "b,cow,0.9,north")
    assert send(path, "--strict") == 1
    assert send.said.endswith("nothing was sent\n")
    assert send.records() == []


def test_if_all_rows_are_good_a_strict_run_sends_them(send: Sender, tmp_path: Path) -> None:
    assert send(csv_file(tmp_path, "a,cat,0.9,north"), "--strict") == 0
    assert send.items() == ["a"]


def test_a_dry_run_sends_nothing_and_needs_no_kafka(send: Sender, tmp_path: Path) -> None:
    send.deployment.configure("kafka", bootstrap_servers=[f"127.0.0.1:{free_port()}"])
    assert send(csv_file(tmp_path, "a,cat,0.9,north"), "--dry-run") == 0
    topic = f"{send.deployment.name}.predictions"
    assert send.said == f"1 rows read, 1 would be sent to {topic}, 0 refused\nnothing was sent\n"
    assert send(csv_file(tmp_path, "a,cow,0.9,north"), "--dry-run") == 1


def test_a_run_can_begin_at_a_later_line(send: Sender, tmp_path: Path) -> None:
    path = csv_file(tmp_path, *(f"{item},cat,1," for item in "abcd"))
    assert send(path, "--from-line", "4") == 0
    assert send.items() == ["c", "d"]


def test_standard_input_is_sent(send: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.TextIOWrapper(io.BufferedReader(io.BytesIO(f"{HEADER}a,cat,1,n".encode())))
    monkeypatch.setattr(sys, "stdin", text)
    assert send("-", "--format", "csv") == 0
    assert send.items() == ["a"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-"], "--format: standard input has no name"),
        (["rows.txt"], "rows.txt: its name says no format; add --format"),
        (["-", "--format", "parquet"], "need a regular file"),
        (["-", "--format", "csv", "--strict"], "need a regular file"),
        (["rows.csv", "--model", "none"], "none: unknown model; configured: sorter"),
        (["rows.csv", "--column", "x"], "--column x: must be FIELD=COLUMN"),
    ],
)
def test_a_mistake_on_the_command_line_is_named(send: Sender, arguments: list[str], problem: str) -> None:
    assert send(*arguments) == 2
    assert problem in send.warned


@pytest.mark.parametrize(
    "options", [["--format", "csv", "--strict"], ["--format", "parquet"], ["--format", "npz"]]
)
def test_a_pipe_is_refused_where_a_file_is_needed(send: Sender, tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "a\x1b[31m"
    os.mkfifo(path)
    assert send(path, *options) == 2
    assert "parquet, npz and --strict need a regular file" in send.warned
    assert "\x1b" not in send.warned


def test_a_descriptor_of_a_pipe_is_refused_where_a_file_is_needed(send: Sender) -> None:
    reader, writer = os.pipe()
    os.write(writer, f"{HEADER}a,cat,1,n\n".encode())
    os.close(writer)
    assert send(f"/dev/fd/{reader}", "--format", "csv", "--strict") == 2
    os.close(reader)


def test_rows_before_a_row_whose_quotes_are_unknown_are_sent(send: Sender, tmp_path: Path) -> None:
    path = csv_file(tmp_path, "a,cat,1,n", 'b,cat,1,"5" pipe', "c,cat,1,n", 'end"', "d,cat,1,n")
    assert send(path) == 1
    assert send.items() == ["a"]
    assert "line 3: ',' expected after '\"'. It is unknown where the next row begins" in send.warned
    assert "Continue with --from-line 3" in send.warned


def test_a_line_after_the_last_row_to_begin_at_is_an_error(send: Sender, tmp_path: Path) -> None:
    assert send(csv_file(tmp_path, "a,cat,1,n"), "--from-line", "3") == 1
    assert send.warned.endswith("rows.csv: no row begins at or after line 3\n")


@pytest.mark.parametrize("delimiter", ["", "ab", '"'])
def test_a_delimiter_is_one_character(send: Sender, delimiter: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        send("rows.csv", "--delimiter", delimiter)


def test_a_name_that_is_not_utf_8_is_a_mistake_on_the_command_line(send: Sender) -> None:
    with pytest.raises(SystemExit, match="2"):
        send("rows.csv", "--column", "attributes.a=\udcff")


def test_a_file_may_have_tabs(send: Sender, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{HEADER}a,cat,1,n\n".replace(",", "\t"))
    assert send(path, "--delimiter", "tab") == 0
    assert send.items() == ["a"]


def test_kafka_that_cannot_be_reached_is_named(send: Sender, tmp_path: Path) -> None:
    port = free_port()
    send.deployment.configure("kafka", bootstrap_servers=[f"127.0.0.1:{port}"])
    assert send(csv_file(tmp_path, "a,cat,1,")) == 1
    assert send.warned == (
        f"credence: Cannot connect to Kafka at 127.0.0.1:{port}: connection refused; "
        "check `kafka.bootstrap_servers`, and that Kafka is running\n"
    )


def test_many_rows_are_all_acknowledged(
    send: Sender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_IN_FLIGHT", 7)
    monkeypatch.setattr(delivery, "_IN_FLIGHT_BYTES", 1_000)
    items = [f"{number:04}" for number in range(1_500)]
    assert send(csv_file(tmp_path, *(f"{item},cat,1,n" for item in items))) == 0
    assert send.said.startswith("1,500 rows read, 1,500 sent ")
    assert send.items() == items


def test_a_message_that_kafka_does_not_accept_is_refused_and_the_others_are_sent(
    send: Sender, tmp_path: Path
) -> None:
    send.deployment.configure("bounds", message_bytes=4_000_000, payload_bytes=4_000_000)
    rows = [{"item_id": item, "predicted_class": "cat", "score": 1, "region": "n"} for item in "abc"]
    rows[1]["payload"] = "x" * 2_000_000
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert send(path) == 1
    assert send.warned.startswith("line 2: message_too_large: the message is larger than Kafka accepts")
    assert send.items() == ["a", "c"]


@contextmanager
def writing(path: Path, write: Callable[[Any], None]) -> Iterator[None]:
    """A pipe at this path, which a thread writes for as long as it is read."""
    os.mkfifo(path)

    def run() -> None:
        with suppress(BrokenPipeError), path.open("w") as pipe:
            write(pipe)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    thread.join(30)


def test_a_run_that_kafka_ends_says_where_to_continue(
    own_broker: tuple[str, EmbeddedBroker],
    deploy: Deploy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address, broker = own_broker
    sender = Sender(deploy(broker=address), capsys, "predictions")
    consumer = sender.deployment.consumer("predictions")
    monkeypatch.setattr(delivery, "DELIVERY_SECONDS", 10.0)

    def write(pipe: Any) -> None:
        pipe.write(HEADER + "a,cat,1,n\n" * 2_000)
        pipe.flush()
        wait_for(lambda: consumer.poll(200), seconds=30, what="the first records")
        broker.kill()
        pipe.write("b,cat,1,n\n" * 20_000)

    with writing(tmp_path / "rows.csv", write):
        assert sender(tmp_path / "rows.csv") == 1
    assert "credence: kafka is unavailable" in sender.warned
    assert "note: this run did not finish. All rows before line " in sender.warned
    assert "Continue with --from-line " in sender.warned


def test_a_run_that_is_interrupted_says_where_to_continue(send: Sender) -> None:
    command = [*CLI, "predictions", "send", "-", "--format", "csv", "--config", str(send.deployment.config)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(HEADER + "a,cat,1,n\n" * 2_000)
    process.stdin.flush()
    consumer = send.deployment.consumer("predictions")
    wait_for(lambda: consumer.poll(200), seconds=30, what="the first records")
    process.send_signal(signal.SIGINT)
    said, warned = process.communicate(timeout=60)
    assert process.returncode == 130, warned
    assert " sent to " in said
    assert "note: this run did not finish." in warned
    assert "Traceback" not in warned


# Labels


def labels_file(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "labels.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_label_of_a_request_arrives(send_labels: Sender, tmp_path: Path) -> None:
    row = {"request_id": request_id_of("sorter", "7"), "item_id": 7, "true_class": "owl", "annotator": "ana"}
    assert send_labels(labels_file(tmp_path, row)) == 0
    [record] = send_labels.records()
    label = decode_label(record.value)
    assert (label.item_id, label.true_class, label.annotator) == ("7", "owl", "ana")
    assert record.key == b"7"


def test_labels_that_nobody_requested_are_counted_and_are_no_failure(
    send_labels: Sender, tmp_path: Path
) -> None:
    path = labels_file(tmp_path, *({"item_id": item, "true_class": "cat"} for item in "ab"))
    assert send_labels(path) == 0
    topic = f"{send_labels.deployment.name}.labels"
    assert send_labels.said == f"2 rows read, 0 sent to {topic}, 0 refused\n  not requested: 2\n"
    assert send_labels.records() == []


def test_redis_that_is_needed_and_cannot_be_reached_is_named(send_labels: Sender, tmp_path: Path) -> None:
    port = free_port()
    send_labels.deployment.configure("redis", url=f"redis://127.0.0.1:{port}/0", cluster=False)
    assert send_labels(labels_file(tmp_path, {"item_id": "a", "true_class": "cat"})) == 1
    assert f"Cannot connect to Redis at 127.0.0.1:{port}: connection refused" in send_labels.warned
