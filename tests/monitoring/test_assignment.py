"""Which vendor is asked: in proportion to the shares, and moved by nothing but a change of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from service.monitoring.request_builder import VendorAssignment

KEY = bytes(range(16))

IDS = [f"{number:024x}" for number in range(4_000)]


def vendor_of(request_id: str, attempt: int, shares: Mapping[str, float]) -> str:
    return VendorAssignment(shares, KEY).vendor(request_id, attempt)


VENDORS = st.dictionaries(
    st.sampled_from(["acme", "bolt", "core", "dyne", "echo"]), st.floats(1e-3, 1e3), min_size=1, max_size=5
)
REQUESTS = st.text("0123456789abcdef", min_size=1, max_size=24)
ATTEMPTS = st.integers(1, 100)


def test_without_vendors_nobody_is_asked() -> None:
    assert vendor_of("a", 1, {}) == ""


@pytest.mark.parametrize(
    "shares",
    [{"acme": 1.0, "bolt": 1.0}, {"acme": 1.0, "bolt": 2.0, "core": 7.0}, {"acme": 0.05, "bolt": 0.15}],
)
def test_each_vendor_is_asked_in_proportion_to_its_share(shares: dict[str, float]) -> None:
    counts = Counter(vendor_of(request_id, 1, shares) for request_id in IDS)
    expected = [len(IDS) * share / sum(shares.values()) for share in shares.values()]
    # The hash is fixed, so this either always passes or never: one in a thousand functions would fail.
    assert chisquare([counts[vendor] for vendor in shares], expected).pvalue > 0.001


def test_another_attempt_is_an_assignment_of_its_own() -> None:
    shares = {"acme": 1.0, "bolt": 1.0}
    moved = sum(vendor_of(i, 1, shares) != vendor_of(i, 2, shares) for i in IDS)
    assert moved == pytest.approx(len(IDS) / 2, rel=0.1), "three standard deviations are 5%"


@given(request_id=REQUESTS, attempt=ATTEMPTS, shares=VENDORS)
def test_the_order_of_vendors_and_the_scale_of_shares_do_not_matter(
    request_id: str, attempt: int, shares: dict[str, float]
) -> None:
    asked = vendor_of(request_id, attempt, shares)
    assert asked in shares
    assert vendor_of(request_id, attempt, dict(reversed(shares.items()))) == asked
    # By a power of two no score is rounded otherwise.
    assert vendor_of(request_id, attempt, {name: share * 4 for name, share in shares.items()}) == asked


@given(request_id=REQUESTS, attempt=ATTEMPTS, shares=VENDORS, share=st.floats(1e-3, 1e3))
def test_a_vendor_that_comes_takes_requests_and_moves_none_between_others(
    request_id: str, attempt: int, shares: dict[str, float], share: float
) -> None:
    before = vendor_of(request_id, attempt, shares)
    assert vendor_of(request_id, attempt, shares | {"newcomer": share}) in {before, "newcomer"}


@given(request_id=REQUESTS, attempt=ATTEMPTS, shares=VENDORS)
def test_a_larger_share_takes_no_request_away(
    request_id: str, attempt: int, shares: dict[str, float]
) -> None:
    asked = vendor_of(request_id, attempt, shares)
    assert vendor_of(request_id, attempt, shares | {asked: shares[asked] * 2}) == asked


def test_who_does_not_hold_the_key_cannot_choose_ids_for_a_vendor() -> None:
    shares = {"acme": 1.0, "bolt": 1.0}
    guess = VendorAssignment(shares, bytes(16))
    chosen = [request_id for request_id in IDS if guess.vendor(request_id, 1) == "acme"]
    hits = sum(vendor_of(request_id, 1, shares) == "acme" for request_id in chosen)
    assert hits == pytest.approx(len(chosen) / 2, rel=0.1), "three standard deviations are 7%"
