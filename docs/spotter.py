"""A binary classifier behind Credence, for the picture of its performance: is a handwritten digit an 8?"""

from __future__ import annotations

import json
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from service.config.loader import load_settings
from service.config.settings import KafkaSettings
from service.demo.children import Children
from service.demo.ports import free_port
from service.demo.process import Record, sender
from service.demo.world import BRIGHTEST, World, item_id, item_number, load_split
from service.domain.messages import (
    LABEL_TYPE,
    PREDICTION_TYPE,
    Label,
    LabelRequest,
    Prediction,
    cloudevents_headers,
)
from service.kafka.clients import build_consumer, build_producer
from service.kafka.topic_metadata import join

MODEL, ASSESSMENT = "spotter", "finds-eights"
CLASSES = ("other", "eight")
DIGIT, THRESHOLD = 8, 0.5
TRAINING_IMAGES, LABELS = 300, 200
FIRST_ITEMS, MORE_ITEMS = 5_000, 300
PATIENCE_SECONDS = 240
SEED = 1


@contextmanager
def spotter() -> Iterator[str]:
    """The classifier, once its performance is learned from all labels; the address of the page."""
    with (
        tempfile.TemporaryDirectory(prefix="credence-spotter-") as name,
        Children(Path(name), _wait) as children,
    ):
        config, url = Path(name) / "credence.yaml", f"http://127.0.0.1:{(port := free_port())}"
        broker, redis = children.start_broker().bootstrap_server, children.start_redis().url
        config.write_text(yaml.safe_dump(_configuration(broker, redis, port)), encoding="utf-8")
        with_config = ["--config", str(config)]
        children.finish("credence topics create", "service.app.cli", ["topics", "create", *with_config])
        children.start("credence run", "service.app.cli", ["run", *with_config])
        _play(children, load_settings(config, {}).kafka, url)
        yield url


def _wait(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _configuration(broker: str, redis: str, port: int) -> dict[str, Any]:
    asking = {
        "task": "performance",
        "positive_class": "eight",
        "targets": {"precision": 0.7, "recall": 0.7},
        "budget": {"labels": LABELS},
    }
    return {
        "kafka": {"bootstrap_servers": [broker], "session_timeout_seconds": 6},
        "redis": {"url": redis},
        "http": {"port": port},
        "monitoring": {"port": free_port()},
        "schedule": {"tick_seconds": 1.0, "performance_seconds": 2.0},
        "seed": SEED,
        "hash_key": f"{SEED:032x}",
        "models": {MODEL: {"classes": list(CLASSES), "assessments": {ASSESSMENT: asking}}},
    }


def _play(children: Children, kafka: KafkaSettings, url: str) -> None:
    """Send predictions and answer requests until the performance is learned from all labels."""
    classifier = _Classifier()
    with (
        closing(build_producer(kafka, name="spotter")) as producer,
        closing(build_consumer(kafka, group="labeller", without_offset="earliest")) as consumer,
    ):
        predict, answer = (sender(producer, t) for t in (kafka.topics.predictions, kafka.topics.labels))
        join(consumer, kafka.topics.label_requests)
        until, sent = time.monotonic() + PATIENCE_SECONDS, 0
        while _labels_learned_from(url) < LABELS:
            children.check()
            if time.monotonic() > until:
                raise SystemExit("the performance was not learned in time")
            # Traffic goes on, so that the pool is filled again.
            count = MORE_ITEMS if sent else FIRST_ITEMS
            for record in classifier.predictions(range(sent, sent + count)):
                predict(record)
            sent += count
            for records in consumer.poll(timeout_ms=500).values():
                for record in records:
                    answer(classifier.label(LabelRequest.model_validate_json(record.value)))


class _Classifier:
    """One that has seen few images; and who knows what they show."""

    def __init__(self) -> None:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra, slow to import

        digits = load_split(SEED)
        self._world = World(SEED, digits)
        images = digits.training_images[:TRAINING_IMAGES].reshape(TRAINING_IMAGES, -1)
        eights = digits.training_classes[:TRAINING_IMAGES] == DIGIT
        self._regression = LogisticRegression().fit(images / BRIGHTEST, eights)

    def predictions(self, numbers: range) -> Iterator[Record]:
        """What it says of some items."""
        pixels = self._world.pixels(numbers, degraded=False).reshape(len(numbers), -1)
        found = np.round(self._regression.predict_proba(pixels / BRIGHTEST), 6).tolist()
        for number, probabilities in zip(numbers, found, strict=True):
            called = int(probabilities[1] >= THRESHOLD)
            prediction = Prediction(
                model=MODEL,
                item_id=item_id(number),
                predicted_class=CLASSES[called],
                score=probabilities[called],
                time=datetime.now(UTC),
            )
            yield _record(prediction, PREDICTION_TYPE)

    def label(self, request: LabelRequest) -> Record:
        """What an item really shows."""
        shows = self._world.true_class(item_number(request.item_id))
        label = Label(
            request_id=request.request_id,
            model=MODEL,
            item_id=request.item_id,
            true_class=CLASSES[int(shows == str(DIGIT))],
        )
        return _record(label, LABEL_TYPE)


def _record(message: Prediction | Label, event_type: str) -> Record:
    headers = cloudevents_headers(
        event_type=event_type, event_id=uuid.uuid4().hex, source="docs/spotter", time=datetime.now(UTC)
    )
    return message.item_id.encode(), message.model_dump_json(exclude_none=True).encode(), headers


def _labels_learned_from(url: str) -> int:
    path = f"{url}/api/v1/models/{MODEL}/performance/{ASSESSMENT}"
    try:
        with urllib.request.urlopen(path, timeout=5) as reply:  # noqa: S310 - of this machine
            return int(json.loads(reply.read())["labels"])
    except urllib.error.URLError:
        return 0
