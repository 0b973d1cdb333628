"""`credence check`: what a configuration would do, without any server."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from service.app.docgen.tables import table_lines
from service.app.pool_sizing import asked_pools, pool_sizes
from service.config.loader import load_settings
from service.config.settings import Settings
from service.serving.documents.questions import chooser, question


def check(options: argparse.Namespace) -> int:
    """Say what the configuration would do; it is refused by an exception where it is not valid."""
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
    print(f"looks every {settings.schedule.tick_seconds:g} s")
    for name, model in settings.models.items():
        space = settings.cell_space(name)
        print(
            f"model {name}: {len(model.classes)} classes, {space.bin_count} score bins, "
            f"groupings {', '.join(space.groupings)}"
        )
        for line in table_lines(space, settings.bounds.table_bytes):
            print(f"  {line}")
        pools = asked_pools(settings, name, space)
        for grouping, pool in pools.items():
            sizes = pool_sizes(settings, name, pools)
            print(
                f"  pool of {grouping}: up to {sizes.wanted[pool]} items a group and partition, "
                f"fewer where all groups together would have over {sizes.capacity // len(pools)}"
            )
        if not model.assessments:
            print("  asks for no labels: no assessment is configured")
        for assessment_name, assessment in model.assessments.items():
            budget = assessment.budget
            window = "in all" if budget.per_days is None else f"every {budget.per_days:g} days"
            print(
                f"  assessment {assessment_name}: {question(assessment)} "
                f"Asks by {assessment.asked_grouping} ({chooser(assessment)}); "
                f"at most {budget.labels} labels {window}, {assessment.max_in_flight} in flight, "
                f"{assessment.lease_seconds:g} s to answer, {assessment.max_attempts} attempt(s)"
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
        uses = f"{len(vendor.token_sha256)} token(s)" if vendor.token_sha256 else "no token, so Kafka alone"
        yield (
            f"vendor {name}: models {', '.join(vendor.models or settings.models)}; share {vendor.share:g}; "
            f"{uses}; {len(vendor.label_keys)} label key(s); requests to {topic}"
        )
