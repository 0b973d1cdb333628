"""Times on the command line."""

from __future__ import annotations

import argparse
import time

import pytest

from service.domain.times import days, in_words, moment


def test_a_time_without_an_offset_is_utc() -> None:
    assert moment("2026-01-31T12:00:00") == moment("2026-01-31T13:00:00+01:00") == 1_769_860_800


def test_a_time_may_be_reported_by_how_long_ago_it_is() -> None:
    assert moment("2h") == pytest.approx(time.time() - 7_200, abs=60)


def test_a_time_is_reported_as_it_may_be_written() -> None:
    assert in_words(1_769_860_800.25) == "2026-01-31T12:00:00Z"
    assert moment(in_words(1_769_860_800)) == 1_769_860_800


@pytest.mark.parametrize("text", ["noon", "", "2026-13-01", "999999999d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a time"):
        moment(text)


@pytest.mark.parametrize(("text", "found"), [("14d", 14.0), ("36h", 1.5), ("90m", 0.0625), ("86400s", 1.0)])
def test_a_length_of_time_is_in_days(text: str, found: float) -> None:
    assert days(text) == found


@pytest.mark.parametrize("text", ["", "14", "0d", "-1d", "2w", "1.5d", "d"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a length of time"):
        days(text)
