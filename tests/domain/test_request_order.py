"""Places of requests: by time, ties by request id."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.request_order import NO_PLACE, request_place, request_places, requested_at

TIMES = st.floats(0, 4e9)


@given(TIMES, TIMES, st.text(max_size=9), st.text(max_size=9))
def test_a_request_that_was_made_a_millisecond_later_stands_behind(
    first: float, second: float, one: str, other: str
) -> None:
    if second >= first + 0.002:
        assert request_place(first, one) < request_place(second, other) < NO_PLACE


@given(TIMES, st.text(max_size=9))
def test_a_place_says_when_it_was_requested(at: float, request_id: str) -> None:
    assert requested_at(request_place(at, request_id)) == pytest.approx(at, abs=0.001)


def test_requests_that_were_made_together_have_an_order_of_their_own() -> None:
    ids = [f"{number:024x}" for number in range(500)]
    places = request_places((1.8e9, request_id) for request_id in ids)
    # Of 500 requests of a round, hardly any share a place.
    assert len(set(places.tolist())) > 495
    assert places.tolist() != sorted(places.tolist())
