"""The page `docs/rights.md`, made from the table of rights."""

from __future__ import annotations

from collections.abc import Iterator

from service.app.docgen.schemas import table
from service.app.permissions import PLAYED_BY, ROLES, RightsRole, kafka_rights, redis_rights, redis_rules
from service.config.settings import Settings

_VENDORS = {
    "acme": {
        "token_sha256": ["0" * 64],
        "label_keys": ["0" * 64],
        "topic": "credence.label-requests.acme",
    }
}
_EXAMPLE = {"models": {"animals": {"classes": ["cat", "dog"]}}}


def rights_page() -> str:
    """The text of `docs/rights.md`."""
    settings = Settings.model_validate(_EXAMPLE)
    kafka_rows = [
        [f"`{role}`", right.resource, f"`{right.name}`", right.operation]
        for role in ROLES
        for right in kafka_rights(settings, role)
    ]
    return _PAGE.format(
        roles=table(("role", "played by"), [[f"`{role}`", PLAYED_BY[role]] for role in ROLES]),
        kafka=table(("role", "resource", "name", "operation"), kafka_rows),
        redis="\n\n".join(_redis_section(settings, role) for role in ROLES),
        vendors=table(("role", "in Kafka too", "in Redis too"), list(_of_vendors(settings))),
    )


def _of_vendors(settings: Settings) -> Iterator[list[str]]:
    """What every role may do with vendors, and not without."""
    more = Settings.model_validate(_EXAMPLE | {"vendors": _VENDORS})
    for role in ROLES:
        kafka = [each for each in kafka_rights(more, role) if each not in kafka_rights(settings, role)]
        plain = redis_rules(settings, role)
        redis = [rule for rule in redis_rules(more, role) if rule not in plain]
        if kafka or redis:
            told = [f"{right.operation} {right.resource} `{right.name}`" for right in kafka]
            yield [f"`{role}`", ", ".join(told) or "none", _listed(redis) or "none"]


def _redis_section(settings: Settings, role: RightsRole) -> str:
    rights = redis_rights(settings, role)
    if not rights.every_command():
        return f"### `{role}`\n\nDoes nothing in Redis."
    rows = [
        ["commands of its own", _listed(sorted(rights.commands))],
        ["commands of its scripts", _listed(sorted(rights.every_command() - rights.commands)) or "none more"],
        ["keys that it only reads", _listed(rights.reads) or "none"],
        ["keys that it writes", _listed(rights.writes)],
    ]
    return f"### `{role}`\n\n{table(('', ''), rows)}"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_PAGE = """\
# Rights

What every role of Credence does in Kafka and in Redis, and all that it has to be allowed. This page is
made from `service/app/permissions.py`. Tests run every role with these rights alone, and hold that none of
them could be left out (`tests/stack/test_rights.py`, and `tests/stack/test_vendor_rights.py` for those that
vendors add). How to grant them is told in [access.md](access.md).

{roles}

`credence run` plays the first four, and needs what these need together.

## Kafka

For the default names of topics and groups; `credence rights kafka` tells them for yours. Read and write
each imply describe. Nothing but `credence topics create` makes topics. The producer is idempotent, for which
Kafka 2.8 and newer ask for no right beside that to write; older ones ask for `IdempotentWrite` on the
cluster. `serve` does not come to Kafka, unless a vendor has a token: then it writes labels.

{kafka}

## Redis

For the default prefix and database 0, where no `hash_key` is configured; `credence rights redis` tells them
for yours. On a Redis Cluster `CLUSTER SLOTS`, `COMMAND`, `ASKING`, `MULTI` and `EXEC` are needed too; for
another database, `SELECT`. With a `hash_key`, no role needs the key `credence:hash_key`.

{redis}

## Where vendors are configured

The rights of these roles grow. Here the vendor `acme` has a token and a topic of its own; where no vendor has
a token, those of `serve` do not grow:

{vendors}
"""
