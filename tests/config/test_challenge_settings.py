"""Settings of challenges: what is asked, what makes no sense, and what is distinguished."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from service.config.assessments import ChallengeSettings
from service.config.loader import load_settings
from service.config.settings import Settings
from service.domain.cells import AGREE, CHALLENGE, DISAGREE, MISSING, Challenge
from service.domain.errors import ConfigurationError
from service.domain.traffic_tables import tables

CHALLENGED = {"task": "challenge", "challenger": "v2", "budget": {"labels": 50}}


def load(
    directory: Path, assessments: dict[str, Any], groupings: dict[str, Any] | None = None, **more: Any
) -> Settings:
    path = directory / "credence.yaml"
    model = {"classes": ["ham", "spam"], "assessments": assessments, "groupings": groupings or {}}
    path.write_text(yaml.safe_dump({"models": {"mail": model}, **more}), encoding="utf-8")
    return load_settings(path, {})


def refused(directory: Path, assessments: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(ConfigurationError) as caught:
        load(directory, assessments, **more)
    return list(caught.value.problems)


def test_a_challenge_asks_by_agreement(tmp_path: Path) -> None:
    settings = load(tmp_path, {"next": CHALLENGED})
    asked = settings.models["mail"].assessments_of(ChallengeSettings)["next"]
    assert (asked.metric, asked.asked_grouping) == ("accuracy", CHALLENGE)
    assert (asked.margin, asked.disagreement_share) == (0.01, 0.8)
    space = settings.cell_space("mail")
    assert space.challenge == Challenge("v2")
    assert space.attributes == (CHALLENGE,)


@pytest.mark.parametrize(
    ("votes", "pattern"),
    [({"v2": "spam"}, AGREE), ({"v2": "ham", "v3": "spam"}, DISAGREE), ({"v3": "spam"}, MISSING)],
)
def test_a_pattern_tells_whether_the_challenger_agrees(votes: dict[str, str], pattern: str) -> None:
    assert Challenge("v2").pattern("spam", votes) == pattern


@pytest.mark.parametrize(
    ("changes", "path", "found"),
    [
        ({"challenger": None}, "next.challenger", "must be text, but is empty"),
        ({"grouping": CHALLENGE}, "next.grouping", "must start with a letter or a digit"),
        ({"task": "estimation"}, "next.challenger", "only with challenge"),
        ({"task": "estimation", "margin": 0.1}, "next.margin", "only with challenge"),
        ({"threshold": 0.5}, "next.threshold", "only with performance"),
    ],
)
def test_what_makes_no_sense_of_a_challenge_is_refused(
    tmp_path: Path, changes: dict[str, Any], path: str, found: str
) -> None:
    problems = refused(tmp_path, {"next": CHALLENGED | changes})
    assert any(at == f"models.mail.assessments.{path}" and found in problem for at, problem in problems), (
        problems
    )


def test_a_model_has_one_challenger_at_a_time_and_no_ensemble_beside_it(tmp_path: Path) -> None:
    ensemble = {"task": "ensemble", "positive_class": "spam", "members": ["a"], "budget": {"labels": 50}}
    for other in (CHALLENGED | {"challenger": "v3"}, ensemble):
        problems = refused(tmp_path, {"next": CHALLENGED, "other": other})
        assert [path for path, _ in problems] == ["models.mail.assessments"]


def test_a_bound_that_would_fold_agreement_is_refused(tmp_path: Path) -> None:
    load(tmp_path, {"next": CHALLENGED}, bounds={"attribute_length": 11, "attribute_values": 1})
    problems = refused(tmp_path, {"next": CHALLENGED}, bounds={"attribute_length": 10})
    assert [path for path, _ in problems] == ["bounds.attribute_length"]


def test_another_challenger_has_tables_of_its_own_and_leaves_the_others(tmp_path: Path) -> None:
    groupings = {"region": {"by": "attribute", "attribute": "region"}}
    assessments = [{"next": CHALLENGED | {"challenger": name}} for name in ("v2", "v3")]
    one, other = (load(tmp_path, each, groupings).cell_space("mail") for each in assessments)
    assert one.fingerprint(16, 7.0) == other.fingerprint(16, 7.0)
    assert [(a.attribute, a.columns) for a, b in zip(tables(one), tables(other), strict=True) if a != b] == [
        (CHALLENGE, "class_bins"),
        ("region", "challenge"),
    ]
