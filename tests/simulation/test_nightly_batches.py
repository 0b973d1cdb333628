"""Traffic in one batch a night: labels stay an even sample of it, and nothing healthy is confirmed."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.nightly import Case, run, summary
from service.demo.servers import EmbeddedRedis

RUNS = 5


@pytest.mark.parametrize("groups", [1, 4])
def test_labels_of_nightly_batches_are_an_even_sample_and_confirm_nothing(
    redis_server: EmbeddedRedis, groups: int
) -> None:
    case = Case(labels=200, groups=groups, partitions=2, policy="thompson", days=4)
    found = [run(case, redis_server.url, seed) for seed in range(RUNS)]
    # Fixed seeds; a mean beyond three and a half of its standard errors comes once in 2,000 times by chance.
    assert abs(summary(case, found)["mean_error"]) < 3.5
    assert not any(result.confirmed for result in found)
    # Half of the pace follows traffic, which is over early in the day.
    assert np.mean([result.labels for result in found]) >= 0.84 * 200 * 4


def test_a_budget_larger_than_the_pool_waits_and_labels_stay_even(redis_server: EmbeddedRedis) -> None:
    case = Case(labels=400, groups=4, partitions=1, policy="thompson", days=3, batch=300)
    found = [run(case, redis_server.url, seed) for seed in range(RUNS)]
    assert abs(summary(case, found)["mean_error"]) < 3.5
    assert not any(result.confirmed for result in found)
