"""Where Kafka is, as users of the client say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from service.config.deployment_validation import kafka_problems
from service.config.problem_words import described
from service.config.settings import KafkaSettings
from service.domain.errors import ConfigurationError

Kafka = str | Mapping[str, Any] | KafkaSettings
"""Brokers as `host:port`, separated by commas; or the keys of the configuration's section `kafka`."""


def kafka_settings(kafka: Kafka) -> KafkaSettings:
    """Settings of Kafka.

    Raises:
        ConfigurationError: a key is unknown, or has an impossible value; it has every problem, by its path.
    """
    if isinstance(kafka, KafkaSettings):
        return kafka
    keys = {"bootstrap_servers": kafka.split(",")} if isinstance(kafka, str) else dict(kafka)
    try:
        settings = KafkaSettings.model_validate(keys)
    except ValidationError as error:
        problems = [(f"kafka.{path}", problem) for path, problem in described(error.errors())]
    else:
        problems = kafka_problems(settings.security)
    if problems:
        raise ConfigurationError(problems, "the argument `kafka`")
    return settings
