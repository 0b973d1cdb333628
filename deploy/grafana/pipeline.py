"""Credence itself: does everything flow, and what does it lose or refuse?"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from deploy.grafana import looks, pipeline_flow, pipeline_rounds, pipeline_vendors, promql
from deploy.grafana.frame import PIPELINE, dashboard
from deploy.grafana.panels import Query, Says, number
from deploy.grafana.promql import counted, series
from deploy.grafana.tables import firing_alerts

_NO_PROCESS = "no process can be scraped"


def pipeline() -> build.Dashboard:
    """The dashboard of the pipeline."""
    board = dashboard(
        PIPELINE,
        "Credence: pipeline",
        "Health of Credence: consumer lag, dead letters and lost records, duration of rounds, "
        "limits, and the vendor API.",
    ).with_row(build.Row("Now"))
    numbers = _numbers()
    for place, (says, expression) in enumerate(numbers):
        board = board.with_panel(number(says, Query(expression), width=4 if place < 24 % len(numbers) else 3))
    board = board.with_panel(firing_alerts(height=10))
    board = pipeline_flow.consumers(board.with_row(build.Row("Consumers")))
    board = pipeline_flow.storing(board.with_row(build.Row("Flushes and errors")))
    board = pipeline_rounds.requests(board.with_row(build.Row("Label requests and labels")))
    board = pipeline_vendors.vendors(board.with_row(build.Row("Vendors").collapsed(True)))
    return pipeline_rounds.rounds(board.with_row(build.Row("Rounds, pool and limits")))


def _numbers() -> list[tuple[Says, str]]:
    return [
        (
            Says(
                "Age of estimates",
                "Age of the oldest estimates of all models; it should stay near schedule.tick_seconds.",
                looks.SECONDS,
                0,
                steps=looks.SNAPSHOT_AGE,
                words=looks.NO_ESTIMATES,
            ),
            promql.snapshot_age(),
        ),
        (
            Says(
                "Processes",
                "Processes of Credence that Prometheus can scrape.",
                looks.COUNT,
                0,
                steps=looks.NONE_IS_BAD,
            ),
            f"count({series('credence_build_info')}) or vector(0)",
        ),
        (
            Says(
                "Leaders",
                "Processes that request labels: one per Redis. At 0 no labels are requested.",
                looks.COUNT,
                0,
                steps=looks.NONE_IS_BAD,
            ),
            f"sum({series('credence_leader')}) or vector(0)",
        ),
        (
            Says(
                "Time behind",
                "Consumer lag in seconds of the worst partition: age of the last stored record while "
                "others wait.",
                looks.SECONDS,
                1,
                nothing="no partition is owned",
                steps=((None, looks.GREY), (0, looks.BLUE), (60, looks.ORANGE), (600, looks.VERMILLION)),
            ),
            f"max({series('credence_consumer_lag_seconds')})",
        ),
        (
            Says(
                "Dead letters",
                "Refused messages in the selected time range. Each is in the dead-letter topic with its "
                "reason.",
                looks.COUNT,
                0,
                nothing=_NO_PROCESS,
                steps=looks.ANY_IS_ODD,
            ),
            counted("credence_dead_letters_total"),
        ),
        (
            Says(
                "Consumers paused",
                "Consumers that paused because too many messages are bad. Fix the producer, then restart "
                "them.",
                looks.COUNT,
                0,
                nothing=_NO_PROCESS,
                steps=looks.ANY_IS_BAD,
            ),
            promql.known(f"sum({series('credence_consumer_paused')})", where="credence_build_info"),
        ),
        (
            Says(
                "Records lost",
                "Records that Kafka's retention deleted before they were read, in the selected time "
                "range. They cannot be recovered.",
                looks.COUNT,
                0,
                nothing=_NO_PROCESS,
                steps=looks.ANY_IS_BAD,
            ),
            counted("credence_records_lost_total"),
        ),
    ]
