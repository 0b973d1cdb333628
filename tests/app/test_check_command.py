"""`credence check` says what a configuration would do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from service.app.cli import main
from service.config.labels_per_item import LabelsPerItem
from service.statistics.annotator_prior import AnnotatorPrior, share_right
from service.statistics.strata_accuracy import START_ACCURACY

BUDGET = "budget: {labels: 50}"


def check_output(folder: Path, capsys: pytest.CaptureFixture[str], assessment: str) -> str:
    """What is said of an assessment of a binary classifier."""
    config = folder / "credence.yaml"
    config.write_text(
        f"models: {{mail: {{classes: [ham, spam], assessments: {{asked: {assessment}}}}}}}", encoding="utf-8"
    )
    assert main(["check", "--config", str(config)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "assessment asked" in line]
    return line.strip()


def test_what_is_asked_about_a_binary_classifier_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = check_output(tmp_path, capsys, f"{{task: performance, positive_class: spam, {BUDGET}}}")
    assert line.startswith(
        "assessment asked: What are precision and recall on class spam, at every threshold? "
        "Requests labels by positive_score (adaptive); at most 50 labels in total"
    )


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("labels: 15", "at most 1 at once; 3 of 15 labels are reserved"),
        ("labels: 300, burst: 1.0", "at most 240 at once; 60 of 300 labels are reserved"),
        (
            "labels: 3, reserve: 0.9",
            "about one label every 24 h, at most 1 at once; 2 of 3 labels are reserved",
        ),
    ],
)
def test_the_pace_that_is_announced_is_that_of_a_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], budget: str, said: str
) -> None:
    config = tmp_path / "credence.yaml"
    asked = f"{{grouping: class, budget: {{{budget}, per_days: 1}}}}"
    grouped = "classes: [ham, spam], groupings: {class: {by: predicted_class}}"
    config.write_text(f"models: {{mail: {{{grouped}, assessments: {{asked: {asked}}}}}}}", encoding="utf-8")
    assert main(["check", "--config", str(config)]) == 0
    assert said in capsys.readouterr().out


def test_labels_of_an_ensemble_are_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = check_output(
        tmp_path, capsys, f"{{task: ensemble, positive_class: spam, members: [a, b], {BUDGET}}}"
    )
    assert (
        "How precise are the ensemble and its members on class spam? Requests labels by __votes__ (planned)"
        in line
    )


def test_an_identification_tells_which_end_it_looks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f"{{task: identification, metric: calibration, grouping: score_bin, {BUDGET}}}"
    assert "Which score_bin is the least calibrated?" in check_output(tmp_path, capsys, asked)


def listed(folder: Path, capsys: pytest.CaptureFixture[str], model: str, bounds: str = "{}") -> list[str]:
    """What is said of a model's tables."""
    config = folder / "credence.yaml"
    config.write_text(f"bounds: {bounds}\nmodels: {{mail: {model}}}", encoding="utf-8")
    assert main(["check", "--config", str(config)]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line.startswith(("table", "all tables", "warning"))]


GROUPED = (
    "{classes: [ham, spam], "
    "groupings: {class: {by: predicted_class}, region: {by: attribute, attribute: where}}}"
)


BY_CLASS, WHERE = "for groups by class and score", "table of attribute where: up to 1,002 rows x"


def test_tables_are_listed_with_their_sizes_and_what_needs_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert listed(tmp_path, capsys, GROUPED) == [
        f"table of all traffic: up to 1 row x 20 columns (predicted class and score bin), 480 B; {BY_CLASS}",
        f"{WHERE} 10 columns (score bin), 240.5 kB; for accuracy by value",
        f"{WHERE} 2 columns (predicted class), 16.0 kB; for drift of classes",
        "all tables: up to 257.0 kB a partition (bounds.table_bytes: 268.4 MB)",
    ]


def test_error_rates_need_a_table_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = "{task: error_rates, grouping: region, positive_class: spam, budget: {labels: 1}}"
    lines = listed(tmp_path, capsys, f"{GROUPED[:-1]}, assessments: {{fair: {asked}}}}}")
    columns = "20 columns (positive class predicted or not, and score bin)"
    assert f"{WHERE} {columns}, 481.0 kB; for error rates" in lines


def test_a_class_mix_that_is_too_large_to_be_kept_is_told_and_not_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = listed(tmp_path, capsys, GROUPED, "{attribute_values: 1000000}")
    assert not any("drift of classes" in line for line in lines)
    assert lines[-1] == (
        "warning: no drift of predicted classes by where: 1,000,000 values x 2 classes exceed "
        "2,000,000; to enable it, lower bounds.attribute_values"
    )


def test_a_model_that_is_not_grouped_by_class_is_not_warned_of_a_class_mix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = "{classes: [ham, spam], groupings: {region: {by: attribute, attribute: where}}}"
    lines = listed(tmp_path, capsys, plain, "{attribute_values: 1000000}")
    assert len(lines) == 3
    assert not any(line.startswith("warning") for line in lines)


def paced(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    assessment: str,
    threshold: str = "0.9",
    model: str = "labels_per_item: {}",
) -> list[str]:
    """What is said of the pace of an assessment by region, and of how soon it finds a fault."""
    config = folder / "credence.yaml"
    config.write_text(
        "models: {mail: {classes: [ham, spam], groupings: {region: {by: attribute, attribute: region}}, "
        f"{model}, alerts: {{min_accuracy: {threshold}}}, assessments: {{asked: {assessment}}}}}}}",
        encoding="utf-8",
    )
    assert main(["check", "--config", str(config)]) == 0
    lines = capsys.readouterr().out.splitlines()
    return [line.strip() for line in lines if line.startswith("    ")]


DAILY = "task: identification, grouping: region, budget: {labels: 300, per_days: 1}"


def test_the_pace_of_a_budget_and_the_days_to_a_fault_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pace, found = paced(tmp_path, capsys, f"{{{DAILY}}}")
    assert pace == (
        "about one label every 6 min, at most 30 at once; 60 of 300 labels are reserved for suspected groups"
    )
    assert found.startswith(
        "one region of 8 with equal traffic that falls from 95% to 85% is usually found in about "
    )


def test_further_labels_of_items_delay_the_finding_of_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (_, once) = paced(tmp_path, capsys, f"{{{DAILY}}}")
    (_, twice) = paced(tmp_path, capsys, f"{{{DAILY}}}", model="labels_per_item: {least: 2, most: 2}")
    (_, halved) = paced(tmp_path, capsys, f"{{{DAILY.replace('300', '150')}}}")
    assert twice == f"{halved}; a new item takes about 2.00 labels of the budget"
    assert halved != once


def test_gold_items_take_their_share_of_the_budget() -> None:
    rule = LabelsPerItem.model_validate({"gold": {"file": "gold.jsonl", "share": 0.2}})
    assert rule.items_per_label(0.9) == pytest.approx(0.8)


def test_an_item_takes_further_labels_where_the_first_contradicts_and_where_it_is_audited() -> None:
    rule = LabelsPerItem(most=2, audit_share=0.5, reliability=0.9)
    contradicted = 0.8 * 0.1 + 0.2 * 0.9
    assert 1 / rule.items_per_label(0.8) == pytest.approx(1 + contradicted + 0.5 * (1 - contradicted))


def test_a_fault_that_a_budget_cannot_find_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (_, found) = paced(
        tmp_path, capsys, "{task: estimation, grouping: region, budget: {labels: 1, per_days: 30}}"
    )
    assert found.endswith("is usually not found within two years, and usually not confirmed within two years")


def test_without_a_threshold_or_a_period_nothing_is_forecast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(paced(tmp_path, capsys, f"{{{DAILY}}}", threshold="null")) == 1
    assert paced(tmp_path, capsys, "{grouping: region, budget: {labels: 50}}") == []


@pytest.mark.parametrize("threshold", ["0.02", "0.5", "0.999"])
def test_any_threshold_has_a_forecast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], threshold: str
) -> None:
    assert len(paced(tmp_path, capsys, f"{{{DAILY}}}", threshold=threshold)) == 2


def test_what_waits_for_unrequested_labels_and_its_memory_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "credence.yaml"
    config.write_text(
        "bounds: {join_items: 2000, join_days: 30}\n"
        "models: {mail: {classes: [ham, spam], unrequested_labels: {items: census}}}",
        encoding="utf-8",
    )
    assert main(["check", "--config", str(config)]) == 0
    assert (
        "  unrequested labels (census): up to 2,000 predictions wait up to 30 d, about 500.0 kB in Redis; "
        "as many with an outcome, about 220.0 kB\n"
        "  a group's accuracy is expected to change once in 5,000 labels (forgetting.run_length)\n"
    ) in capsys.readouterr().out


def test_a_forecast_expects_as_reliable_people_as_estimates_do() -> None:
    rule, stated = LabelsPerItem(most=3), LabelsPerItem(most=3, reliability=0.89)
    people = AnnotatorPrior()
    two_classes = share_right(np.array([people.ability[0]]), people.log_difficulty[0], 0.0, 2)
    wrongly_predicted = share_right(
        np.array([people.ability[0]]), people.log_difficulty[0], people.harder[0], 2
    )
    expected = START_ACCURACY * two_classes + (1 - START_ACCURACY) * wrongly_predicted
    assert expected == pytest.approx(0.89, abs=0.005)
    assert rule.items_per_label(0.9) == stated.items_per_label(0.9)


def rates_line(folder: Path, capsys: pytest.CaptureFixture[str], keys: str) -> str:
    """What is said of the rates of an assessment by region."""
    config = folder / "credence.yaml"
    grouped = "classes: [ham, spam], groupings: {region: {by: attribute, attribute: region}}"
    asked = f"{{task: error_rates, grouping: region, positive_class: spam, {BUDGET}{keys}}}"
    config.write_text(f"models: {{mail: {{{grouped}, assessments: {{fair: {asked}}}}}}}", encoding="utf-8")
    assert main(["check", "--config", str(config)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "labels are requested for" in line]
    return line.strip()


def test_the_rate_and_the_limits_of_error_rates_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = (
        ", rate: precision, limits: {precision: 0.9}, group_limits: {north: {false_positive_rate: 0.1}}"
        ", max_differences: {selection_rate: 0.05}, min_ratios: {precision: 0.8}"
    )
    assert rates_line(tmp_path, capsys, keys) == (
        "labels are requested for the precision on class spam; "
        "limits: precision at least 90% in every region, "
        "false positive rate at most 10% in region north, difference of selection rate at most 5%, "
        "ratio of precision at least 80%"
    )


def test_error_rates_without_limits_are_told_to_have_no_alerts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rates_line(tmp_path, capsys, "") == (
        "labels are requested for the false positive rate on class spam; no limits, so no alerts"
    )


@pytest.mark.parametrize(
    ("rates", "labels_per_item", "warns"),
    [
        (", limits: {precision: 0.9}", "{reliability: 0.9}", True),
        (", max_differences: {precision: 0.1}", "{reliability: 0.9}", True),
        (", max_differences: {selection_rate: 0.1}", "{reliability: 0.9}", False),
        (", limits: {precision: 0.9}", "{reliability: 0.9, max_error: 0.1}", False),
        (", limits: {precision: 0.9}", "{}", False),
    ],
)
def test_limits_that_evidence_cannot_confirm_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rates: str, labels_per_item: str, *, warns: bool
) -> None:
    config = tmp_path / "credence.yaml"
    grouped = "classes: [ham, spam], groupings: {region: {by: attribute, attribute: region}}"
    asked = f"{{task: error_rates, grouping: region, positive_class: spam, {BUDGET}{rates}}}"
    model = f"{grouped}, labels_per_item: {labels_per_item}, assessments: {{fair: {asked}}}"
    config.write_text(f"models: {{mail: {{{model}}}}}", encoding="utf-8")
    assert main(["check", "--config", str(config)]) == 0
    assert ("set labels_per_item.max_error to a number" in capsys.readouterr().out) is warns


def test_the_forecast_is_of_the_threshold_of_the_grouping(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "credence.yaml"
    asked = "{grouping: class, budget: {labels: 300, per_days: 1}}"
    grouped = (
        "classes: [ham, spam], groupings: {class: {by: predicted_class}}, "
        "alerts: {min_accuracy: 0.9, groupings: {class: {min_accuracy: 0.7}}}"
    )
    config.write_text(f"models: {{mail: {{{grouped}, assessments: {{asked: {asked}}}}}}}", encoding="utf-8")
    assert main(["check", "--config", str(config)]) == 0
    assert "that falls from 75% to 65% is" in capsys.readouterr().out


GROUPINGS = "{region: {by: attribute, attribute: region}, shop: {by: attribute, attribute: shop}}"


def sentences(folder: Path, capsys: pytest.CaptureFixture[str], model: str, *options: str) -> list[str]:
    """What is said to the owner of a model, and the warnings."""
    config = folder / "credence.yaml"
    config.write_text(
        f"models: {{mail: {{classes: [ham, spam], groupings: {GROUPINGS}, {model}}}}}", encoding="utf-8"
    )
    assert main(["check", "--config", str(config), *options]) == 0
    lines = (line.strip() for line in capsys.readouterr().out.splitlines())
    return [line for line in lines if line.startswith(("in short", "warning"))]


def asked(labels: int, *, within: str = "") -> str:
    """A model that gets so many labels a day."""
    task = f"{{task: identification, grouping: region, budget: {{labels: {labels}, per_days: 1}}}}"
    return f"{within}alerts: {{min_accuracy: 0.9}}, assessments: {{weakest: {task}}}"


def test_the_owner_reads_which_groups_are_watched_and_by_how_many_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted, estimated, others = sentences(tmp_path, capsys, asked(300))
    assert "counts the predictions of all traffic, every region and every shop, and compares" in counted
    assert estimated == (
        "in short: estimates accuracy from at most 300 labels a day, and alerts if a group is below "
        "90.0% with "
        "a probability of 95%"
    )
    assert "requests no labels by shop; labels of other groupings count there too" in others


def test_a_budget_that_finds_faults_too_late_is_a_warning_with_one_that_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soon = "find_within_days: 7, "
    assert not [line for line in sentences(tmp_path, capsys, asked(20)) if line.startswith("warning")]
    (warning,) = [
        line for line in sentences(tmp_path, capsys, asked(20, within=soon)) if line.startswith("warning")
    ]
    start, end = (
        "warning: weakest usually finds that fall later than in find_within_days (7 d); ",
        " labels a day do",
    )
    assert warning.startswith(start)
    labels = int(warning.removeprefix(start).split(end)[0])
    assert labels > 20
    assert not [
        line for line in sentences(tmp_path, capsys, asked(labels, within=soon)) if line.startswith("warning")
    ]


def test_a_fall_that_no_budget_finds_in_time_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = sentences(tmp_path, capsys, asked(20, within="find_within_days: 0.1, "), "--detect", "0.01")
    assert lines[-1].endswith("allow more time, or fewer groups")


def test_labels_without_a_period_or_a_threshold_are_warnings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = "assessments: {weakest: {grouping: region, budget: {labels: 1000}}}"
    lines = sentences(tmp_path, capsys, model)
    assert "in short: estimates accuracy from at most 1,000 labels once" in lines
    assert "warning: no group is ever reported as inaccurate; set alerts.min_accuracy" in lines
    assert (
        "warning: weakest spends its 1,000 labels once; a fault after that gets no labels. Set "
        "budget.per_days" in lines
    )


def test_the_fall_that_is_forecast_is_the_one_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "credence.yaml"
    config.write_text(
        f"models: {{mail: {{classes: [ham, spam], groupings: {GROUPINGS}, {asked(300)}}}}}", encoding="utf-8"
    )
    assert main(["check", "--config", str(config), "--detect", "0.04"]) == 0
    assert "that falls from 92% to 88% is" in capsys.readouterr().out
