"""The proposal's keys of Kafka: servers, topic, and where the fields of predictions are in the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from service.app.files.columns import plain_name
from service.app.proposal.attributes import Attribute
from service.app.proposal.commented_yaml import Entry
from service.app.proposal.profile import Profile
from service.app.proposal.roles import Role, Roles
from service.app.proposal.tensor_names import TensorNames
from service.config.settings import KafkaSettings

_MAPPED: Final = ("item_id", "predicted_class", "score", "probabilities", "time")


@dataclass(frozen=True)
class Place:
    """Where a sample of a topic was read.

    Attributes:
        servers: of Kafka, that the user named or the sample was read from; None if neither.
        topic: that was sampled; None without one.
        registry: settings of the schema registry that are no secrets.
        tensors: of inference responses that are fields.
    """

    servers: Sequence[str] | None = None
    topic: str | None = None
    registry: Mapping[str, Any] = field(default_factory=dict)
    tensors: TensorNames | None = None


def kafka_entries(
    profile: Profile, roles: Roles, attributes: Sequence[Attribute], model: str, place: Place
) -> Entry:
    """The section of Kafka.

    Args:
        profile: of the sample.
        roles: of its columns.
        attributes: that are proposed.
        model: its name.
        place: where the sample was read.
    """
    defaults = KafkaSettings()
    servers = list(place.servers or defaults.bootstrap_servers)
    why = (
        "That the sample was read from, or that were named." if place.servers else "The default; name yours."
    )
    entries = [Entry("bootstrap_servers", servers, [why])]
    if place.topic not in {None, defaults.topics.predictions}:
        topics = (Entry("predictions", place.topic, ["The topic that the sample was read from."]),)
        entries.append(Entry("topics", topics, ["The other topics have their default names."]))
    if place.registry:
        reason = "That the sample was read with. A password is not here: docs/formats.md#schema-registry"
        entries.append(Entry("schema_registry", dict(place.registry), [reason]))
    if profile.records is not None:
        entries.append(_mapping(profile, roles, attributes, model))
    return Entry("kafka", tuple(entries), ["Where predictions come from. Logins and TLS: docs/access.md."])


def tensor_entries(tensors: TensorNames | None) -> Sequence[Entry]:
    """Which tensors of inference responses are fields; nothing if the sample has no responses."""
    if tensors is None:
        return ()
    why = ["Which tensors of the server's responses are which fields, and why:", *tensors.why]
    return (Entry("tensors", dict(tensors.names), why),)


def _mapping(profile: Profile, roles: Roles, attributes: Sequence[Attribute], model: str) -> Entry:
    entries = [_model(roles, model)]
    for name in _MAPPED:
        role = roles.fields[name]
        if role:
            entries.append(Entry(name, _rule(profile, name, role.column), _reasons(profile, name, role)))
    if attributes:
        named = tuple(Entry(each.name, each.column, [f"{each.why}."]) for each in attributes)
        entries.append(Entry("attributes", named, ["Fields that split the traffic into groups."]))
    why = [
        (
            "The records have fields of another shape; this says where those of a prediction are. It was "
            "chosen by the names of the fields, so check each line, and then what it reads: `credence check "
            "--sample`. docs/formats.md#mapping"
        ),
        "Labellers see the whole record if you add `payload: $`.",
    ]
    return Entry("mapping", tuple(entries), why)


def _model(roles: Roles, model: str) -> Entry:
    role = roles.fields["model"]
    if role:
        return Entry("model", role.column, [_sentence(role.why)])
    return Entry("model", {"value": model}, ["No field names the model, so all records are of this one."])


def _rule(profile: Profile, name: str, path: str) -> Any:
    """A rule of the mapping: a path, with the unit of times that are numbers."""
    units = profile.records.units[path] if profile.records is not None and name == "time" else set()
    unit = next(iter(units), None)
    return path if unit is None else {"path": path, "unit": unit}


def _reasons(profile: Profile, name: str, role: Role) -> list[str]:
    reasons = [_sentence(role.why)]
    found = profile.columns[role.column]
    records = profile.records
    if name == "predicted_class" and found.numbers is not None:
        reasons.append("Its values are numbers; `names: {0: cat, 1: dog}` beside `path` gives them names.")
    for path, length in records.lengths.items() if records is not None else ():
        if length > 1 and role.column.startswith(f"{path}[0]"):
            reasons.append(
                f"WARNING: {plain_name(path)} has up to {length} elements, and the first alone is read. "
                "That is right if the first is the best of one prediction, and wrong if a record has several "
                "predictions."
            )
    if found.missing_share and name != "time":
        reasons.append(f"Missing in {found.missing_share:.1%} of the records, which are refused then.")
    return reasons


def _sentence(why: str) -> str:
    return f"{why[:1].upper()}{why[1:]}."
