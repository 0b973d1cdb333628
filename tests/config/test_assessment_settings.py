"""Settings of assessments by task: which keys go with which task, and what is said of those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from service.app.docgen.configuration import configuration_page
from service.config.assessments import ASSESSMENTS, EstimationSettings
from service.config.loader import load_settings
from service.config.settings import Settings
from service.domain.assessments import METRICS, MOST_TARGET, Task
from service.domain.errors import ConfigurationError

REQUIRED: dict[Task, dict[str, Any]] = {
    "estimation": {},
    "identification": {"grouping": "class"},
    "comparison": {"grouping": "class", "between": ["ham", "spam"]},
    "performance": {"positive_class": "spam"},
    "ensemble": {"positive_class": "spam", "members": ["a", "b"]},
    "challenge": {"challenger": "v2"},
    "error_rates": {"positive_class": "spam", "grouping": "site"},
}
AT = "models.mail.assessments.ask"

every_task = pytest.mark.parametrize("task", REQUIRED)


def load(directory: Path, *, name: str = "ask", **assessment: Any) -> Settings:
    path = directory / "credence.yaml"
    model = {
        "classes": ["ham", "spam"],
        "groupings": {
            "class": {"by": "predicted_class"},
            "site": {"by": "attribute", "attribute": "site"},
        },
        "assessments": {name: {"budget": {"labels": 50}, **assessment}},
    }
    path.write_text(yaml.safe_dump({"models": {"mail": model}}), encoding="utf-8")
    return load_settings(path, {})


def refused(directory: Path, **assessment: Any) -> list[tuple[str, str]]:
    with pytest.raises(ConfigurationError) as caught:
        load(directory, **assessment)
    return list(caught.value.problems)


def test_every_task_has_settings() -> None:
    assert list(ASSESSMENTS) == list(METRICS) == list(REQUIRED)


@every_task
def test_the_settings_are_those_of_the_task(tmp_path: Path, task: Task) -> None:
    settings = load(tmp_path, task=task, **REQUIRED[task])
    assert type(settings.models["mail"].assessments["ask"]) is ASSESSMENTS[task]


def test_an_assessment_without_a_task_is_an_estimation(tmp_path: Path) -> None:
    assert isinstance(load(tmp_path).models["mail"].assessments["ask"], EstimationSettings)


@every_task
def test_settings_that_are_written_down_can_be_read_again(tmp_path: Path, task: Task) -> None:
    settings = load(tmp_path, task=task, **REQUIRED[task])
    assert Settings.model_validate(settings.model_dump()) == settings


@pytest.mark.parametrize(
    ("task", "keys", "tasks"),
    [
        ("estimation", {"top_m": 1}, "identification"),
        ("estimation", {"region": 0.1}, "comparison"),
        ("identification", {"threshold": 0.5}, "performance"),
        ("comparison", {"extreme": "lowest"}, "identification"),
        ("performance", {"members": ["a"]}, "ensemble"),
        ("ensemble", {"margin": 0.1}, "challenge"),
        ("challenge", {"targets": {"precision": 0.9}}, "performance, ensemble"),
        (
            "challenge",
            {"policy": "random"},
            "estimation, identification, comparison, performance, error_rates",
        ),
    ],
)
def test_a_key_of_another_task_is_refused_with_the_tasks_that_accept_it(
    tmp_path: Path, task: Task, keys: dict[str, Any], tasks: str
) -> None:
    [key] = keys
    problem = f"not accepted with `task: {task}`, only with {tasks}"
    assert refused(tmp_path, task=task, **REQUIRED[task], **keys) == [(f"{AT}.{key}", problem)]


@every_task
def test_a_key_of_no_task_is_unknown(tmp_path: Path, task: Task) -> None:
    problems = refused(tmp_path, task=task, **REQUIRED[task], memebers=["a"])
    [(path, problem)] = problems
    assert path == f"{AT}.memebers"
    assert problem.startswith("unknown key; did you mean `")
    assert problem.endswith("members`?")


def test_a_key_of_an_assessment_is_unknown_in_its_sections(tmp_path: Path) -> None:
    [(path, problem)] = refused(tmp_path, budget={"labels": 1, "top_m": 1})
    assert path == f"{AT}.budget.top_m"
    assert problem.endswith("check the indentation: it belongs to models.<name>.assessments.<name>")


@pytest.mark.parametrize(
    ("task", "key"),
    [(task, key) for task, keys in REQUIRED.items() for key in keys if key != "grouping"],
)
def test_a_key_that_a_task_needs_is_named_where_it_is_absent(tmp_path: Path, task: Task, key: str) -> None:
    others = {name: value for name, value in REQUIRED[task].items() if name != key}
    assert refused(tmp_path, task=task, **others) == [(f"{AT}.{key}", "required, but missing; add it")]


@pytest.mark.parametrize("task", ["guessing", None, ["estimation"], True])
def test_an_unknown_task_is_refused_with_those_that_there_are(tmp_path: Path, task: Any) -> None:
    [(path, problem)] = refused(tmp_path, task=task)
    assert path == f"{AT}.task"
    known = "`estimation`, `identification`, `comparison`, `performance`, `ensemble`, `challenge` or "
    assert problem == f"must be {known}`error_rates`"


def test_an_assessment_may_be_called_like_a_task(tmp_path: Path) -> None:
    [(path, _)] = refused(tmp_path, name="estimation", colour="red")
    assert path == "models.mail.assessments.estimation.colour"


def test_an_assessment_that_is_no_section_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "credence.yaml"
    path.write_text("models: {mail: {classes: [ham, spam], assessments: {estimation: 5}}}")
    with pytest.raises(ConfigurationError) as caught:
        load_settings(path, {})
    assert [key for key, _ in caught.value.problems] == ["models.mail.assessments.estimation"]


def test_the_page_says_which_tasks_accept_a_key() -> None:
    [row] = [line for line in configuration_page().splitlines() if ".assessments.<name>.top_m`" in line]
    assert "| with identification: number of groups to find |" in row


def test_the_page_says_nothing_of_tasks_where_all_accept_a_key() -> None:
    [row] = [
        line for line in configuration_page().splitlines() if ".assessments.<name>.max_attempts`" in line
    ]
    assert "| maximum number of requests for the same item |" in row


@pytest.mark.parametrize(
    ("model", "grouping", "said"),
    [
        ({}, "class", "alerts.min_accuracy"),
        ({"alerts": {"min_accuracy": 1.0}}, "class", "alerts.min_accuracy"),
        ({"alerts": {"min_accuracy": 1 - 1e-7}}, "class", "at most 0.999999"),
        (
            {
                "alerts": {"min_accuracy": MOST_TARGET},
                "labels_per_item": {"reliability": 0.9, "max_error": 0.2},
            },
            "class",
            "alerts.min_accuracy",
        ),
        ({"alerts": {"min_accuracy": 0.9}}, "score_bin", "not by score"),
        (
            {"alerts": {"min_accuracy": 0.9}, "labels_per_item": {"most": 2}},
            "class",
            "labels_per_item.max_error",
        ),
    ],
)
def test_certify_is_refused_where_no_certificate_is_possible(
    tmp_path: Path, model: dict[str, Any], grouping: str, said: str
) -> None:
    problem = refused_policy(tmp_path, model, {"grouping": grouping})
    assert said in problem


def test_certify_is_refused_for_a_comparison_of_two_groups(tmp_path: Path) -> None:
    asked = {"task": "comparison", "grouping": "class", "between": ["ham", "spam"]}
    assert "all groups" in refused_policy(tmp_path, {"alerts": {"min_accuracy": 0.9}}, asked)


def refused_policy(directory: Path, model: dict[str, Any], asked: dict[str, Any]) -> str:
    """What is said of an assessment whose policy is `certify`."""
    path = directory / "credence.yaml"
    mail = {
        "classes": ["ham", "spam"],
        "groupings": {
            "class": {"by": "predicted_class"},
            "site": {"by": "attribute", "attribute": "site"},
        },
        "assessments": {"ask": {"budget": {"labels": 50}, "policy": "certify", **asked}},
    }
    path.write_text(yaml.safe_dump({"models": {"mail": mail | model}}), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_settings(path, {})
    [(at, problem)] = caught.value.problems
    assert at == f"{AT}.policy"
    return problem


def test_error_rates_need_a_grouping_by_attribute(tmp_path: Path) -> None:
    problems = refused(tmp_path, task="error_rates", positive_class="spam", grouping="class")
    assert problems == [(f"{AT}.grouping", "task error_rates requires a grouping with `by: attribute`")]


def test_the_positive_class_of_error_rates_is_one_of_the_model(tmp_path: Path) -> None:
    [(path, problem)] = refused(tmp_path, task="error_rates", positive_class="eggs", grouping="site")
    assert path == f"{AT}.positive_class"
    assert problem == "must be one of the model's classes: ['ham', 'spam']"


@pytest.mark.parametrize("policy", ["thompson", "certify"])
def test_labels_for_error_rates_are_adaptive_or_random(tmp_path: Path, policy: str) -> None:
    problems = refused(tmp_path, task="error_rates", **REQUIRED["error_rates"], policy=policy)
    assert problems == [(f"{AT}.policy", "task error_rates accepts adaptive, random")]


def test_a_limit_of_something_that_is_no_rate_is_refused(tmp_path: Path) -> None:
    limits = {"limits": {"accuracy": 0.5}}
    [(path, _)] = refused(tmp_path, task="error_rates", **REQUIRED["error_rates"], **limits)
    assert path.startswith(f"{AT}.limits")
