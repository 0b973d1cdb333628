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
                    "How fast predictions are read, by model, all processes together; repeated ones after "
                    "a restart are counted again.",
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
                    "How fast labels are read; duplicates are labels that came before, and change nothing.",
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
                    "Records that wait in each partition. It may rise for a moment; if it keeps rising, "
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
                    "Age of the last record stored in each partition, while others wait behind it.",
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
                    "Time to store",
                    "How long it takes to store what was taken in: the darker, the more often. Slower than "
                    "kafka.flush_seconds means that Redis holds the consumers up.",
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
                    "Time to store, quantiles",
                    "Half of all flushes, nine of ten and ninety-nine of a hundred are faster than these.",
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
                    "Messages that could not be used, by topic and reason; docs/dead-letters.md tells "
                    "what to do about each.",
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
                    "Waits for Kafka or Redis",
                    "How often consumers waited because Kafka or Redis was away. Nothing is lost while "
                    "they wait.",
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
                    "Flushes refused because another owner had moved on, or Redis had lost data. A few "
                    "after a rebalance are right; many mean that two owners fight, or that Redis forgets.",
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
                    "was recreated or lost its end: above 0, estimates may miss traffic or labels for good. "
                    "Predictions that claimed a time too far from their record's count as of another time.",
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
