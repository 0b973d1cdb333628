"""The rows of the pipeline's dashboard about what comes in: how far behind, how slow, what went wrong."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from deploy.grafana import looks, promql
from deploy.grafana.panels import Query, Says, heat, lines, quantile_lines
from deploy.grafana.promql import counted_rate, or_zero, series, shown

_AT_PARTITION = "{{topic}} {{partition}}"


def consumers(board: build.Dashboard) -> build.Dashboard:
    """What is read, and how far behind."""
    return (
        board.with_panel(
            lines(
                Says(
                    "Predictions consumed",
                    "Rate of consumed predictions by model, summed over processes. Records that are read "
                    "again after a restart count again.",
                    looks.PER_SECOND,
                    1,
                    nothing="no prediction was read",
                ),
                Query(counted_rate("credence_predictions_consumed_total", "model"), "{{model}}"),
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Labels consumed",
                    "Rate of consumed labels. Duplicates change nothing.",
                    looks.PER_HOUR,
                    1,
                    nothing="no label was read",
                ),
                Query(
                    f"{promql.PER_HOUR} * {counted_rate('credence_labels_consumed_total', 'result')}",
                    "{{result}}",
                ),
                width=6,
                colours={"applied": looks.BLUE, "duplicate": looks.ORANGE},
            )
        )
        .with_panel(
            lines(
                Says(
                    "Records behind",
                    "Consumer lag of each partition in records. Short peaks are normal; if it keeps rising, "
                    "start more consumers.",
                    looks.COUNT,
                    0,
                    nothing="no partition is owned",
                ),
                Query(shown("credence_consumer_lag_records"), _AT_PARTITION),
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Time behind",
                    "Consumer lag of each partition in seconds: age of the last stored record while others "
                    "wait.",
                    looks.SECONDS,
                    1,
                    nothing="no partition is owned",
                ),
                Query(shown("credence_consumer_lag_seconds"), _AT_PARTITION),
                width=6,
            )
        )
    )


def storing(board: build.Dashboard) -> build.Dashboard:
    """How long storing takes, and what was refused, lost or waited for."""
    per_second = looks.PER_SECOND
    return (
        board.with_panel(
            heat(
                Says(
                    "Flush duration",
                    "Time to write a batch to Redis, as a heatmap. If it exceeds kafka.flush_seconds, Redis "
                    "slows the consumers down.",
                    looks.PER_SECOND,
                    nothing="nothing was stored",
                ),
                f"sum by (le) (rate({series('credence_flush_duration_seconds', suffix='_bucket')}"
                "[$__rate_interval]))",
            )
        )
        .with_panel(
            quantile_lines(
                Says(
                    "Flush duration, quantiles",
                    "Median, 90th and 99th percentile of the flush duration.",
                    looks.SECONDS,
                    nothing="nothing was stored",
                ),
                "credence_flush_duration_seconds",
            )
        )
        .with_panel(
            lines(
                Says(
                    "Dead letters by reason",
                    "Refused messages by topic and reason. docs/dead-letters.md explains each reason.",
                    per_second,
                    3,
                ),
                Query(
                    or_zero(counted_rate("credence_dead_letters_total", "topic, reason"), "reason"),
                    "{{topic}} {{reason}}",
                ),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Backoffs",
                    "How often consumers backed off because Kafka or Redis was unavailable. No data is lost "
                    "meanwhile.",
                    per_second,
                    3,
                ),
                Query(
                    or_zero(counted_rate("credence_consumer_backoffs_total", "topic, part"), "part"),
                    "{{topic}} {{part}}",
                ),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Refused flushes",
                    "Flushes refused because another consumer owned the partition, or Redis had lost data. A "
                    "few after a rebalance are normal. Many mean that two consumers own the same partition, "
                    "or that Redis loses data.",
                    per_second,
                    3,
                ),
                Query(or_zero(counted_rate("credence_flushes_refused_total", "topic"), "topic"), "{{topic}}"),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Records lost, times clipped",
                    "Records that Kafka's retention deleted before they were read, and partitions whose log "
                    "was recreated or truncated: above 0, estimates may miss traffic or labels. Also "
                    "predictions whose time was clipped, because it was too far from that of their record.",
                    per_second,
                    3,
                ),
                Query(or_zero(counted_rate("credence_records_lost_total", "topic"), "topic"), "{{topic}}"),
                Query(or_zero(counted_rate("credence_log_breaks_total", "kind"), "kind"), "logs {{kind}}"),
                Query(
                    or_zero(
                        counted_rate("credence_prediction_times_clipped_total", "direction"), "direction"
                    ),
                    "times clipped, {{direction}}",
                ),
            )
        )
    )
