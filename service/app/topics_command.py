"""`credence topics`: the topics that Credence reads and writes."""

from __future__ import annotations

import argparse
import os
from contextlib import closing

from kafka.admin import NewTopic
from kafka.errors import AuthorizationError, TopicAlreadyExistsError

from service.config.loader import load_settings
from service.domain.errors import Refused
from service.kafka.clients import build_admin
from service.kafka.topic_metadata import translated_errors


def topics(options: argparse.Namespace) -> int:
    """Create the topics that do not exist."""
    settings = load_settings(options.config, os.environ)
    kafka = settings.kafka
    names = [
        kafka.topics.predictions,
        kafka.topics.label_requests,
        kafka.topics.labels,
        kafka.topics.dead_letters,
        *(vendor.topic for vendor in settings.vendors.values() if vendor.topic is not None),
    ]
    with translated_errors(), closing(build_admin(kafka)) as admin:
        for name in names:
            topic = NewTopic(
                name, num_partitions=kafka.partitions, replication_factor=kafka.replication_factor
            )
            try:
                admin.create_topics([topic])
            except TopicAlreadyExistsError:
                print(f"{name}: exists")
            except AuthorizationError as error:
                raise Refused("kafka", error, "grant CREATE on the topics") from error
            else:
                print(f"{name}: created with {kafka.partitions} partitions")
    return 0
