"""The row of the pipeline's dashboard about the vendor API; empty where no vendor calls it."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from deploy.grafana import looks, promql
from deploy.grafana.panels import Query, Says, lines
from deploy.grafana.promql import counted_rate, series

_NOTHING = "no vendor calls the vendor API"
_CALLS = "credence_vendor_api_calls_total"
_STATUS = {"2xx": looks.BLUE, "4xx": looks.ORANGE, "5xx": looks.VERMILLION}


def vendors(board: build.Dashboard) -> build.Dashboard:
    """Who calls, with which success, and what comes of it."""
    # Calls without a valid token have no vendor.
    calls = counted_rate(_CALLS, "vendor", 'vendor!=""')
    failed = counted_rate(_CALLS, "vendor", 'vendor!=""', 'status="5xx"')
    return (
        board.with_panel(
            lines(
                Says(
                    "Calls by status",
                    "Calls of the vendor API by status class. 4xx: errors of the caller, or too many calls. "
                    "5xx: errors of Credence, or Kafka or Redis is unreachable.",
                    looks.PER_SECOND,
                    3,
                    nothing=_NOTHING,
                ),
                Query(counted_rate(_CALLS, "status"), "{{status}}"),
                colours=_STATUS,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Error rate",
                    "Share of calls of each vendor with a 5xx status. Vendors repeat these calls.",
                    looks.RATIO,
                    1,
                    nothing=_NOTHING,
                    bounds=looks.PROBABLE,
                ),
                Query(f"({failed} or 0 * {calls}) / {calls}", "{{vendor}}"),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Logins refused",
                    "Calls without a valid token. Many mean that a vendor uses an old token, or that somebody"
                    " guesses tokens.",
                    looks.PER_SECOND,
                    3,
                    nothing="no process serves the vendor API",
                ),
                Query(
                    f"sum(rate({series('credence_vendor_api_logins_refused_total')}[$__rate_interval]))",
                    "refused",
                ),
                colours={"refused": looks.ORANGE},
            )
        )
        .with_panel(
            lines(
                Says(
                    "Requests claimed",
                    "Label requests claimed through the vendor API per hour, including repeated ones.",
                    looks.PER_HOUR,
                    1,
                    nothing=_NOTHING,
                ),
                Query(
                    f"{promql.PER_HOUR} * {counted_rate('credence_vendor_claims_total', 'vendor, model')}",
                    "{{vendor}} {{model}}",
                ),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Labels by vendor",
                    "Labels that the vendor API has written to Kafka per hour, by vendor and kind, including "
                    "repeated ones.",
                    looks.PER_HOUR,
                    1,
                    nothing=_NOTHING,
                ),
                Query(
                    f"{promql.PER_HOUR} * {counted_rate('credence_vendor_labels_total', 'vendor, kind')}",
                    "{{vendor}} {{kind}}",
                ),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Waiting calls",
                    "Long polls of each vendor that wait for label requests, in all processes. Some are "
                    "normal: there is nothing left to claim.",
                    looks.COUNT,
                    0,
                    nothing=_NOTHING,
                ),
                Query(f"sum by (vendor) ({series('credence_vendor_api_waits')})", "{{vendor}}"),
            )
        )
    )
