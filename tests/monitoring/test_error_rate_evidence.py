"""What evidence on error rates confirms, however many groups there are, and whenever they arrive."""

from __future__ import annotations

import numpy as np

from service.config.assessments import ErrorRateSettings
from service.monitoring.error_rate_evidence import RateProof, error_rate_evidence
from service.monitoring.rate_base import RateBase
from service.monitoring.rate_labels import Labelled
from service.statistics.rates.label_evidence import StratumDraws
from service.statistics.rates.measures import RATES

NO_DRAWS = StratumDraws(
    np.zeros(0, np.intp),
    np.zeros(0, np.bool_),
    np.zeros(0, np.bool_),
    np.zeros(0, np.bool_),
    np.zeros((0, 10)),
)


def proof_of(numbers: list[int], wrong: list[int], **limits: dict[str, float]) -> RateProof:
    """Of groups by their order of arrival, of whose negative labels all are selected."""
    settings = ErrorRateSettings.model_validate(
        {
            "task": "error_rates",
            "grouping": "region",
            "positive_class": "flag",
            "budget": {"labels": 1, "per_days": 1},
            "limits": {"false_positive_rate": 0.5} | limits,
        }
    )
    count = len(numbers)
    labels = np.zeros((count, 2, 2))
    labels[:, 0, 1] = wrong
    groups = [f"g{number}" for number in numbers]
    labelled = Labelled(
        groups,
        [f"g{number}" for number in range(1, max(numbers) + 1)],
        RateBase(("region", "flag")),
        NO_DRAWS,
        np.zeros(0, np.uint64),
        labels,
        np.zeros((count, 2)),
    )
    at = {name: np.full(count, settings.limits.get(name, np.nan)) for name in RATES}
    return error_rate_evidence(settings, labelled, at, alpha=0.05, before={}).proofs["false_positive_rate"]


def labels_to_confirm(number: int, **limits: float) -> int:
    """Fewest wrong labels in a row that confirm a group that arrived as this one, while others have none."""
    return next(
        wrong
        for wrong in range(1, 100)
        if proof_of([number, number + 1], [wrong, 0], **limits).confirmed[0]  # type: ignore[arg-type]
    )


def test_a_group_that_arrives_late_needs_more_evidence_than_the_first() -> None:
    assert labels_to_confirm(1) < labels_to_confirm(20) < labels_to_confirm(400)


def test_each_further_limit_takes_its_part_of_alpha() -> None:
    assert labels_to_confirm(1) < labels_to_confirm(1, true_positive_rate=0.1)
