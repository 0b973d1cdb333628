"""Reports of losses and of vendors' calls in Redis: recent ones are shown, whoever wrote them."""

from __future__ import annotations

from msgspec.structs import replace

from service.monitoring.pipeline import read_pipeline
from service.store.connection import Connection
from service.store.keys import losses_key, vendor_calls_key
from service.store.recent_reports import Intake, Loss, VendorCalls, intake, losses, vendor_calls

NOW = 1_800_000_000.0
LOSS = Loss("predictions", "deleted", "credence.predictions", 3, 30, NOW)
CALLS = VendorCalls("acme", "a1", 10, 4, NOW)


def test_a_loss_is_shown_for_an_hour_to_every_process(connection: Connection) -> None:
    losses(connection).add([LOSS, replace(LOSS, partition=4)], NOW)
    found = read_pipeline(connection, now=NOW + 3_600, estimates_at=None)
    assert [one.partition for one in found.losses] == [3, 4]
    assert losses(connection).recent(NOW + 4_000) == []


def test_what_a_consumer_processed_is_shown_for_an_hour_after_its_end(connection: Connection) -> None:
    early, late = (Intake("labels", process, 10, (), NOW) for process in ("before", "after"))
    intake(connection).add([early], NOW + 299)
    intake(connection).add([late, replace(late, role="predictions", messages=7)], NOW + 299)
    found = read_pipeline(connection, now=NOW + 299 + 3_600, estimates_at=None)
    assert [found.role(role).messages for role in ("labels", "predictions")] == [20, 7]
    assert intake(connection).recent(NOW + 4_000) == []


def test_a_report_that_is_sent_again_counts_once_and_a_later_one_replaces_it(connection: Connection) -> None:
    reports = vendor_calls(connection)
    other = replace(CALLS, process="b2", calls=7)
    for one in (CALLS, CALLS, replace(CALLS, calls=12), other):
        reports.add([one], NOW)
    assert [one.calls for one in reports.recent(NOW + 60)] == [12, 7]


def test_old_reports_are_removed_with_the_next_one(connection: Connection) -> None:
    reports, key = vendor_calls(connection), vendor_calls_key(connection.prefix)
    reports.add([CALLS], NOW)
    reports.add([], NOW + 500)
    assert connection.client.hlen(key) == 1
    reports.add([replace(CALLS, at=NOW + 500)], NOW + 500)
    assert connection.client.hlen(key) == 1


def test_a_report_of_another_version_is_passed_over(connection: Connection) -> None:
    losses(connection).add([LOSS], NOW)
    connection.client.hset(losses_key(connection.prefix), "later", '{"kind": "stolen"}')
    assert losses(connection).recent(NOW) == [LOSS]
