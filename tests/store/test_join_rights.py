"""Every role handles unrequested labels with the rights of `permissions.py` alone, and needs each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import redis
from join_site import BEGIN, CLOSED_AT, DAY, HOUR, JoinSite, iso
from roles import redis_of_rights

from service.app.permissions import redis_rights, redis_rules
from service.config.settings import RedisSettings
from service.demo.servers import EmbeddedRedis
from service.domain.errors import Refused
from service.store.client import build_redis
from service.store.connection import Connection, commands_of

PASSWORD = "a-secret-of-the-tests"
ADDED = {"predictions": "flush_waiting", "labels": "join_labels", "schedule": "advance_cohort"}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedRedis]:
    with redis_of_rights() as server:
        yield server


class Roles:
    """A deployment whose connection logs in as one role after the other."""

    def __init__(self, server: EmbeddedRedis) -> None:
        self._server = server
        self._admin = redis.Redis(port=server.port)
        self._admin.flushall()
        self.site = JoinSite(self._connection("default", None), join_items=100)

    def _connection(self, name: str, password: str | None) -> Connection:
        values = {"url": self._server.url} | ({"username": name, "password": password} if password else {})
        return Connection(build_redis(RedisSettings.model_validate(values)), "credence")

    def be(self, role: str, *without: str) -> JoinSite:
        """The deployment as a role sees it that lacks some of its rights; its state in memory is new."""
        rules = [rule for rule in redis_rules(self.site.settings, role) if rule not in without]
        self._admin.execute_command("ACL", "SETUSER", role, "reset", "on", f">{PASSWORD}", "-@all", *rules)
        return JoinSite(self._connection(role, PASSWORD), join_items=100)

    def everything(self, role: str) -> None:
        """Have a role do all that it ever does about unrequested labels."""
        site = self.be(role)
        actions[role](site)


def predict(site: JoinSite) -> None:
    for begin in range(0, 300, 25):
        site.predict(range(begin, begin + 25))


def label(site: JoinSite) -> None:
    own = {"predicted_class": "cat", "score": 0.8, "time": iso(BEGIN + 20)}
    for begin in range(0, 300, 25):
        site.label_all([(item, "cat") for item in range(begin, begin + 25)])
    site.label_all([(f"own-{n}", "cat") for n in range(300)], prediction=own)
    site.label_all([(f"early-{n}", "cat") for n in range(300)])


def close(site: JoinSite) -> None:
    site.close(BEGIN + HOUR)
    site.close(CLOSED_AT + DAY)
    site.close(BEGIN + 20 * DAY)


actions: dict[str, Callable[[JoinSite], None]] = {"predictions": predict, "labels": label, "schedule": close}


@pytest.fixture
def roles(server: EmbeddedRedis) -> Roles:
    return Roles(server)


def test_predictions_join_labels_and_become_outcomes_with_the_rights_of_each_role(roles: Roles) -> None:
    predictions = roles.be("predictions")
    predictions.predict("ab")
    assert roles.be("labels").label("a") == "joined"
    assert roles.be("schedule").close(BEGIN + HOUR + 10 * DAY) == 2
    assert roles.be("labels").label_all([("c", "cat")]) == ["early"]


def test_each_role_can_do_everything_about_unrequested_labels(roles: Roles) -> None:
    for role in ("predictions", "labels", "schedule"):
        roles.everything(role)
    assert len(roles.site.entries()) > 20


@pytest.mark.parametrize("role", ADDED)
def test_a_role_that_lacks_a_command_of_its_script_is_refused_and_changes_nothing(
    roles: Roles, role: str
) -> None:
    for other in ("predictions", "labels"):
        if other != role:
            roles.everything(other)
    for command in commands_of(ADDED[role]):
        with pytest.raises(Refused, match="lacks a right"):
            actions[role](roles.be(role, f"+{command.lower()}"))
    assert roles.site.entries() == []


def test_the_status_reads_what_waits(roles: Roles) -> None:
    roles.everything("predictions")
    assert roles.be("serve").summary().items > 0


def test_without_such_a_model_no_role_needs_more() -> None:
    site = JoinSite(Connection(redis.Redis(), "credence"))
    plain = site.settings.model_copy(
        update={"models": {"m": site.settings.models["m"].model_copy(update={"unrequested_labels": None})}}
    )
    for role, script in ADDED.items():
        assert script in redis_rights(site.settings, role).scripts
        assert script not in redis_rights(plain, role).scripts
