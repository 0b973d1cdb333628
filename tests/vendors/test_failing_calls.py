"""Calls that fail are a problem of the pipeline, in every process."""

from __future__ import annotations

import pytest
from office import Office
from store_site import NOW

from service.app.vendor_call_report import VendorCallReporter
from service.monitoring.loss_problems import vendor_problems
from service.store.recent_reports import vendor_calls


@pytest.fixture
def reporter(office: Office) -> VendorCallReporter:
    reports = vendor_calls(office.connection)
    return VendorCallReporter(reports, office.metrics, office.clock)


def report(office: Office, reporter: VendorCallReporter, *, at: float) -> None:
    office.clock.now = at
    reporter._due_at = 0.0
    reporter.report_due()


def failing(office: Office) -> list[str]:
    """Sentences about vendors whose calls fail, as any process has them."""
    return [one.sentence for one in vendor_problems(vendor_calls(office.connection).recent(office.clock()))]


def test_calls_that_fail_are_a_problem_of_their_vendor_alone_until_they_are_some_minutes_old(
    office: Office, reporter: VendorCallReporter
) -> None:
    acme, bolt, stranger = (office.caller(name) for name in ("acme", "bolt", None))
    assert bolt.get("/models").status == 200
    for _ in range(8):
        assert acme.get("/models").status == 200
        assert stranger.get("/models").status == 401
    report(office, reporter, at=NOW)
    assert failing(office) == []
    serving, office.service = office.service, None
    for _ in range(2):
        assert acme.get("/models").status == 503
    office.service = serving
    report(office, reporter, at=NOW + 61)
    [sentence] = failing(office)
    assert sentence.startswith("2 of the last 10 calls of acme to the vendor API failed")
    report(office, reporter, at=NOW + 121)
    assert failing(office) == [sentence]
    office.clock.now = NOW + 600
    assert failing(office) == []
