"""`credence check`: what a configuration does, without any server."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from service.app.docgen.tables import table_lines
from service.app.pool_sizing import asked_pools, pool_sizes
from service.config.loader import load_settings
from service.config.settings import Settings
from service.serving.documents.words import chooser, question


def check(options: argparse.Namespace) -> int:
    """Print what the configuration does.

    Raises:
        ConfigurationError: it is not valid.
    """
    settings = load_settings(options.config, os.environ)
    topics = settings.kafka.topics
    print(f"{options.config}: valid")
    print(
        f"reads {topics.predictions} and {topics.labels} from {', '.join(settings.kafka.bootstrap_servers)}"
    )
    print(f"writes {topics.label_requests} and {topics.dead_letters}")
    http, monitoring = settings.http, settings.monitoring
    print(f"serves the status page at http://{http.host}:{http.port}/")
    print(f"serves metrics and health at http://{monitoring.host}:{monitoring.port}/metrics")
    print(f"evaluates every {settings.schedule.tick_seconds:g} s")
    for name, model in settings.models.items():
        space = settings.cell_space(name)
        print(
            f"model {name}: {len(model.classes)} classes, {space.bin_count} score bins, "
            f"groupings {', '.join(space.groupings)}"
        )
        for line in table_lines(space, settings.bounds.table_bytes):
            print(f"  {line}")
        pools = asked_pools(settings, name, space)
        sizes = pool_sizes(settings, name, pools)
        for grouping, pool in pools.items():
            print(
                f"  pool of {grouping}: up to {sizes.wanted[pool]} items per group and partition, "
                f"and up to {sizes.capacity // len(pools)} in all groups together"
            )
        if not model.assessments:
            print("  requests no labels: no assessment is configured")
        for assessment_name, assessment in model.assessments.items():
            budget = assessment.budget
            window = "in total" if budget.per_days is None else f"every {budget.per_days:g} days"
            print(
                f"  assessment {assessment_name}: {question(assessment)} "
                f"Requests labels by {assessment.asked_grouping} ({chooser(assessment)}); "
                f"at most {budget.labels} labels {window}, {assessment.max_in_flight} in flight, "
                f"{assessment.lease_seconds:g} s to answer, {assessment.max_attempts} attempts"
            )
    for line in _vendor_lines(settings):
        print(line)
    return 0


def _vendor_lines(settings: Settings) -> Iterator[str]:
    api = settings.vendor_api
    if settings.has_vendor_api:
        scheme = "http" if api.certificate_file is None else "https"
        yield f"serves the vendor API at {scheme}://{api.host}:{api.port}/"
    for name, vendor in settings.vendors.items():
        topic = vendor.topic or settings.kafka.topics.label_requests
        tokens = f"tokens: {len(vendor.token_sha256)}" if vendor.token_sha256 else "no token (Kafka only)"
        yield (
            f"vendor {name}: models {', '.join(vendor.models or settings.models)}; share {vendor.share:g}; "
            f"{tokens}; label keys: {len(vendor.label_keys)}; requests to {topic}"
        )
