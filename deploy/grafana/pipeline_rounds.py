"""The rows of the pipeline's dashboard about label requests, rounds and bounds."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from deploy.grafana import looks, promql
from deploy.grafana.panels import Query, Says, lines, quantile_lines
from deploy.grafana.promql import age, counted_rate, or_zero, series, shown, shown_rate
from deploy.grafana.tables import Column, grid

_AT_PARTITION = "{{topic}} {{partition}}"


def requests(board: build.Dashboard) -> build.Dashboard:
    """From the wish for a label to the label."""
    events = f"{promql.PER_HOUR} * sum by (event) ({shown_rate('credence_requests_total')})"
    published = f"{promql.PER_HOUR} * {counted_rate('credence_requests_published_total', 'model')}"
    short = f"{promql.PER_HOUR} * {counted_rate('credence_draws_short_total', 'model, assessment')}"
    return (
        board.with_panel(
            lines(
                Says(
                    "Requests by event",
                    "Label requests of all models per hour, by event.",
                    looks.PER_HOUR,
                    1,
                    nothing="no assessment",
                ),
                Query(events, "{{event}}"),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Requests published",
                    "Label requests sent to Kafka per hour, including repeated ones.",
                    looks.PER_HOUR,
                    1,
                    nothing="nothing was published",
                ),
                Query(published, "{{model}}"),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Outbox",
                    "Label requests that wait to be published. If it stays above 0, Kafka does not accept "
                    "them.",
                    looks.COUNT,
                    0,
                    nothing="no snapshot yet",
                ),
                Query(shown("credence_outbox_requests"), "{{model}}"),
            )
        )
        .with_panel(
            quantile_lines(
                Says(
                    "Time to a label",
                    "Time from the first issue of a label request to its label: median, 90th and 99th "
                    "percentile.",
                    looks.SECONDS,
                    nothing="no label came in this time",
                ),
                "credence_label_delay_seconds",
            )
        )
        .with_panel(
            lines(
                Says(
                    "Open requests",
                    "Open label requests.",
                    looks.COUNT,
                    0,
                    nothing="no assessment",
                ),
                Query(shown("credence_requests_open"), "{{model}} {{assessment}}"),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Draws without an item",
                    "Draws per hour that found no pooled item. They increase when traffic stops, or when a "
                    "group has fewer items than its budget.",
                    looks.PER_HOUR,
                    1,
                ),
                Query(or_zero(short, "assessment"), "{{model}} {{assessment}}"),
            )
        )
    )


def rounds(board: build.Dashboard) -> build.Dashboard:
    """How long estimates take, what they are made from, and how near the bounds are."""
    return (
        board.with_panel(
            quantile_lines(
                Says(
                    "Time to compute estimates",
                    "Time to read the data and compute the estimates of all models. It must stay below "
                    "schedule.tick_seconds.",
                    looks.SECONDS,
                    nothing="no snapshot yet",
                ),
                "credence_snapshot_duration_seconds",
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Age of snapshots",
                    "Age of the estimates of each model in each process. A process that stays behind the "
                    "others is stuck.",
                    looks.SECONDS,
                    1,
                    nothing="no snapshot yet",
                ),
                Query(
                    age("credence_snapshot_timestamp_seconds", by="model, instance"), "{{model}} {{instance}}"
                ),
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Failed rounds",
                    "Rounds that failed because Kafka or Redis was unavailable. The next round retries.",
                    looks.PER_SECOND,
                    3,
                ),
                Query(or_zero(counted_rate("credence_rounds_failed_total", "part"), "part"), "{{part}}"),
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Leader",
                    "Yes for the leader, which requests labels. Another process takes over if the leader "
                    "does not renew its lease for schedule.lease_seconds. This should be rare.",
                    looks.PLAIN,
                    0,
                    nothing="no process takes part",
                    bounds=(0, 1),
                    words=looks.YES_NO,
                ),
                Query(f"max by (instance) ({series('credence_leader')})", "{{instance}}"),
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Pool",
                    "Unlabelled items that can be drawn for label requests.",
                    looks.COUNT,
                    0,
                    nothing="no snapshot yet",
                ),
                Query(shown("credence_pool_items"), "{{model}}"),
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Age of the pool",
                    "Median age of the pool's items. If it only increases, there is no new traffic, and "
                    "labels are requested for old items.",
                    looks.SECONDS,
                    0,
                    nothing="the pool is empty",
                ),
                Query(shown("credence_pool_item_age_seconds"), "{{model}}"),
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Traffic in `__other__`",
                    "Share of traffic whose attribute value has no group of its own. The "
                    "bounds.attribute_values values with the most traffic have one. Above 5% an alert fires.",
                    looks.RATIO,
                    1,
                    nothing="no grouping by an attribute, or no snapshot yet",
                    bounds=looks.PROBABLE,
                    steps=looks.FOLDING,
                ),
                Query(shown("credence_attribute_other_ratio"), "{{model}} {{attribute}}"),
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Groups folded into `other`",
                    "Groups without their own series, because there are more than bounds.metric_groups.",
                    looks.COUNT,
                    0,
                    nothing="no snapshot yet",
                ),
                Query(shown("credence_grouping_groups_in_other"), "{{model}} {{grouping}}"),
                width=6,
            )
        )
        .with_panel(
            grid(
                Says(
                    "Processes",
                    "Version of each process; after a rollout all should be the same.",
                    looks.COUNT,
                ),
                {"job": "Job", "instance": "Process", "version": "Version"},
                [
                    Column(
                        "Processes",
                        f"count by (job, instance, version) ({series('credence_build_info')})",
                        looks.COUNT,
                        0,
                    )
                ],
                sort="Process",
                descending=False,
                height=6,
            )
        )
    )
