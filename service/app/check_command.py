"""`credence check`: what a configuration does; with `--connect`, whether it works with its servers."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from service.app.check_sentences import summary, warnings
from service.app.plain_text import in_bytes
from service.app.pool_sizing import asked_pools, pool_sizes
from service.config.assessments import AssessmentSettings, ErrorRateSettings
from service.config.loader import load_settings
from service.config.settings import Settings
from service.domain.cells import CellSpace
from service.domain.pending_joins import CLOSED_BYTES, WAITING_BYTES
from service.domain.times import duration
from service.domain.traffic_tables import ALL_TRAFFIC, MOST_MIX_ENTRIES, Columns, most_table_bytes, tables
from service.serving.documents.questions import asked_rates, chooser, question

if TYPE_CHECKING:
    from service.app.detection_forecast import Forecast
    from service.store.records import GoldItem

_COLUMNS: Final[dict[Columns, str]] = {
    "class_bins": "predicted class and score bin",
    "bins": "score bin",
    "classes": "predicted class",
    "selected_bins": "positive class predicted or not, and score bin",
    "challenge": "prediction of the challenger",
}

_RUN_ROLES: Final = ["predictions", "labels", "schedule", "serve"]
"""What `credence run` does."""


def check(options: argparse.Namespace) -> int:
    """Print what the configuration does.

    Raises:
        ConfigurationError: it is not valid.
        Unavailable: with `--sample`: Kafka or the schema registry does not answer, or refuses.
    """
    settings = load_settings(options.config, os.environ)
    gold = {}
    if any(model.labels_per_item.gold for model in settings.models.values()):
        from service.app.gold_files import read_gold  # noqa: PLC0415 - with numpy

        gold = read_gold(settings)
    print(f"{options.config}: valid")
    for line in _lines(settings, gold, drop=options.detect):
        print(line)
    failed = _try_connections(settings, options.role) if options.connect else 0
    if options.sample is not None:
        from service.app.sample_check import check_sample  # noqa: PLC0415 - with the clients

        failed = max(failed, check_sample(settings, records=options.sample))
    return failed


def _try_connections(settings: Settings, roles: list[str] | None) -> int:
    """Print what works with Kafka and Redis, and what does not; 1 if something does not."""
    # Without this, a check needs none of the clients.
    from service.app.connection_checks import connection_findings  # noqa: PLC0415

    failed = 0
    for finding in connection_findings(settings, roles or _RUN_ROLES):
        print(finding, flush=True)
        failed += bool(finding.problem)
    return min(failed, 1)


def _lines(settings: Settings, gold: Mapping[str, Sequence[GoldItem]], *, drop: float) -> Iterator[str]:
    topics, servers = settings.kafka.topics, ", ".join(settings.kafka.bootstrap_servers)
    yield f"reads {topics.predictions} and {topics.labels} from {servers}"
    yield f"writes {topics.label_requests} and {topics.dead_letters}"
    http, monitoring = settings.http, settings.monitoring
    yield f"serves the status page at http://{http.host}:{http.port}/"
    yield f"serves metrics and health at http://{monitoring.host}:{monitoring.port}/metrics"
    yield f"evaluates every {settings.schedule.tick_seconds:g} s"
    for name in settings.models:
        yield from _model_lines(settings, name, gold.get(name, ()), drop)
    yield from _vendor_lines(settings)


def _model_lines(settings: Settings, name: str, gold: Sequence[GoldItem], drop: float) -> Iterator[str]:
    model, space = settings.models[name], settings.cell_space(name)
    yield (
        f"model {name}: {len(model.classes)} classes, {space.bin_count} score bins, "
        f"groupings {', '.join(name for name, by in space.groupings.items() if not by.is_internal)}"
    )
    yield from summary(model)
    yield from _table_lines(space, settings.bounds.table_bytes)
    pools = asked_pools(settings, name, space)
    sizes = pool_sizes(settings, name, pools)
    for grouping, pool in pools.items():
        by = space.groupings[grouping]
        pooled = f"{by.attribute}, by prediction and score" if by.is_internal else grouping
        yield (
            f"  pool of {pooled}: up to {sizes.wanted[pool]} items per group and partition, "
            f"and up to {sizes.capacity // len(pools)} in all groups together"
        )
    yield from _join_lines(settings, name)
    if (run_length := model.change_run_length) is not None:
        yield (
            f"  a group's accuracy is expected to change once in {run_length:,} labels "
            "(forgetting.run_length)"
        )
    yield from _gold_lines(settings, name, gold)
    if not model.assessments:
        yield "  requests no labels: no assessment is configured"
    forecasts: dict[str, Forecast] = {}
    for assessment_name, assessment in model.assessments.items():
        yield from _assessment_lines(assessment_name, assessment)
        if (found := _forecast(settings, name, assessment, drop)) is not None:
            forecasts[assessment_name] = found
            yield f"    {found.text}"
    yield from warnings(model, forecasts)


def _assessment_lines(name: str, assessment: AssessmentSettings) -> Iterator[str]:
    """What an assessment asks, by which labels, and their pace."""
    budget = assessment.budget
    window = "in total" if budget.per_days is None else _every(budget.per_days)
    yield (
        f"  assessment {name}: {question(assessment)} "
        f"Requests labels by {assessment.chosen_grouping} ({chooser(assessment)}); "
        f"at most {budget.labels} labels {window}, {assessment.max_in_flight} in flight, "
        f"{assessment.lease_seconds:g} s to answer, {assessment.max_attempts} attempts"
    )
    if isinstance(assessment, ErrorRateSettings):
        yield f"    {asked_rates(assessment)}"
    if assessment.labels_per_second > 0:
        at_once = min(math.floor(budget.burst_labels), budget.labels - assessment.reserved_labels)
        pace = duration(1 / assessment.labels_per_second)
        yield (
            f"    about one label every {pace}, at most {at_once} at once; "
            f"{assessment.reserved_labels} of {budget.labels} labels are reserved for suspected groups"
        )


def _forecast(settings: Settings, model: str, assessment: AssessmentSettings, drop: float) -> Forecast | None:
    """How soon an assessment finds a fall; None where its groups have no threshold, or it no budget."""
    by = settings.cell_space(model).groupings[assessment.asked_grouping]
    threshold = settings.models[model].alerts.threshold("min_accuracy", by)
    if assessment.labels_per_second == 0 or threshold is None:
        return None
    from service.app.detection_forecast import forecast  # noqa: PLC0415 - with scipy

    return forecast(settings, model, assessment, threshold, drop=drop)


def _join_lines(settings: Settings, name: str) -> Iterator[str]:
    """What waits for unrequested labels, and its memory."""
    rule, bounds = settings.models[name].unrequested_labels, settings.bounds
    if rule is None:
        return
    waiting, closed = bounds.join_items * WAITING_BYTES, bounds.join_items * CLOSED_BYTES
    yield (
        f"  unrequested labels ({rule.items}): up to {bounds.join_items:,} predictions wait up to "
        f"{duration(bounds.join_days * 86_400)}, about {in_bytes(waiting)} in Redis; "
        f"as many with an outcome, about {in_bytes(closed)}"
    )


def _gold_lines(settings: Settings, name: str, items: Sequence[GoldItem]) -> Iterator[str]:
    """What gold items are there."""
    gold = settings.models[name].labels_per_item.gold
    if gold is None:
        return
    correct = sum(item.record.predicted_class == item.true_class for item in items)
    yield (
        f"  gold items: {len(items):,}, of which the model predicts {correct:,} correctly; each is requested "
        f"once, {gold.share:.1%} of the requests for new items"
    )


def _every(days: float) -> str:
    return "a day" if days == 1 else f"every {duration(days * 86_400)}"


def _table_lines(space: CellSpace, limit: int) -> Iterator[str]:
    """Rows, columns, size and purpose of every table, their sum, and what is not kept."""
    for spec in (specs := tables(space)):
        name = "all traffic" if spec.attribute == ALL_TRAFFIC else f"attribute {spec.attribute}"
        yield (
            f"  table of {name}: up to {spec.rows:,} {'row' if spec.rows == 1 else 'rows'} x "
            f"{spec.width:,} columns ({_COLUMNS[spec.columns]}), {in_bytes(spec.most_bytes)}; "
            f"for {spec.purpose}"
        )
    yield (
        f"  all tables: up to {in_bytes(most_table_bytes(space))} a partition "
        f"(bounds.table_bytes: {in_bytes(limit)})"
    )
    with_classes = {spec.attribute for spec in specs if spec.columns in {"classes", "class_bins"}}
    for attribute in space.attributes:
        if space.by_class and attribute not in with_classes:
            yield (
                f"  warning: no drift of predicted classes by {attribute}: "
                f"{space.bounds.attribute_values:,} values x {len(space.classes):,} classes "
                f"exceed {MOST_MIX_ENTRIES:,}; to enable it, lower bounds.attribute_values"
            )


def _vendor_lines(settings: Settings) -> Iterator[str]:
    api = settings.vendor_api
    if settings.has_http_apis:
        scheme = "http" if api.certificate_file is None else "https"
        served = "the vendor API" if settings.has_vendor_api else "POST /v1/predictions"
        yield f"serves {served} at {scheme}://{api.host}:{api.port}/"
    for name, sender in settings.senders.items():
        yield f"sender {name}: models {', '.join(sender.models)}; tokens: {len(sender.token_sha256)}"
    for name, vendor in settings.vendors.items():
        topic = vendor.topic or settings.kafka.topics.label_requests
        tokens = f"tokens: {len(vendor.token_sha256)}" if vendor.token_sha256 else "no token (Kafka only)"
        yield (
            f"vendor {name}: models {', '.join(vendor.models or settings.models)}; share {vendor.share:g}; "
            f"{tokens}; label keys: {len(vendor.label_keys)}; requests to {topic}"
        )
