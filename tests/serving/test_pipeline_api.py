"""The health of the pipeline over HTTP."""

from __future__ import annotations

import jsonschema
from api_client import Client
from snapshots import NOW

from service.monitoring.pipeline import PipelineState
from service.serving.web.api import SnapshotView
from service.serving.web.pages import page_app
from service.serving.web.server import WebServer
from service.store.consumer_health import ConsumerHealth
from service.store.lease import Leader
from service.store.recent_reports import Intake, RefusedMessages
from service.store.resets import RedisReset

REFUSED = RefusedMessages(
    "invalid_score", 3, NOW, "predictions", 0, 5, None, "score", "the score must lie in [0, 1]"
)
STATE = PipelineState(
    read_at=NOW,
    consumers=[
        ConsumerHealth("predictions", "a:1", "paused", NOW, NOW, NOW, partitions=(0,), refused=(REFUSED,)),
        ConsumerHealth("labels", "a:1", "running", NOW, NOW - 90, NOW),
    ],
    leader=Leader("a:1", NOW),
    reset=RedisReset(NOW, "emptied", 9, 0, {"labels": 9}),
    estimates_at=NOW,
    intake=[Intake("predictions", "a1", 500, (REFUSED,), NOW)],
)


def test_the_pipeline_is_described_once_it_was_read_and_as_the_openapi_document_says() -> None:
    known: list[PipelineState] = []
    view = SnapshotView([], {}, 5.0, lambda: NOW + 2, pipeline=lambda: known[-1] if known else None)
    server = WebServer(page_app(view), name="page", host="127.0.0.1", port=0)
    try:
        client = Client(server.port, {})
        status, body, _ = client.ask("/api/v1/pipeline")
        assert (status, "first round" in body["detail"]) == (404, True)
        known.append(STATE)
        status, body, _ = client.ask("/api/v1/pipeline")
        assert status == 200
        document = client.ask("/api/v1/openapi.json")[1]
    finally:
        server.stop()
    answer = document["paths"]["/pipeline"]["get"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    jsonschema.validate(body, schema | {"components": document["components"]})
    assert [one["key"] for one in body["problems"]] == [
        "redis_reset",
        "consumer_paused:predictions",
        "consumer_missing:labels",
        "messages_refused:predictions",
    ]
    assert body["reset"]["labels_before"] == 9
    assert [one["silent"] for one in body["consumers"]] == [False, True]
