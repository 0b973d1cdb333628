"""Every procedure of docs/operations.md, with the commands that stand there."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pytest
import yaml
from apache_kafka import ApacheKafka
from fleet import START_SECONDS, end
from harness import Deploy, Deployment, prediction, truth, wait_for
from missing_programs import program
from procedures import PAGE, PROCEDURES, carry_out
from stored import expected_cells, stored_cells

from service.app.wiring import model_keys
from service.config.loader import load_settings
from service.demo.servers import EmbeddedRedis
from service.domain.label_signatures import sign
from service.domain.messages import LabelRequest
from service.store.keys import hash_key_key
from service.store.outcome_entries import BEGINNING, OutcomeEntry

ASSESSMENTS = (
    "{weakest: {task: identification, grouping: region, budget: {labels: 60}, max_in_flight: 60, "
    "lease_seconds: 900}, "
    "classes: {task: estimation, grouping: class, budget: {labels: 60}, max_in_flight: 60, "
    "lease_seconds: 900}}"
)
BUDGET = 120


class OwnRedis:
    """A redis-server of one test, with its data in a folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server = EmbeddedRedis(folder=folder)
        self.url = self._server.url

    def stop(self) -> None:
        self._server.stop()

    def start(self, **options: str) -> None:
        self._server = EmbeddedRedis(folder=self.folder, port=self._server.port, options=options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[OwnRedis]:
    program("redis-cli", package="redis-tools")
    (tmp_path / "redis").mkdir()
    with OwnRedis(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def deployment(deploy: Deploy, redis: OwnRedis, apache_kafka: ApacheKafka) -> Deployment:
    return deploy(broker=apache_kafka.bootstrap_servers, redis_url=redis.url, assessments=ASSESSMENTS)


class People:
    """Who takes label requests, and answers some of them when asked to."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._consumer = deployment.consumer("label-requests")
        self.asked: dict[str, LabelRequest] = {}

    def wait_for(self, count: int) -> None:
        """Wait until so many different requests were seen."""

        def enough() -> bool:
            for records in self._consumer.poll(200).values():
                for record in records:
                    request = LabelRequest.model_validate_json(record.value)
                    self.asked[request.request_id] = request
            return len(self.asked) >= count

        wait_for(enough, seconds=60, what=f"{count} label requests")

    def answer(self, requests: Sequence[LabelRequest], *, key: str | None = None) -> None:
        """Answer these, signed with a label key of the vendor `acme` if one is given."""
        for request in requests:
            label = {
                "request_id": request.request_id,
                "model": request.model,
                "item_id": request.item_id,
                "true_class": true_class(request.item_id),
                "time": datetime.now(UTC).isoformat(),
            }
            value = json.dumps(label).encode()
            self._deployment.producer.send(
                f"{self._deployment.name}.labels",
                value=value,
                key=request.item_id.encode(),
                headers=[] if key is None else sign(key.encode(), "acme", value),
            )
        self._deployment.producer.flush()


def true_class(item_id: str) -> str:
    return truth(int(item_id.removeprefix("item-")))


def outcomes(deployment: Deployment) -> dict[str, OutcomeEntry]:
    """All outcomes, by request; each is there once."""
    page = deployment.facts().outcomes(BEGINNING)
    assert page is not None
    found = {entry.fact.request_id: entry for entry in page.labelled}
    assert len(found) == len(page.labelled)
    return found


def everything(deployment: Deployment) -> tuple[Any, ...]:
    """All that must be the same after a restore: traffic, outcomes, budgets, what happened to requests."""
    requests = deployment.facts().requests()
    logged = {
        request: (entry.assessment, entry.fact, entry.label)
        for request, entry in outcomes(deployment).items()
    }
    return stored_cells(deployment), logged, requests.budget, requests.tallies, requests.open


def wait_until_stored(deployment: Deployment, count: int) -> None:
    wait_for(lambda: deployment.predictions_stored() >= count, seconds=60, what=f"{count} predictions stored")
    assert stored_cells(deployment) == expected_cells(deployment, range(count))


def pooled(deployment: Deployment) -> int:
    return sum(deployment.facts().traffic().pool_sizes.values())


def regroup(deployment: Deployment) -> None:
    """Change the configuration: the model has one more grouping, by an attribute that no other one knows."""
    sorter = yaml.safe_load(deployment.config.read_text())["models"]["sorter"]
    sorter["groupings"]["device"] = {"by": "attribute", "attribute": "device"}
    deployment.configure("models", sorter=sorter)
    deployment.settings = load_settings(deployment.config, {})


def begin_layout(deployment: Deployment) -> None:
    """Change the configuration: traffic of the model has another half-life, so another layout."""
    sorter = yaml.safe_load(deployment.config.read_text())["models"]["sorter"]
    deployment.configure("models", sorter=sorter | {"traffic_half_life_days": 3})
    deployment.settings = load_settings(deployment.config, {})


def add_model(deployment: Deployment, name: str) -> None:
    deployment.configure("models", **{name: {"classes": ["cat", "dog", "owl"]}})
    deployment.settings = load_settings(deployment.config, {})


def send_of(deployment: Deployment, model: str, numbers: range) -> None:
    """Send predictions of another model for the same items, to the same partitions."""
    for number in numbers:
        item = prediction(number) | {"model": model}
        deployment.send("predictions", json.dumps(item).encode(), item["item_id"])
    deployment.producer.flush()


def test_topics_are_there_after_the_installation(deployment: Deployment) -> None:
    printed = carry_out("install", deployment)
    assert "valid" in printed
    for kind in ("predictions", "label-requests", "labels", "dead-letters"):
        assert f"{deployment.name}.{kind}: " in printed


def test_a_restored_redis_catches_up_from_kafka_to_the_exact_facts(
    deployment: Deployment, redis: OwnRedis, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    backup.mkdir()
    people = People(deployment)
    with deployment.process("run") as process:
        deployment.send_predictions(range(600))
        people.wait_for(BUDGET)
        asked = list(people.asked.values())
        people.answer(asked[:50])
        wait_for(lambda: len(outcomes(deployment)) == 50, seconds=60, what="the first answers")
        wait_until_stored(deployment, 600)

        carry_out("back up", deployment, BACKUP=backup)

        people.answer(asked[50:])
        deployment.send_predictions(range(600, 1_000))
        wait_for(lambda: len(outcomes(deployment)) == BUDGET, seconds=60, what="all answers")
        wait_until_stored(deployment, 1_000)
        before = everything(deployment)

        redis.stop()
        for entry in redis.folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        carry_out("restore the file", deployment, BACKUP=backup, REDIS_DATA=redis.folder)
        redis.start(appendonly="no")
        assert len(outcomes(deployment)) >= 50
        _save_slowly(deployment.connection.client)  # as Redis may just then, and so puts the rewrite off
        carry_out("restore the append-only file", deployment)
        assert deployment.connection.client.info("persistence")["aof_rewrite_scheduled"] == 0
        redis.stop()
        redis.start()

        wait_for(lambda: len(outcomes(deployment)) == BUDGET, seconds=60, what="all answers again")
        wait_until_stored(deployment, 1_000)
        wait_for(process.ready, seconds=30, what="ready")
        assert everything(deployment) == before


def _save_slowly(redis: Any) -> None:
    """Have a snapshot under way, for five seconds or more: one that has ended puts nothing off."""
    redis.config_set("rdb-key-save-delay", 5_000_000 // redis.dbsize())
    redis.bgsave()
    redis.config_set("rdb-key-save-delay", 0)
    assert redis.info("persistence")["rdb_bgsave_in_progress"] == 1


def test_of_an_emptied_redis_traffic_is_made_anew_and_refused_labels_answer_who_is_asked_again(
    deployment: Deployment,
) -> None:
    deployment.configure("dead_letters", pause_window=40)
    people = People(deployment)
    deployment.send_predictions(range(1_000))
    with ExitStack() as stack:

        def start(*command: str, **variables: str) -> Any:
            return stack.enter_context(deployment.process(*command, **variables))

        predictions, labels = start("consume", "predictions"), start("consume", "labels")
        wait_until_stored(deployment, 1_000)
        size = pooled(deployment)
        schedule = start("schedule")
        people.wait_for(BUDGET)
        people.answer(list(people.asked.values()))
        wait_for(lambda: len(outcomes(deployment)) == BUDGET, seconds=60, what="all answers")
        end(schedule)
        end(labels)

        deployment.connection.client.flushall()

        wait_until_stored(deployment, 1_000)
        assert pooled(deployment) == size
        paused = 'credence_consumer_paused{topic="labels"}'
        refused = 'credence_dead_letters_total{reason="unknown_request",topic="labels"}'
        labels = start("consume", "labels")
        wait_for(lambda: labels.metric(paused) == 1, seconds=60, what="the paused consumer")
        # A first batch that is smaller than the limit was refused before the pause.
        earlier = labels.metric(refused) or 0
        end(labels)
        assert "CREDENCE_DEAD_LETTERS__PAUSE_RATIO=1 credence consume labels" in PAGE
        labels = start("consume", "labels", CREDENCE_DEAD_LETTERS__PAUSE_RATIO="1")
        wait_for(
            lambda: earlier + (labels.metric(refused) or 0) == BUDGET, seconds=60, what="all labels refused"
        )
        end(labels)
        labels = start("consume", "labels")
        wait_for(labels.ready, seconds=START_SECONDS, what="ready")

        schedule = start("schedule")
        wait_for(
            lambda: len(deployment.facts().requests().open) == BUDGET, seconds=60, what="requests made again"
        )
        end(schedule)
        again = people.asked.keys() & deployment.facts().requests().open.keys()
        assert len(again) >= BUDGET / 4
        printed = carry_out("labels for forgotten requests", deployment)
        assert f"{BUDGET} replayed, 0 skipped" in printed
        wait_for(lambda: len(outcomes(deployment)) >= len(again), seconds=60, what="their outcomes")
        found = outcomes(deployment)
        assert found.keys() == again
        assert all(entry.label.true_class == true_class(entry.fact.item_id) for entry in found.values())
        end(predictions)


def test_traffic_and_pool_of_all_models_are_made_anew_and_the_rest_stays(deployment: Deployment) -> None:
    add_model(deployment, "other")
    people = People(deployment)
    deployment.send_predictions(range(500))
    send_of(deployment, "other", range(300))
    with deployment.process("run") as process:
        people.wait_for(BUDGET)
        people.answer(list(people.asked.values())[:70])
        wait_for(lambda: len(outcomes(deployment)) == 70, seconds=60, what="answers")
        wait_until_stored(deployment, 500)
        wait_for(lambda: counted(deployment, "other") == 300, seconds=30, what="the other model")
        end(process)
    before, size = everything(deployment), pooled(deployment)

    printed = carry_out("rebuild traffic and pool", deployment)

    assert "2 removed" in printed
    assert deployment.predictions_stored() == 0
    assert everything(deployment)[1:] == before[1:]
    with deployment.process("consume", "predictions") as process:
        wait_until_stored(deployment, 500)
        wait_for(lambda: counted(deployment, "other") == 300, seconds=30, what="the other model")
        end(process)
    assert everything(deployment) == before
    # What was asked about and drawn is in the pool again, until it is drawn again, and passed over.
    assert pooled(deployment) >= size


def counted(deployment: Deployment, model: str) -> int:
    """Predictions that the layout in use counts, as `credence layouts list` tells."""
    keys = model_keys(deployment.settings, model)
    printed = deployment.run_command("layouts", "list").stdout
    found = re.search(rf"^{model} +{keys.layout} +in use +\d+ +(\d+)", printed, re.MULTILINE)
    return 0 if found is None else int(found[1])


def test_after_a_change_of_groupings_traffic_goes_on_and_outcomes_count_in_the_new_groups(
    deployment: Deployment,
) -> None:
    people = People(deployment)
    deployment.send_predictions(range(500))
    with deployment.process("run") as process:
        people.wait_for(BUDGET)
        people.answer(list(people.asked.values()))
        wait_for(lambda: len(outcomes(deployment)) == BUDGET, seconds=60, what="all answers")
        wait_until_stored(deployment, 500)
        end(process)
    _, *rest = everything(deployment)

    regroup(deployment)
    assert "groupings all, score_bin, region, class, device\n" in carry_out("look at a change", deployment)
    deployment.send_predictions(range(500, 600))

    with deployment.process("run") as process:
        wait_until_stored(deployment, 600)
        labelled = [
            f'credence_group_labels{{group="__missing__",grouping="device",model="sorter",outcome="{outcome}"}}'
            for outcome in ("correct", "incorrect")
        ]
        wait_for(
            lambda: sum(process.metric(sample) or 0 for sample in labelled) == BUDGET,
            seconds=30,
            what="labels in the groups",
        )
        end(process)
    table = deployment.facts().traffic().traffic.tables["device"]
    assert (table.names, int(table.block("bins").counts.sum())) == (["__missing__"], 100)
    assert [*everything(deployment)[1:]] == rest
    assert deployment.run_command("layouts", "list").stdout.count("sorter") == 1


def test_a_change_that_is_taken_back_finds_the_old_traffic_and_catches_up(deployment: Deployment) -> None:
    before = deployment.config.read_text()
    deployment.send_predictions(range(300))
    with deployment.process("consume", "predictions") as process:
        wait_until_stored(deployment, 300)
        end(process)
    begin_layout(deployment)
    deployment.send_predictions(range(300, 500))
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: deployment.predictions_stored() == 500, seconds=60, what="traffic of the new layout")
        end(process)
    deployment.config.write_text(before)
    deployment.settings = load_settings(deployment.config, {})
    assert deployment.predictions_stored() == 300
    with deployment.process("consume", "predictions") as process:
        wait_until_stored(deployment, 500)
        end(process)
    assert "1 removed" in carry_out("remove old layouts", deployment)
    assert deployment.run_command("layouts", "list").stdout.count("sorter") == 1
    assert deployment.predictions_stored() == 500


def test_with_several_models_one_with_a_new_layout_begins_where_the_others_stand_unless_all_are_made_anew(
    deployment: Deployment,
) -> None:
    add_model(deployment, "other")
    deployment.send_predictions(range(300))
    send_of(deployment, "other", range(300))
    with deployment.process("consume", "predictions") as process:
        wait_until_stored(deployment, 300)
        wait_for(lambda: counted(deployment, "other") == 300, seconds=30, what="the other model")
        end(process)
    begin_layout(deployment)
    deployment.send_predictions(range(300, 400))
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: deployment.predictions_stored() == 100, seconds=60, what="what came since")
        end(process)
    carry_out("rebuild traffic and pool", deployment)
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: deployment.predictions_stored() == 400, seconds=60, what="all of it")
        end(process)


@pytest.mark.parametrize("kept", ["in Redis", "configured"])
def test_a_new_hash_key_changes_the_pool_and_no_other_fact(
    deployment: Deployment, tmp_path: Path, kept: str
) -> None:
    file = tmp_path / "hash-key"
    file.write_text("00" * 16)
    variables = {} if kept == "in Redis" else {"CREDENCE_HASH_KEY_FILE": str(file)}

    def key() -> bytes:
        logged = deployment.connection.client.get(hash_key_key(deployment.name))
        return logged if kept == "in Redis" else file.read_bytes()

    people = People(deployment)
    deployment.send_predictions(range(1_000))
    with deployment.process("run", **variables) as process:
        people.wait_for(BUDGET)
        people.answer(list(people.asked.values()))
        wait_for(lambda: len(outcomes(deployment)) == BUDGET, seconds=60, what="all answers")
        wait_until_stored(deployment, 1_000)
        end(process)
    before, old_key = everything(deployment), key()

    procedure = "rotate the hash key in Redis" if kept == "in Redis" else "rotate a configured hash key"
    carry_out(procedure, deployment, **variables)

    with deployment.process("run", **variables) as process:
        wait_until_stored(deployment, 1_000)
        wait_for(process.ready, seconds=30, what="ready")
        end(process)
    assert everything(deployment) == before
    assert re.fullmatch(rb"[0-9a-f]{32}\n?", key())
    assert key() != old_key


def test_a_label_key_is_changed_and_no_label_is_refused_until_the_old_one_is_taken_away(
    deployment: Deployment,
) -> None:
    def new_key() -> str:
        return carry_out("make a vendor's secrets", deployment).split()[-1]

    def configure(*keys: str) -> None:
        deployment.configure("vendors", acme={"label_keys": list(keys)})

    old, new = new_key(), new_key()
    configure(old)
    people = People(deployment)
    deployment.send_predictions(range(500))
    with deployment.process("run") as process:
        people.wait_for(BUDGET)
        asked = list(people.asked.values())
        people.answer(asked[:30], key=old)
        wait_for(lambda: len(outcomes(deployment)) == 30, seconds=60, what="labels by the old key")
        end(process)
    configure(old, new)
    with deployment.process("run") as process:
        people.answer(asked[30:60], key=old)
        people.answer(asked[60:90], key=new)
        wait_for(lambda: len(outcomes(deployment)) == 90, seconds=60, what="labels by either key")
        end(process)
    configure(new)
    with deployment.process("run") as process:
        people.answer(asked[90:100], key=old)
        people.answer(asked[100:], key=new)
        wait_for(lambda: len(outcomes(deployment)) == BUDGET - 10, seconds=60, what="labels by the new key")
        refused = 'credence_dead_letters_total{reason="bad_signature",topic="labels"}'
        wait_for(lambda: process.metric(refused) == 10, seconds=30, what="labels by the old key refused")
        end(process)


def test_the_daily_look_tells_of_models_letters_and_redis(deployment: Deployment) -> None:
    deployment.send_predictions(range(100))
    deployment.send("predictions", b"{")
    deployment.producer.flush()
    with deployment.process("consume", "predictions") as process:
        wait_until_stored(deployment, 100)
        end(process)
    printed = carry_out("every day", deployment)
    for logged in ("sorter", "malformed_json", "aof_last_write_status:ok", "maxmemory_policy:"):
        assert logged in printed


def test_every_command_of_the_page_is_carried_out_here() -> None:
    assert PAGE.count("```sh\n") == len(PROCEDURES)
    here = Path(__file__).read_text()
    assert [name for name in PROCEDURES if f'"{name}"' not in here] == []
