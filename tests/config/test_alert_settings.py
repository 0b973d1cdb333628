"""Thresholds of alerts fit the model that they are about."""

from __future__ import annotations

from pathlib import Path

import pytest
from problem_lines import problem_lines

from service.config.alerts import Measure
from service.config.loader import load_settings
from service.domain.errors import ConfigurationError
from service.domain.groupings import ByAttribute, ByScore, ByVotes, Everything, Grouping

RELIABLE = "models: {animals: {classes: [cat, dog], alerts: {min_reliability: 0.9}"


def config_in(folder: Path, text: str) -> Path:
    path = folder / "credence.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_threshold_of_reliability_needs_labels_that_may_be_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"min_reliability.*needs labels that may be wrong"):
        load_settings(config_in(tmp_path, RELIABLE + "}}"), {})


@pytest.mark.parametrize("policy", ["most: 3", "reliability: 0.95"])
def test_a_threshold_of_reliability_is_allowed_where_people_may_err(tmp_path: Path, policy: str) -> None:
    path = config_in(tmp_path, f"{RELIABLE}, labels_per_item: {{{policy}}}}}}}")
    assert load_settings(path, {}).models["animals"].alerts.min_reliability == 0.9


MODEL = """models:
  animals:
    classes: [cat, dog]
    groupings: {region: {by: attribute, attribute: region}, class: {by: predicted_class}}
"""
CERTIFIED = """    assessments: {release: {policy: certify, grouping: region, budget: {labels: 9}}}
"""
OWN = """    alerts:
      min_accuracy: 0.95
      max_ece: 0.05
      groupings:
        region:
          min_accuracy: 0.9
          groups: {north: {min_accuracy: 0.85}, south: {max_ece: 0.1}, west: {min_accuracy: null}}
"""
REGION = ByAttribute("region", "region")


@pytest.mark.parametrize(
    ("measure", "by", "group", "threshold"),
    [
        ("min_accuracy", Everything("all"), "all", 0.95),
        ("min_accuracy", REGION, None, 0.9),
        ("min_accuracy", REGION, "east", 0.9),
        ("min_accuracy", REGION, "north", 0.85),
        ("min_accuracy", REGION, "south", 0.9),
        ("min_accuracy", REGION, "west", None),
        ("min_accuracy", ByScore("score_bin"), "[0,0.1)", None),
        ("max_ece", REGION, "north", 0.05),
        ("max_ece", REGION, "south", 0.1),
        ("max_ece", ByScore("score_bin"), "[0,0.1)", 0.05),
        ("max_ece", ByVotes("__votes__", "__votes__"), "11", None),
    ],
)
def test_the_threshold_of_a_group_replaces_that_of_its_grouping_and_that_of_the_model(
    tmp_path: Path, measure: Measure, by: Grouping, group: str | None, threshold: float | None
) -> None:
    alerts = load_settings(config_in(tmp_path, MODEL + OWN), {}).models["animals"].alerts
    assert alerts.threshold(measure, by, group) == threshold


@pytest.mark.parametrize(
    ("thresholds", "at", "problem"),
    [
        ("place: {}", "place", "unknown grouping 'place'; this model has all, score_bin, region, class"),
        (
            "class: {groups: {owl: {min_accuracy: 0.9}}}",
            "class.groups.owl",
            "'owl' is not a group of grouping class",
        ),
        (
            f"region: {{groups: {{{'n' * 65}: {{max_ece: 0.1}}}}}}",
            f"region.groups.{'n' * 65}",
            "a value of more than 64 characters (bounds.attribute_length) has no group of its own",
        ),
        (
            "region: {groups: {north: {min_accuracy: 1.5}}}",
            "region.groups.north.min_accuracy",
            "must be at most 1, but is 1.5",
        ),
        (
            "score_bin: {min_accuracy: 0.9}",
            "score_bin.min_accuracy",
            "groups by score or votes are expected to differ in accuracy; remove it",
        ),
        (
            "region: {min_reliability: 0.9}",
            "region.min_reliability",
            "people label items of all groups; set models.animals.alerts.min_reliability",
        ),
        (
            "region: {groups: {north: {confidence: 0.9}}}",
            "region.groups.north.confidence",
            "verdicts of all groups need the same; set models.animals.alerts.confidence",
        ),
    ],
)
def test_a_threshold_of_no_group_or_of_no_measure_of_a_group_is_refused_with_its_path(
    thresholds: str, at: str, problem: str
) -> None:
    (line,) = problem_lines(f"{MODEL}    alerts: {{groupings: {{{thresholds}}}}}\n")
    assert line.strip().startswith(f"models.animals.alerts.groupings.{at} (line 5): ")
    assert line.endswith(problem)


@pytest.mark.parametrize(
    ("alerts", "key"),
    [
        ("{groupings: {class: {min_accuracy: 0.9}}}", "min_accuracy"),
        ("{min_accuracy: 0.9, groupings: {region: {min_accuracy: 1}}}", "groupings.region.min_accuracy"),
        (
            "{min_accuracy: 0.9, groupings: {region: {groups: {north: {min_accuracy: 1.0}}}}}",
            "groupings.region.groups.north.min_accuracy",
        ),
        ("{min_accuracy: 0.9, groupings: {region: {min_accuracy: null}}}", "groupings.region.min_accuracy"),
    ],
)
def test_the_policy_certify_refuses_thresholds_that_no_certificate_can_show(alerts: str, key: str) -> None:
    (line,) = problem_lines(f"{MODEL}{CERTIFIED}    alerts: {alerts}\n")
    assert line.strip().startswith("models.animals.assessments.release.policy")
    assert line.endswith(f"certify requires `alerts.{key}`, above 0 and at most 0.999999")


def test_the_policy_certify_leaves_out_groups_without_a_threshold(tmp_path: Path) -> None:
    alerts = "    alerts: {groupings: {region: {groups: {north: {min_accuracy: 0.9}}}}}\n"
    assert load_settings(config_in(tmp_path, MODEL + CERTIFIED + alerts), {})
