"""The bad message limit of labels: which labels of a batch that exceeds it are applied."""

from __future__ import annotations

from typing import Any

import pytest
from store_site import NOW, Record, Site, draws_of, issue, message, outcomes, record

from service.domain.errors import TooManyBadMessages, Unavailable
from service.store.connection import Connection

MODELS = {"m": {"classes": ["cat", "dog", "owl"], "assessments": {"ask": {"budget": {"labels": 9}}}}}


@pytest.fixture
def site(connection: Connection) -> Site:
    """Requests for a and b are in flight; more than five bad messages of the last ten exceed the limit."""
    made = Site(connection, MODELS, pause_window=10)
    made.take_in([record(i, message(item)) for i, item in enumerate("ab")])
    issue(made, draws_of(made))
    return made


def label(offset: int, item: str = "a", **fields: Any) -> Record:
    return record(
        offset,
        {"request_id": f"r-{item}", "model": "m", "item_id": item, "true_class": "dog"} | fields,
        timestamp=1_000 * offset,
        headers=[("traceparent", b"00")],
    )


def answered(site: Site) -> list[str]:
    return [entry.fact.request_id for entry in outcomes(site)]


def test_nothing_of_a_batch_that_exceeds_the_limit_is_applied(site: Site) -> None:
    step = site.label_step()
    step.assign(0, 0)
    batch = [label(0), *[record(1 + i, b"{") for i in range(6)], label(7, "b")]
    for _ in range(3):
        with pytest.raises(TooManyBadMessages):
            step.process(0, batch, NOW)
    assert answered(site) == []
    assert site.letters.kept == []
    assert step.flush(0, NOW) == 0
    assert site.label_step().assign(0, 0) == 0


def test_labels_among_bad_ones_that_only_redis_can_refuse_are_applied_once(site: Site) -> None:
    step = site.label_step()
    step.assign(0, 0)
    batch = [label(0), *[label(1 + i, "z") for i in range(6)], label(7, "b")]
    with pytest.raises(TooManyBadMessages):
        step.process(0, batch, NOW)
    assert site.letters.kept == []
    assert step.flush(0, NOW) == 0
    # The sender is fixed and the limit raised: when the batch is read again, duplicates are recognised.
    fixed = Site(site.connection, MODELS, pause_window=1_000)
    again = fixed.label_step()
    assert again.assign(0, 0) == 0
    again.process(0, batch, NOW)
    assert again.flush(0, NOW) == 8
    assert answered(site) == ["r-a", "r-b"]
    assert fixed.letters.reasons == ["unknown_request"] * 6


def test_a_batch_that_grows_while_it_waits_counts_what_was_admitted_once(site: Site) -> None:
    step = site.label_step()
    step.assign(0, 0)
    batch = [record(i, b"{") for i in range(4)]
    site.letters.closed = True
    for more in range(3):
        with pytest.raises(Unavailable):
            step.process(0, [*batch, *[label(4 + i) for i in range(more)]], NOW)
    site.letters.closed = False
    step.process(0, [*batch, label(4), label(5), label(6)], NOW)
    assert site.letters.reasons == ["malformed_json"] * 4
    with pytest.raises(TooManyBadMessages):
        step.process(0, [record(7, b"{"), record(8, b"{")], NOW)


def test_the_dead_letter_of_a_label_has_the_time_and_headers_of_its_record(site: Site) -> None:
    step = site.label_step()
    step.assign(0, 0)
    step.process(0, [label(5, true_class="bird"), label(6, "z")], NOW)
    printed = [(letter.record.timestamp, list(letter.record.headers)) for letter in site.letters.kept]
    assert printed == [(5_000, [("traceparent", b"00")]), (6_000, [("traceparent", b"00")])]
