"""Environments of one model, as docs/pooling.md configures them: small ones borrow from the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from traffic_tables import JointCell, traffic_of

from service.config.settings import Settings
from service.monitoring.group_index import GroupIndex
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groupings
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

PAGE = Path(__file__).parents[2] / "docs" / "pooling.md"
NOW = 1_800_000_000.0
ENVIRONMENTS = [f"site-{number:02}" for number in range(20)]
UNLABELLED = ENVIRONMENTS[-1]
LABELS = 5


def configured() -> Settings:
    """The recipe of the page, as it stands there."""
    text = PAGE.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    return Settings.model_validate(yaml.safe_load(text))


@pytest.fixture(scope="module")
def believed() -> GroupingSnapshot:
    """Twenty environments, about four of five right in each, five labels for all but the last."""
    settings = configured()
    (model,) = settings.models
    space = settings.cell_space(model)
    classes = settings.models[model].classes
    entries = []
    for number, environment in enumerate(np.repeat(ENVIRONMENTS[:-1], LABELS).tolist()):
        fact = Fact(
            f"r{number}",
            f"i{number}",
            "environment",
            environment,
            classes[0],
            0.95,
            {"environment": environment},
            NOW,
            NOW,
        )
        # Of five labels three, four or five are right, in turn.
        right = number % LABELS < (3, 4, 5)[number // LABELS % 3]
        true = classes[0] if right else classes[1]
        entries.append(OutcomeEntry((1, number), (1, number), "environments", fact, LabelFact(true, NOW, "")))
    ledger = OutcomeLedger(space)
    ledger.fold(entries)
    ledger.place()
    cells = [
        JointCell((name,), predicted, space.bin_count - 1, 100, 100.0, 95.0)
        for name in ENVIRONMENTS
        for predicted in range(len(classes))
    ]
    found = assess_groupings(
        settings=settings.models[model],
        index=GroupIndex(space, traffic_of(space, cells, landmark=NOW), ledger.cells),
        probability_sums={},
        ledger=ledger,
        at=NOW,
    )
    return found["environment"]


def test_every_environment_is_a_group(believed: GroupingSnapshot) -> None:
    assert believed.groups == ENVIRONMENTS


def test_environments_are_drawn_towards_one_another(believed: GroupingSnapshot) -> None:
    labelled = slice(0, len(ENVIRONMENTS) - 1)
    assert believed.accuracy.mean[labelled].std() < 0.5 * believed.own_rate[labelled].std()
    assert (believed.own_share[labelled] < 0.5).all()


def test_one_without_labels_is_believed_to_be_like_the_others(believed: GroupingSnapshot) -> None:
    at = ENVIRONMENTS.index(UNLABELLED)
    others = np.delete(believed.accuracy.mean, at)
    assert np.isnan(believed.own_rate[at])
    # Nearer to what the others are than to the scores, which say .95; and less sure.
    assert abs(believed.accuracy.mean[at] - others.mean()) < 0.05
    widths = believed.accuracy.upper - believed.accuracy.lower
    assert widths[at] > np.median(widths)
