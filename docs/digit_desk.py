"""A team that labels handwritten digits in the browser, for the pictures of the labelling page."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
import time
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
from service.config.new_secrets import new_label_key
from service.demo.children import Children
from service.demo.person.pictures import picture_uri
from service.demo.ports import free_port
from service.demo.process import sender
from service.demo.world import World, item_id, item_number, load_split
from service.domain.messages import PREDICTION_TYPE, Prediction, cloudevents_headers
from service.kafka.clients import build_producer

MODEL, TEAM = "digits", "team"
CLASSES = [str(digit) for digit in range(10)]
ITEMS, SEED = 400, 1
_START_SECONDS = 60.0


@contextmanager
def digit_desk() -> Iterator[tuple[str, str]]:
    """The address of the vendor API of a deployment with requests to label, and the team's token."""
    token = secrets.token_urlsafe(32)
    with (
        tempfile.TemporaryDirectory(prefix="credence-desk-") as name,
        Children(Path(name), _wait) as children,
    ):
        config, port = Path(name) / "credence.yaml", free_port()
        broker, redis = children.start_broker().bootstrap_server, children.start_redis().url
        config.write_text(yaml.safe_dump(_configuration(broker, redis, port, token)), encoding="utf-8")
        with_config = ["--config", str(config)]
        children.finish("credence topics create", "service.app.cli", ["topics", "create", *with_config])
        children.start("credence run", "service.app.cli", ["run", *with_config])
        kafka = load_settings(config, {}).kafka
        with closing(build_producer(kafka, name="digits")) as producer:
            send = sender(producer, kafka.topics.predictions)
            for prediction in _predictions():
                headers = cloudevents_headers(
                    event_type=PREDICTION_TYPE,
                    event_id=uuid.uuid4().hex,
                    source="docs/digit_desk",
                    time=datetime.now(UTC),
                )
                send(
                    (
                        prediction.item_id.encode(),
                        prediction.model_dump_json(exclude_none=True).encode(),
                        headers,
                    )
                )
            producer.flush()
        url = f"http://127.0.0.1:{port}"
        children.wait_until(
            lambda: _answers(f"{url}/label/"), what="the labelling page", seconds=_START_SECONDS
        )
        yield url, token


def shown_digit(item: str) -> str:
    """What the image of an item shows."""
    return World(SEED, load_split(SEED)).true_class(item_number(item))


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=1).close()  # noqa: S310 - of this machine
    except OSError:
        return False
    return True


def _wait(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _configuration(broker: str, redis: str, port: int, token: str) -> dict[str, Any]:
    asking = {"task": "estimation", "grouping": "class", "budget": {"labels": ITEMS}, "max_in_flight": 100}
    team = {
        "token_sha256": [hashlib.sha256(token.encode()).hexdigest()],
        "label_keys": [new_label_key()],
        "labelling_page": True,
    }
    return {
        "kafka": {"bootstrap_servers": [broker], "session_timeout_seconds": 6},
        "redis": {"url": redis},
        "http": {"port": free_port()},
        "monitoring": {"port": free_port()},
        "vendor_api": {"port": port},
        "schedule": {"tick_seconds": 1.0},
        "seed": SEED,
        "hash_key": f"{SEED:032x}",
        "models": {
            MODEL: {
                "classes": CLASSES,
                "groupings": {"class": {"by": "predicted_class"}},
                "assessments": {"every-digit": asking},
            }
        },
        "vendors": {TEAM: team},
    }


def _predictions() -> Iterator[Prediction]:
    """What a classifier says of handwritten digits, with their images inline."""
    world = World(SEED, load_split(SEED))
    rng = np.random.default_rng(SEED)
    for number, pixels in enumerate(world.pixels(range(ITEMS), degraded=False)):
        yield Prediction(
            model=MODEL,
            item_id=item_id(number),
            predicted_class=world.true_class(number),
            score=round(float(rng.uniform(0.6, 1.0)), 3),
            time=datetime.now(UTC),
            payload=picture_uri(pixels),
        )
