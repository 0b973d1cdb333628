"""Thresholds and budgets that `credence init` proposes, and what they cost."""

from __future__ import annotations

import pytest
from samples import CLASSES, ROWS, Init, renamed, rows

from service.app.detection_forecast import detection, labels_a_day, typical_fault
from service.app.proposal.attributes import MOST_CODES
from service.app.proposal.budgets import FallArithmetic, LabelBudget, propose_budget, within_limit
from service.config.assessments import IdentificationSettings
from service.config.budget import Budget
from service.config.model import ModelSettings

THRESHOLD = 0.85


def budgets(model: dict[str, object]) -> dict[str, int]:
    """Labels a day by grouping."""
    assessments = model["assessments"]
    assert isinstance(assessments, dict)
    return {each["grouping"]: each["budget"]["labels"] for each in assessments.values()}


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(("groups", "within"), [(3, 14.0), (8, 7.0), (20, 30.0)])
def test_a_budget_is_the_smallest_that_finds_a_fault_in_time(
    groups: int, within: float, *, late: bool
) -> None:
    model = ModelSettings.model_validate({"classes": ["a", "b"], "find_within_days": within})
    fault = typical_fault(THRESHOLD)
    asked = IdentificationSettings(grouping="all", budget=Budget(labels=1, per_days=1))
    labels = labels_a_day(model, asked, fault, THRESHOLD, groups=groups, late=late)
    assert labels is not None

    def days(number: int) -> float:
        with_budget = asked.model_copy(update={"budget": Budget(labels=number, per_days=1)})
        alert = detection(model, with_budget, fault, THRESHOLD, groups=groups).alert
        return alert.late if late else alert.median

    assert days(labels) <= within < days(labels - 1)


def test_no_budget_finds_a_tiny_fall_at_once() -> None:
    model = ModelSettings.model_validate({"classes": ["a", "b"], "find_within_days": 0.1})
    asked = IdentificationSettings(grouping="all", budget=Budget(labels=1, per_days=1))
    assert labels_a_day(model, asked, typical_fault(0.9, 0.01), 0.9, groups=8) is None


def test_smaller_falls_and_less_time_take_more_labels(init: Init) -> None:
    found = rows()
    plain, smaller, sooner = (
        sum(budgets(init.of(found, *options).model).values())
        for options in ([], ["--detect", "0.05"], ["--decide-within", "7d"])
    )
    assert smaller > plain < sooner


def test_check_announces_that_the_proposal_finds_a_fall_in_time(init: Init) -> None:
    _, said = init.check(init.of(rows(), "--decide-within", "30d", "--detect", "0.08"), "--detect", "0.08")
    assert said.count("(9 of 10 times within ") >= 2
    assert "warning" not in said
    assert said.count("30 d)") >= 1


def test_the_arithmetic_is_in_the_comment(init: Init) -> None:
    said = init.of(rows(), "--min-accuracy", "0.85").comments
    # KL(0.8 || 0.9) = 0.8 log(0.8 / 0.9) + 0.2 log(0.2 / 0.1) = 0.0444; log(20) = 2.996.
    assert (
        "falls from 90.0% to 80.0% is decided by about 67 of its own labels: on average each adds 0.044"
        in said
    )
    assert "has to reach 3.0, that of 1 / 0.05." in said


def test_the_threshold_is_half_a_fall_below_the_accuracy_of_the_sample(init: Init) -> None:
    found = rows(1_000)
    accuracy = sum(row["predicted_class"] == row["true_class"] for row in found) / len(found)
    for drop in (0.1, 0.04):
        model = init.of(found, "--detect", str(drop)).model
        assert model["alerts"]["min_accuracy"] == pytest.approx(accuracy - drop / 2, abs=0.0006)


def test_without_true_classes_the_threshold_follows_from_scores_and_says_so(init: Init) -> None:
    found = renamed(rows(), true_class=None)
    proposed = init.of(found)
    mean = sum(row["score"] for row in found) / len(found)
    assert proposed.model["alerts"]["min_accuracy"] == pytest.approx(mean - 0.05, abs=0.0006)
    assert "no true classes confirm it" in proposed.comments


def test_a_limit_of_labels_is_spent_on_the_groupings_that_need_the_fewest(init: Init) -> None:
    found = rows(2_000, shop=[f"shop {number % 30}" for number in range(2_000)])
    free = budgets(init.of(found).model)
    assert max(free, key=free.__getitem__) == "shop"
    limit = sum(free.values()) - 1
    proposed = init.of(found, "--labels-per-day", str(limit))
    assert budgets(proposed.model) == {name: labels for name, labels in free.items() if name != "shop"}
    assert f"left of --labels-per-day {limit:,}" in proposed.comments
    assert init.check(proposed)[0] == 0


def test_a_limit_is_never_exceeded() -> None:
    proposed = [LabelBudget(labels, "") for labels in (50, None, 20, 70, 20)]
    kept = [each.labels for each in within_limit(proposed, 100)]
    assert kept == [50, None, 20, None, 20]


def test_a_grouping_with_many_groups_gets_no_labels_of_its_own(init: Init) -> None:
    found = rows(2_000, shop=[f"shop {number % 90}" for number in range(2_000)])
    proposed = init.of(found)
    assert "shop" not in budgets(proposed.model)
    assert "shop: 90 groups, more than 50: each would get few of the labels" in proposed.comments
    assert "in short: requests no labels by shop" in init.check(proposed)[1]


def test_where_no_grouping_gets_labels_they_are_drawn_from_all_traffic(init: Init) -> None:
    found = rows(2_000)
    for number, row in enumerate(found):
        row["predicted_class"] = row["true_class"] = f"class {number % 90}"
        del row["region"]
    proposed = init.of(found, "--min-accuracy", "0.9")
    assert [*proposed.model["assessments"]] == ["accuracy"]
    assert "No grouping gets labels of its own" in proposed.comments
    code, said = init.check(proposed)
    assert (code, "warning" in said) == (0, False)


def test_a_limit_below_all_needs_is_spent_on_all_traffic(init: Init) -> None:
    proposed = init.of(rows(), "--labels-per-day", "2")
    assert proposed.model["assessments"]["accuracy"]["budget"] == {"labels": 2, "per_days": 1}
    assert init.check(proposed)[0] == 0


def test_more_labels_than_predictions_are_a_warning(init: Init) -> None:
    times = [f"2026-{1 + number // 28 % 12:02d}-{1 + number % 28:02d}" for number in range(300)]
    assert "WARNING: that is fewer than the" in init.of(rows(300, time=times)).comments


def wide(values: int) -> list[dict[str, object]]:
    """Predictions of so many classes that tables of attributes by class are large."""
    return [
        {
            "item_id": str(number),
            "predicted_class": f"class {number % 1_500:04d}",
            "score": 0.9,
            **{f"a{column:02d}": f"v{number % values}" for column in range(25)},
        }
        for number in range(3_000)
    ]


def test_the_bound_of_values_is_lowered_where_tables_would_not_fit(init: Init) -> None:
    proposed = init.of(wide(40))
    assert init.check(proposed)[0] == 0
    assert len(proposed.model["groupings"]) == 26
    assert "Lowered from the default, so that all tables fit." in proposed.comments
    assert "attribute_values: 80" in proposed.text


def test_attributes_whose_tables_do_not_fit_are_left_out(init: Init) -> None:
    proposed = init.of(wide(900))
    assert init.check(proposed)[0] == 0
    assert 1 < len(proposed.model["groupings"]) < 26
    assert "the tables would exceed bounds.table_bytes; it has 900 groups" in proposed.comments


def test_costs_in_memory_are_those_that_check_prints(init: Init) -> None:
    proposed = init.of(rows())
    _, said = init.check(proposed)
    (line,) = [line for line in said.splitlines() if "all tables: up to" in line]
    size = line.split("up to ")[1].split(" a partition")[0]
    assert f"take up to {size} a partition of the topic" in proposed.comments
    assert len(proposed.model["classes"]) == len(CLASSES)


def test_a_goal_that_no_budget_reaches_is_an_error_that_names_the_options(init: Init) -> None:
    proposed = init.of(rows(), "--detect", "0.001", "--decide-within", "1d", "--min-accuracy", "0.9")
    assert proposed.code == 2
    assert "finds a fall of 0.1 points across the threshold of 90.0% within 24 h" in proposed.error
    for option in ("--detect", "--decide-within", "--min-accuracy"):
        assert f"({option})" in proposed.error


def test_groupings_with_as_many_groups_share_their_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(*_: object, groups: int, **__: object) -> None:
        calls.append(groups)

    monkeypatch.setattr("service.app.proposal.budgets.labels_a_day", counted)
    model = ModelSettings.model_validate({"classes": ["a", "b"]})
    arithmetic = FallArithmetic(model, drop=0.1, threshold=0.9)
    for groups in (3, 8, 9, 8):
        propose_budget(arithmetic, groups=groups, is_attribute=True)
    assert calls == [8, 9]


def test_a_quantity_is_a_grouping_without_labels_of_its_own_unless_it_is_named(init: Init) -> None:
    found = rows(hours=[number % (MOST_CODES + 1) for number in range(ROWS)])
    proposed = init.of(found)
    assert "hours" in proposed.model["groupings"]
    assert "hours" not in budgets(proposed.model)
    assert "hours: numbers with more than 8 values, as of a quantity" in proposed.comments
    assert "hours" in budgets(init.of(found, "--attributes", "hours,region").model)


def test_numbers_with_few_values_are_codes_that_get_labels(init: Init) -> None:
    found = rows(site=[number % MOST_CODES for number in range(ROWS)])
    assert "site" in budgets(init.of(found).model)
