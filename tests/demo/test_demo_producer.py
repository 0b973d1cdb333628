from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.demo.journal import PRODUCER_FILE, History, Journal, JournalReader, Mark
from service.demo.process import Record
from service.demo.producer import Classifier, PredictionStream, run
from service.demo.world import CLASSES, World, item_number, load_split
from service.domain.messages import Prediction

SEED = 1


@pytest.fixture(scope="module")
def parts() -> tuple[World, Classifier]:
    digits = load_split(SEED)
    return World(SEED, digits), Classifier(digits.training_images, digits.training_classes)


def streamed(parts: tuple[World, Classifier], folder: Path) -> tuple[list[Record], History]:
    """One second of stream in ten batches; the camera degrades after half of it."""
    records: list[Record] = []
    with Journal(folder / PRODUCER_FILE) as journal:
        stream = PredictionStream(*parts, journal, degrade_after_seconds=0.5)
        clock = iter([1_000.0 + i / 10 for i in range(11)])
        waits = iter([False] * 10 + [True])
        run(stream, records.append, stop_requested=lambda _: next(waits), clock=lambda: next(clock))
    history = History()
    history.add(JournalReader(folder / PRODUCER_FILE).new_entries())
    return records, history


def test_every_record_holds_predictions_of_the_contract_and_some_hold_arrays(
    parts: tuple[World, Classifier], tmp_path: Path
) -> None:
    records, history = streamed(parts, tmp_path)
    texts = []
    for key, value, headers in records:
        found = json.loads(value)
        messages = found if isinstance(found, list) else [found]
        assert messages[0]["item_id"].encode() == key
        assert dict(headers)["ce_id"] == key
        texts += [json.dumps(message) for message in messages]
    predictions = [Prediction.model_validate_json(text) for text in texts]
    assert [item_number(p.item_id) for p in predictions] == list(range(len(predictions)))
    assert len(predictions) == len(history.stream) > 250
    assert len(records) < len(predictions)
    assert any(value.startswith(b"{") for _, value, _ in records)


def test_messages_and_journal_tell_the_same_and_the_journal_knows_the_truth(
    parts: tuple[World, Classifier], tmp_path: Path
) -> None:
    records, history = streamed(parts, tmp_path)
    messages = []
    for _, value, _ in records:
        found = json.loads(value)
        messages += found if isinstance(found, list) else [found]
    world, _ = parts
    for i, message in enumerate(messages):
        assert message["predicted_class"] == CLASSES[history.stream.predicted[i]]
        assert message["score"] == max(message["probabilities"]) == history.stream.scores[i]
        is_true = message["predicted_class"] == world.true_class(i)
        assert is_true == history.stream.correct[i]
        assert len(message["payload"]) == 8
        assert set(message["votes"]) == {"linear", "neighbours", "bayes"}


def test_the_camera_degrades_at_its_time_and_not_before(
    parts: tuple[World, Classifier], tmp_path: Path
) -> None:
    _, history = streamed(parts, tmp_path)
    assert history.streaming_at == 1_000.0
    assert history.degraded_at == pytest.approx(1_000.5)


def test_a_stalled_producer_skips_what_it_missed_instead_of_sending_it_all_at_once(
    parts: tuple[World, Classifier], tmp_path: Path
) -> None:
    records: list[Record] = []
    with Journal(tmp_path / PRODUCER_FILE) as journal:
        stream = PredictionStream(*parts, journal, degrade_after_seconds=100.0)
        clock, waits = iter([0.0, 60.0]), iter([False, True])
        run(stream, records.append, stop_requested=lambda _: next(waits), clock=lambda: next(clock))
    history = History()
    history.add(JournalReader(tmp_path / PRODUCER_FILE).new_entries())
    assert len(history.stream) == 150


def test_a_repaired_camera_takes_the_pictures_that_it_took_before(
    parts: tuple[World, Classifier], tmp_path: Path
) -> None:
    repairs: list[bool] = []
    path = tmp_path / PRODUCER_FILE
    with Journal(path) as journal:
        stream = PredictionStream(
            *parts, journal, degrade_after_seconds=1.0, is_repaired=lambda: bool(repairs)
        )
        stream.start(0.0)
        list(stream.records(1.5, 10))
        repairs.append(True)
        records = [json.loads(value) for _, value, _ in stream.records(2.0, 30)]
    messages = [each for record in records for each in (record if isinstance(record, list) else [record])]
    clean = parts[0].pixels(range(10, 40), degraded=False)
    assert [message["payload"] for message in messages] == clean.astype(int).tolist()
    marks = [entry for entry in JournalReader(path).new_entries() if isinstance(entry, Mark)]
    assert marks == [Mark("streaming", 0.0), Mark("degraded", 1.5), Mark("repaired", 2.0)]
