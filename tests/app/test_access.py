"""What roles may do: as lines for Kafka and Redis, and as a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from service.app.docgen.rights import rights_page
from service.app.permissions import ROLES, KafkaRight, kafka_lines, kafka_rights, redis_lines, redis_rules
from service.config.settings import Settings
from service.store.connection import commands_of

ROOT = Path(__file__).parents[2]
LUA = ROOT / "service" / "store" / "lua"


def settings(**sections: Any) -> Settings:
    return Settings.model_validate({"models": {"animals": {"classes": ["cat", "dog"]}}} | sections)


def test_the_committed_page_is_current() -> None:
    assert (ROOT / "docs" / "rights.md").read_text(encoding="utf-8") == rights_page()


@pytest.mark.parametrize("script", sorted(path.stem for path in LUA.glob("*.lua")))
def test_every_call_of_a_script_is_known_and_begins_with_a_key(script: str) -> None:
    text = (LUA / f"{script}.lua").read_text(encoding="utf-8")
    calls = re.findall(r"redis\.p?call\(\s*('[A-Z]+')?,?", text)
    included = {
        name for other in re.findall(r"^-- include (\w+)$", text, re.MULTILINE) for name in commands_of(other)
    }
    assert {call.strip("'") for call in calls} | included == set(commands_of(script))


def test_lines_for_redis_name_users_who_cannot_log_in_yet() -> None:
    lines = list(redis_lines(settings(redis={"prefix": "watch"})))
    assert [line.split()[:5] for line in lines] == [
        ["user", f"watch-{role}", "on", "resetchannels", "-@all"]
        for role in ROLES
        if role not in ("topics", "sample", "send-predictions")
    ]
    assert not [part for line in lines for part in line.split() if part.startswith((">", "#", "nopass"))]
    assert all("watch:" in line and "credence" not in line for line in lines)


def test_lines_for_kafka_name_topics_and_groups_as_they_are_configured() -> None:
    kafka = {"group_prefix": "watch", "topics": {"predictions": "theirs"}}
    assert list(kafka_lines(settings(kafka=kafka)))[:3] == [
        "--add --allow-principal User:watch-predictions --operation Read --topic theirs",
        "--add --allow-principal User:watch-predictions --operation Write --topic credence.dead-letters",
        "--add --allow-principal User:watch-predictions --operation Read --group watch.predictions",
    ]


def test_with_a_configured_hash_key_serve_writes_nothing_to_redis() -> None:
    rules = redis_rules(settings(hash_key="0" * 32), "serve")
    assert "+set" not in rules
    assert not [rule for rule in rules if rule.startswith("~")]


def test_another_database_is_to_be_selected() -> None:
    for url in ("redis://redis:6379/1", "rediss://redis/7"):
        assert "+select" in redis_rules(settings(redis={"url": url}), "labels")
    assert "+select" not in redis_rules(settings(redis={"url": "redis://redis"}), "labels")


def test_a_cluster_is_to_be_looked_at() -> None:
    rules = redis_rules(settings(redis={"cluster": True}), "dead-letters")
    assert {"+cluster|slots", "+command", "+asking", "+multi", "+exec"} <= set(rules)


def test_vendors_with_a_token_have_serve_write_labels_and_claims() -> None:
    vendor = {"token_sha256": ["0" * 64], "label_keys": ["k" * 32], "topic": "theirs"}
    with_vendors = settings(vendors={"acme": vendor})
    assert kafka_rights(with_vendors, "serve") == [KafkaRight("topic", "credence.labels", "Write")]
    assert KafkaRight("topic", "theirs", "Write") in kafka_rights(with_vendors, "schedule")
    assert KafkaRight("topic", "theirs", "Create") in kafka_rights(with_vendors, "topics")
    assert "~credence:{*}:claims" in redis_rules(with_vendors, "serve")
    without_token = settings(vendors={"acme": vendor | {"token_sha256": []}})
    assert kafka_rights(without_token, "serve") == []


@pytest.mark.parametrize("tokens", [[], ["0" * 64]])
def test_scripts_may_name_what_a_vendor_may_claim_whether_it_has_a_token_or_not(tokens: list[str]) -> None:
    with_vendors = settings(vendors={"acme": {"token_sha256": tokens, "label_keys": ["k" * 32]}})
    for role in ("labels", "schedule"):
        assert "~credence:{*}:claimable:*" in redis_rules(with_vendors, role)
        assert "~credence:{*}:claimable:*" not in redis_rules(settings(), role)
