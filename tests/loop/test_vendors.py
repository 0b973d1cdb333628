"""Two vendors answer over Kafka: each its own requests, signed, and nothing else counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from harness import Deploy, Deployment, wait_for

from service.domain.label_signatures import sign
from service.domain.messages import LabelRequest
from service.store.outcome_entries import BEGINNING

KEYS = {"acme": "a" * 32, "bolt": "b" * 32}
VENDORS = (
    f"{{acme: {{label_keys: [{KEYS['acme']}]}}, "
    f"bolt: {{label_keys: [{KEYS['bolt']}], topic: NAME.for-bolt}}}}"
)
COMMON, FOR_BOLT = "label-requests", "for-bolt"


def assessments(*, lease_seconds: float) -> str:
    return (
        f"{{regions: {{grouping: region, budget: {{labels: 30}}, max_in_flight: 30, "
        f"lease_seconds: {lease_seconds:g}, max_attempts: 5}}}}"
    )


class Desk:
    """Both vendors' people, and what was refused of them."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._topics = {topic: deployment.consumer(topic) for topic in (COMMON, FOR_BOLT)}
        self._letters = deployment.consumer("dead-letters")
        self._refused: dict[str, list[str]] = {}
        self.seen: list[tuple[str, LabelRequest]] = []

    def look(self) -> list[tuple[str, LabelRequest]]:
        """All requests so far, with the topic that they came from."""
        for topic, consumer in self._topics.items():
            for records in consumer.poll(100).values():
                self.seen += [(topic, LabelRequest.model_validate_json(one.value)) for one in records]
        return self.seen

    def of(self, vendor: str) -> list[LabelRequest]:
        return [request for _, request in self.look() if request.vendor == vendor]

    def say(self, request: LabelRequest, signer: str | None, **changes: Any) -> None:
        """Send a label, signed by a vendor or by nobody."""
        fields = {"request_id": request.request_id, "model": request.model, "item_id": request.item_id}
        fields["time"] = datetime.now(UTC).isoformat()
        value = json.dumps({"true_class": "cat"} | fields | changes).encode()
        self._deployment.producer.send(
            f"{self._deployment.name}.labels",
            value=value,
            key=request.item_id.encode(),
            headers=[] if signer is None else sign(KEYS[signer].encode(), signer, value),
        )
        self._deployment.producer.flush()

    def refused(self, request: LabelRequest) -> list[str]:
        """Why labels of a request were refused so far."""
        for records in self._letters.poll(100).values():
            for record in records:
                headers = dict(record.headers)
                about = json.loads(record.value)["request_id"]
                self._refused.setdefault(about, []).append(headers["credence-reason"].decode())
        return self._refused.get(request.request_id, [])

    def outcomes(self, request: LabelRequest) -> list[str]:
        """What is known of a request, entry by entry."""
        page = self._deployment.facts().outcomes(BEGINNING)
        assert page is not None
        return [e.label.true_class for e in page.labelled if e.fact.request_id == request.request_id]


def running(deployment: Deployment) -> Iterator[Desk]:
    desk = Desk(deployment)
    with deployment.process("run") as process:
        deployment.send_predictions(range(500))
        wait_for(lambda: len(desk.look()) >= 30, seconds=60, what="all label requests")
        wait_for(process.ready, seconds=40, what="ready")
        yield desk


@pytest.fixture(scope="module")
def desk(module_deploy: Deploy) -> Iterator[Desk]:
    """Two vendors with all their requests."""
    yield from running(module_deploy(assessments=assessments(lease_seconds=600), vendors=VENDORS))


@pytest.fixture(scope="module")
def hurried(module_deploy: Deploy) -> Iterator[Desk]:
    """The same, but requests are asked anew after twenty seconds."""
    yield from running(module_deploy(assessments=assessments(lease_seconds=20), vendors=VENDORS))


def test_each_vendor_is_asked_on_its_own_topic_or_on_the_common_one(desk: Desk) -> None:
    assert {(topic, request.vendor) for topic, request in desk.look()} == {
        (COMMON, "acme"),
        (FOR_BOLT, "bolt"),
    }


def test_another_vendors_label_is_a_dead_letter_and_the_right_ones_counts(desk: Desk) -> None:
    request = desk.of("bolt")[0]
    desk.say(request, "acme", true_class="dog")
    wait_for(lambda: desk.refused(request) == ["wrong_vendor"], seconds=60, what="the refusal")
    desk.say(request, "bolt", true_class="owl")
    wait_for(lambda: desk.outcomes(request) == ["owl"], seconds=60, what="the answer")


def test_an_unsigned_label_is_a_dead_letter(desk: Desk) -> None:
    request = desk.of("acme")[0]
    desk.say(request, None)
    wait_for(lambda: desk.refused(request) == ["unsigned_label"], seconds=60, what="the refusal")
    assert desk.outcomes(request) == []


def test_an_answer_is_corrected_by_its_own_vendor_alone(desk: Desk) -> None:
    request = desk.of("acme")[1]
    desk.say(request, "acme", true_class="cat")
    desk.say(request, "bolt", kind="correction", true_class="dog")
    desk.say(request, "acme", kind="correction", true_class="owl")
    wait_for(lambda: desk.outcomes(request) == ["cat", "owl"], seconds=60, what="the correction")
    wait_for(lambda: desk.refused(request) == ["wrong_vendor"], seconds=60, what="the refusal")


def test_a_request_asked_anew_may_be_another_vendors_and_the_first_ones_answer_is_refused(
    hurried: Desk,
) -> None:
    def moved() -> tuple[LabelRequest, LabelRequest] | None:
        latest: dict[str, LabelRequest] = {}
        for _, one in hurried.look():
            before = latest.get(one.request_id)
            latest[one.request_id] = one
            # One that has just come, so that there is time to answer it.
            time_left = one.deadline - datetime.now(UTC)
            if before is not None and before.vendor != one.vendor and time_left > timedelta(seconds=15):
                return before, one
        return None

    before, after = wait_for(moved, seconds=60, what="a request that moved")
    hurried.say(before, before.vendor, true_class="dog")
    hurried.say(after, after.vendor, true_class="owl")
    wait_for(lambda: hurried.outcomes(after) == ["owl"], seconds=60, what="the answer")
    wait_for(lambda: hurried.refused(before) == ["wrong_vendor"], seconds=60, what="the refusal")


def test_the_command_line_tells_vendors_and_makes_their_topics(module_deploy: Deploy) -> None:
    deployment = module_deploy(vendors=VENDORS)
    printed = deployment.run_command("check").stdout
    assert "vendor bolt: models sorter; share 1; no token (Kafka only); label keys: 1; " in printed
    assert KEYS["bolt"] not in printed
    assert f"{deployment.name}.for-bolt: exists" in deployment.run_command("topics", "create").stdout
