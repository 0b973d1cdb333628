"""The page `docs/rights.md`, made from the table of rights."""

from __future__ import annotations

from collections.abc import Iterator

from service.app.docgen.generated_files import page_template
from service.app.docgen.schemas import table
from service.app.permissions import ROLES, kafka_rights, redis_rights, redis_rules
from service.config.settings import Settings

_VENDORS = {
    "acme": {
        "token_sha256": ["0" * 64],
        "label_keys": ["0" * 64],
        "topic": "credence.label-requests.acme",
    }
}
_SENDERS = {"shop": {"models": ["animals"], "token_sha256": ["0" * 64]}}
_EXAMPLE = {"models": {"animals": {"classes": ["cat", "dog"]}}}

_UNREQUESTED = {"animals": {"classes": ["cat", "dog"], "unrequested_labels": {"items": "census"}}}


def rights_page() -> str:
    """The text of `docs/rights.md`."""
    settings = Settings.model_validate(_EXAMPLE)
    kafka_rows = [
        [f"`{role}`", right.resource, f"`{right.name}`", right.operation]
        for role in ROLES
        for right in kafka_rights(settings, role)
    ]
    return page_template("rights.md").format(
        roles=table(("role", "played by"), [[f"`{role}`", commands] for role, commands in ROLES.items()]),
        kafka=table(("role", "resource", "name", "operation"), kafka_rows),
        redis="\n\n".join(_redis_section(settings, role) for role in ROLES),
        vendors=table(("role", "in Kafka too", "in Redis too"), list(_beside(settings, vendors=_VENDORS))),
        senders=table(("role", "in Kafka too", "in Redis too"), list(_beside(settings, senders=_SENDERS))),
        unrequested=table(
            ("role", "in Kafka too", "in Redis too"), list(_beside(settings, models=_UNREQUESTED))
        ),
    )


def _beside(settings: Settings, **sections: object) -> Iterator[list[str]]:
    """What every role may do with some sections of the configuration, and not without."""
    more = Settings.model_validate(_EXAMPLE | sections)
    for role in ROLES:
        kafka = [each for each in kafka_rights(more, role) if each not in kafka_rights(settings, role)]
        plain = redis_rules(settings, role)
        redis = [rule for rule in redis_rules(more, role) if rule not in plain]
        if kafka or redis:
            listed = [f"{right.operation} {right.resource} `{right.name}`" for right in kafka]
            yield [f"`{role}`", ", ".join(listed) or "none", _listed(redis) or "none"]


def _redis_section(settings: Settings, role: str) -> str:
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
