"""Makes the decoders of the topics from the settings: schema registry, mappings, and formats."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from consumers.formats.arrow import arrow_rows
from consumers.formats.mapped_topic import MappedTopic
from consumers.formats.mapping import RecordMapper, WholeRecord
from consumers.formats.messages import TopicMessages
from consumers.formats.open_inference import OpenInference
from consumers.formats.records import Format, Formats
from consumers.formats.registered import RegisteredValues
from service.config.settings import Settings
from service.domain.errors import ConfigurationError
from service.domain.field_mapping import RecordMapping
from service.domain.messages import LABEL_TYPE, PREDICTION_TYPE
from service.kafka.schema_registry import SchemaRegistry

_PACKAGES = ("fastavro", "google.protobuf", "grpc_tools")


def prediction_formats(settings: Settings, *, responses: Format | None = None) -> Formats:
    """How records of predictions are read besides native ones.

    Args:
        settings: with the registry, the mapping and the models.
        responses: how inference responses are read; None for those of the configured models.

    Raises:
        ConfigurationError: a file of the schema registry cannot be used, or a package is not installed.
    """
    if responses is None:
        responses = OpenInference({name: model.tensors for name, model in settings.models.items()})
    mapping = settings.kafka.mapping
    registered = _registered(settings)
    if mapping is not None:
        mapper = _mapper(settings, mapping.mapping())
        return MappedTopic(TopicMessages(PREDICTION_TYPE, registered=registered, mapper=mapper).rewrite)
    messages = TopicMessages(PREDICTION_TYPE, registered=registered, formats=[responses])
    return [arrow_rows, messages, responses]


def record_reader(settings: Settings) -> Callable[[Any], bytes]:
    """What gives the content of a record of predictions as JSON, of a registry or in an event as well.

    It is an object of its `value`, `headers` and `key`; or an array of these, of a batch of events. A native
    event is as it is.

    Raises:
        ConfigurationError: as `prediction_formats`.
    """
    return TopicMessages(PREDICTION_TYPE, registered=_registered(settings), mapper=WholeRecord()).rewrite


def label_text(settings: Settings) -> Callable[[Any], bytes]:
    """What gives the native JSON of a record of labels.

    Raises:
        ConfigurationError: as `prediction_formats`.
    """
    mapping = settings.kafka.label_mapping
    return TopicMessages(
        LABEL_TYPE,
        registered=_registered(settings),
        mapper=None if mapping is None else _mapper(settings, mapping.mapping()),
    ).rewrite


def _mapper(settings: Settings, mapping: RecordMapping) -> RecordMapper:
    return RecordMapper(mapping, {name: model.classes for name, model in settings.models.items()})


def _registered(settings: Settings) -> RegisteredValues | None:
    registry = settings.kafka.schema_registry
    if registry is None:
        return None
    if missing := [name for name in _PACKAGES if not _is_installed(name)]:
        problem = f"needs packages that are not installed ({', '.join(missing)}); "
        remedy = "run: pip install 'credence[schemas]'"
        raise ConfigurationError([("kafka.schema_registry", problem + remedy)])
    return RegisteredValues(SchemaRegistry(registry), cached=registry.cached_schemas)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False
