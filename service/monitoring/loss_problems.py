"""What topics lost, and calls of vendors that failed, as problems of the pipeline.

Each entry is there while its alert fires, which looks at the same counts in Prometheus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from service.domain.times import duration
from service.monitoring.pipeline_problem import PipelineProblem
from service.store.recent_reports import Loss, VendorCalls

FAILED_SHARE = 0.05
FAILED_CALLS = 2
"""The thresholds of CredenceVendorApiFailing."""

_MOST_PARTITIONS = 10


def loss_problems(losses: Sequence[Loss], now: float) -> Iterator[PipelineProblem]:
    """One problem for every kind of loss of every topic."""
    ordered = sorted(losses, key=lambda loss: (loss.role, loss.kind, loss.at))
    for (role, kind), found in groupby(ordered, key=lambda loss: (loss.role, loss.kind)):
        of_kind = list(found)
        yield PipelineProblem(
            f"records_lost:{role}" if kind == "deleted" else f"log_{kind}:{role}",
            "warning",
            "CredenceRecordsLost" if kind == "deleted" else "CredenceLogBroken",
            of_kind[0].at,
            _sentence(of_kind, now),
        )


def _sentence(losses: Sequence[Loss], now: float) -> str:
    """What was lost by one kind of loss of one topic, and what to do."""
    last = losses[-1]
    partitions = listed(sorted({loss.partition for loss in losses}))
    place = f"(partitions {partitions}, {duration(now - last.at)} ago)"
    match last.kind:
        case "deleted":
            return (
                f"{sum(loss.records for loss in losses):,} records of {last.topic} were deleted before "
                f"Credence read them {place}, because the topic keeps records for too short a time. They are "
                "lost. Send them again if the producer has them, and make the topic's retention longer."
            )
        case "recreated":
            return (
                f"Topic {last.topic} was deleted and created again {place}. Credence reads it from its "
                "beginning. Records of the old topic that it had not stored are lost. If the new topic has "
                "the same predictions again, they count twice."
            )
        case "truncated":
            return (
                f"The log of {last.topic} lost its end {place}, as by an unclean leader election. Credence "
                "reads on where the logs diverge. Disable unclean leader elections."
            )


def vendor_problems(reports: Sequence[VendorCalls]) -> Iterator[PipelineProblem]:
    """One problem for every vendor whose calls fail."""
    calls, failed = Counter[str](), Counter[str]()
    for one in reports:
        calls[one.vendor] += one.calls
        failed[one.vendor] += one.failed
    for vendor, count in sorted(failed.items()):
        if count >= FAILED_CALLS and count > FAILED_SHARE * calls[vendor]:
            yield PipelineProblem(
                f"vendor_api_failing:{vendor}",
                "warning",
                "CredenceVendorApiFailing",
                min(one.at for one in reports if one.vendor == vendor and one.failed),
                f"{count:,} of the last {calls[vendor]:,} calls of {vendor} to the vendor API failed with a "
                "status of 5xx. They must be repeated, and labels (of a sender: predictions) may be late. "
                "Check that Kafka and Redis answer, and read the log of the processes that serve the API.",
            )


def listed(partitions: Sequence[int]) -> str:
    """The first partitions, and how many more there are."""
    shown = ", ".join(map(str, partitions[:_MOST_PARTITIONS]))
    more = len(partitions) - _MOST_PARTITIONS
    return f"{shown} and {more} more" if more > 0 else shown
