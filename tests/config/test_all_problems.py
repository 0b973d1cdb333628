"""All problems of a configuration are listed at once, and none that only follows from another one."""

from __future__ import annotations

import pytest
from problem_lines import problem_lines

from service.config.document import parse_document
from service.config.loader import settings_of

MANY = """\
log_level: loud
log_level: info
models:
  animals:
    classes: [cat, dog]
    intervall: 0.9
    groupings:
      region: {by: attribute}
      class: {by: predicted_class}
    assessments:
      first: {grouping: regoin, budget: {labels: 0}}
      second: {grouping: clas, budget: {labels: 9}}
      third: {grouping: region, budget: {labels: 9}}
      fourth: {task: comparison, grouping: class, between: [cat, yak], budget: {labels: 9}}
  plants:
    classes: [oak, elm]
    costs: {default: 2}
kafka: {security: {protocol: ssl, key_file: me.key}}
vendors: {acme: {models: [animal], label_keys: [short]}}
"""


def test_all_problems_are_listed_at_once() -> None:
    lines = problem_lines(MANY, {"CREDENCE_REDIS__ULR": "x", "CREDENCE_LOG_LEVEL__X": "1"})
    assert sorted(line.split(":")[0].strip() for line in lines) == [
        "CREDENCE_LOG_LEVEL__X",
        "kafka.security.certificate_file (line 18)",
        "log_level (line 1)",
        "models.animals.assessments.first.budget.labels (line 11)",
        "models.animals.assessments.first.grouping (line 11)",
        "models.animals.assessments.second.grouping (line 12)",
        "models.animals.groupings.region (line 8)",
        "models.animals.intervall (line 6)",
        "models.plants.costs (line 17)",
        "redis.ulr (CREDENCE_REDIS__ULR)",
        "vendors.acme.label_keys.0 (line 19)",
    ]


def test_the_names_of_groupings_that_exist_are_given() -> None:
    [line] = [line for line in problem_lines(MANY) if "second" in line]
    assert line.endswith("unknown grouping 'clas'; this model has all, score_bin, region, class")


@pytest.mark.parametrize(
    ("keys", "paths"),
    [
        # The grouping of `ask` is not known, so nothing is said of the groups that it compares.
        (
            (
                "groupings: {g: {by: colour}}, "
                "assessments: {ask: {task: comparison, grouping: g, between: [cat, yak]"
            ),
            ["groupings.g.by"],
        ),
        ("assessments: {ask: {task: identification, grouping: '?'", ["assessments.ask.grouping"]),
        ("classes: [cat], assessments: {ask: {task: performance, positive_class: dog", ["classes"]),
    ],
)
def test_an_invalid_key_makes_no_other_one_faulty(keys: str, paths: list[str]) -> None:
    classes = "" if "classes" in keys else "classes: [cat, dog], "
    lines = problem_lines(f"models: {{animals: {{{classes}{keys}, budget: {{labels: 1}}}}}}}}}}")
    assert [line.split(" ")[2] for line in lines] == [f"models.animals.{path}" for path in paths]


WAITS = """\
models: {m: {classes: [a, b], unrequested_labels: {items: census, wait_days: %s}}}
bounds: {join_days: %s}
"""


def test_nothing_waits_longer_for_a_label_than_labels_are_joined() -> None:
    (line,) = problem_lines(WAITS % (31, 30))
    assert "models.m.unrequested_labels.wait_days (line 1)" in line
    assert line.endswith("must not be above bounds.join_days (30); raise that, or lower this")
    settings = settings_of(parse_document(WAITS % (30, 30), "credence.yaml"), "credence.yaml", {})
    assert settings.bounds.join_days == 30
    (line,) = problem_lines(WAITS % (60, "many"))
    assert "bounds.join_days (line 2)" in line
