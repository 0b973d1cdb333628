"""`credence topics`, `credence rights` and `credence vendors`: what a deployment needs before it runs."""

from __future__ import annotations

import argparse
import os
from contextlib import closing

from kafka.admin import NewTopic
from kafka.errors import AuthorizationError, TopicAlreadyExistsError

from service.app.permissions import kafka_lines, redis_lines
from service.config.loader import load_settings
from service.config.new_secrets import new_label_key, new_token
from service.domain.errors import Refused
from service.kafka.clients import build_admin
from service.kafka.topic_metadata import translate_errors


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
    with translate_errors(), closing(build_admin(kafka)) as admin:
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


def rights(options: argparse.Namespace) -> int:
    """Print the rights that every role needs at one server."""
    lines = {"kafka": kafka_lines, "redis": redis_lines}[options.where]
    for line in lines(load_settings(options.config, os.environ)):
        print(line)
    return 0


def vendors(options: argparse.Namespace) -> int:
    """Print a new secret for a labelling vendor, of 256 random bits."""
    if options.what == "key":
        print(new_label_key())
    else:
        token, digest = new_token()
        print(f"token: {token}\ntoken_sha256: {digest}")
    return 0
