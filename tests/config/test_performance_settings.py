"""Settings of assessments of performance, and of ensembles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from service.config.assessments import EnsembleSettings
from service.config.loader import load_settings
from service.config.settings import Settings
from service.domain.cells import MISSING, POSITIVE_SCORE, VOTES, Ensemble
from service.domain.errors import ConfigurationError
from service.domain.traffic_tables import tables

CURVE = {"task": "performance", "positive_class": "spam", "budget": {"labels": 50}}


def load(
    directory: Path, assessments: dict[str, Any], *, bounds: dict[str, int] | None = None, **model: Any
) -> Settings:
    path = directory / "credence.yaml"
    mail = {"classes": ["ham", "spam"], "assessments": assessments, **model}
    document = {"models": {"mail": mail}, "bounds": bounds or {}}
    path.write_text(yaml.safe_dump(document))
    return load_settings(path, {})


def refused(directory: Path, assessments: dict[str, Any], **model: Any) -> list[tuple[str, str]]:
    with pytest.raises(ConfigurationError) as caught:
        load(directory, assessments, **model)
    return list(caught.value.problems)


VOTED = {"task": "ensemble", "positive_class": "spam", "members": ["a", "b"], "budget": {"labels": 50}}


def test_an_ensemble_asks_by_its_votes(tmp_path: Path) -> None:
    settings = load(tmp_path, {"votes": VOTED})
    assessment = settings.models["mail"].assessments_of(EnsembleSettings)["votes"]
    assert (assessment.metric, assessment.asked_grouping, assessment.member_labels) == (
        "precision",
        VOTES,
        100,
    )
    space = settings.cell_space("mail")
    assert space.groupings[VOTES].attribute == VOTES
    assert space.ensemble == Ensemble(("a", "b"), "spam")


@pytest.mark.parametrize(
    ("predicted", "votes", "pattern"),
    [
        ("spam", {"a": "spam", "b": "ham"}, "110"),
        ("ham", {"b": "spam", "a": "ham", "c": "spam"}, "001"),
        ("spam", {"a": "spam"}, MISSING),
    ],
)
def test_a_pattern_tells_who_says_that_it_is_positive(
    predicted: str, votes: dict[str, str], pattern: str
) -> None:
    assert Ensemble(("a", "b"), "spam").pattern(predicted, votes) == pattern


@pytest.mark.parametrize(
    ("changes", "path", "shown"),
    [
        ({"members": ["a", "a"]}, "votes.members", "differ from one another"),
        ({"members": None}, "votes.members", "must be a list"),
        ({"positive_class": "eggs"}, "votes.positive_class", "must be one of the model's classes"),
        ({"grouping": "score_bin"}, "votes.grouping", "always uses grouping `all`"),
        ({"targets": {"recall": 0.9}}, "votes.targets", "only the target `precision`"),
        ({"threshold": 0.5}, "votes.threshold", "only with performance"),
        ({"task": "estimation"}, "votes.members", "only with ensemble"),
    ],
)
def test_what_makes_no_sense_of_an_ensemble_is_refused(
    tmp_path: Path, changes: dict[str, Any], path: str, shown: str
) -> None:
    problems = refused(tmp_path, {"votes": VOTED | changes})
    assert any(at == f"models.mail.assessments.{path}" and shown in problem for at, problem in problems), (
        problems
    )


def test_vote_patterns_all_have_rows_whatever_the_bound_on_values(tmp_path: Path) -> None:
    voted = {"votes": VOTED | {"members": ["a", "b", "c", "d", "e"]}}
    space = load(tmp_path, voted, bounds={"attribute_values": 3}).cell_space("mail")
    (votes,) = [table for table in tables(space) if table.attribute == VOTES]
    assert votes.rows == 64 + 2


def test_vote_patterns_that_would_be_too_long_are_refused(tmp_path: Path) -> None:
    [(path, shown)] = refused(tmp_path, {"votes": VOTED}, bounds={"attribute_length": 2})
    assert path == "bounds.attribute_length"
    assert "at least 3" in shown


def test_two_ensembles_of_one_model_are_refused(tmp_path: Path) -> None:
    problems = refused(tmp_path, {"votes": VOTED, "other": VOTED | {"members": ["a"]}})
    assert [path for path, _ in problems] == ["models.mail.assessments"]


def test_other_members_of_an_ensemble_change_the_meaning_of_the_table_of_votes_alone(tmp_path: Path) -> None:
    one, other = (
        load(tmp_path, {"votes": VOTED | {"members": members}}).cell_space("mail")
        for members in (["a", "b"], ["a", "c"])
    )
    assert one.fingerprint(16, 7.0) == other.fingerprint(16, 7.0)
    changed = [a.attribute for a, b in zip(tables(one), tables(other), strict=True) if a != b]
    assert changed == [VOTES]


def test_it_asks_by_the_positive_classs_score(tmp_path: Path) -> None:
    settings = load(tmp_path, {"curve": CURVE})
    assessment = settings.models["mail"].assessments["curve"]
    assert (assessment.metric, assessment.asked_grouping) == ("precision_recall", POSITIVE_SCORE)
    assert settings.cell_space("mail").groupings[POSITIVE_SCORE].positive == "spam"


def test_a_model_without_it_has_no_such_grouping(tmp_path: Path) -> None:
    settings = load(tmp_path, {"plain": {"budget": {"labels": 5}}})
    assert POSITIVE_SCORE not in settings.cell_space("mail").groupings


def test_others_may_ask_by_it_too(tmp_path: Path) -> None:
    load(tmp_path, {"curve": CURVE, "bins": {"grouping": POSITIVE_SCORE, "budget": {"labels": 5}}})


@pytest.mark.parametrize(
    ("changes", "model", "path", "shown"),
    [
        ({"positive_class": "eggs"}, {}, "curve.positive_class", "must be one of the model's classes"),
        ({"positive_class": None}, {}, "curve.positive_class", "must be text"),
        ({}, {"classes": ["ham", "spam", "eggs"]}, "curve.task", "requires a binary classifier"),
        ({}, {"score_bins": [0.2, 0.5]}, "curve.task", "symmetric about 0.5"),
        ({"grouping": "score_bin"}, {}, "curve.grouping", "always uses grouping `all`"),
        ({"metric": "accuracy"}, {}, "curve.metric", "task performance accepts precision_recall"),
        ({"task": "estimation"}, {}, "curve.positive_class", "only with performance, ensemble"),
        ({"targets": {"precision": 1.5}}, {}, "curve.targets.precision", "at most 1"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, changes: dict[str, Any], model: dict[str, Any], path: str, shown: str
) -> None:
    problems = refused(tmp_path, {"curve": CURVE | changes}, **model)
    assert any(at == f"models.mail.assessments.{path}" and shown in problem for at, problem in problems), (
        problems
    )


def test_two_positive_classes_of_one_model_are_refused(tmp_path: Path) -> None:
    problems = refused(tmp_path, {"curve": CURVE, "other": CURVE | {"positive_class": "ham"}})
    assert problems == [
        (
            "models.mail.assessments",
            "all performance assessments of a model must have the same `positive_class`",
        )
    ]


def test_the_names_of_built_in_groupings_are_reserved(tmp_path: Path) -> None:
    [(path, shown)] = refused(tmp_path, {}, groupings={POSITIVE_SCORE: {"by": "predicted_class"}})
    assert path == f"models.mail.groupings.{POSITIVE_SCORE}"
    assert "reserved" in shown


def test_a_group_holds_what_either_prediction_says_of_the_positive_class(tmp_path: Path) -> None:
    space = load(tmp_path, {"curve": CURVE}).cell_space("mail")
    found = space.class_groups(POSITIVE_SCORE)
    assert found is not None
    names, groups = found
    classes, bins = np.array([1, 0, 1, 0]), space.bins(np.array([0.93, 0.93, 0.41, 0.58]))
    assert [names[g] for g in groups[classes, bins]] == [
        "[0.9,0.97)",
        "[0.03,0.1)",
        "[0.4,0.5)",
        "[0.4,0.5)",
    ]


def test_score_bins_are_fine_at_both_ends_unless_they_are_configured(tmp_path: Path) -> None:
    default = load(tmp_path, {"curve": CURVE}).models["mail"].score_edges
    assert default[:9] == (1e-6, 1e-5, 1e-4, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
    assert np.allclose(default, 1 - np.array(default)[::-1])
    coarse = load(tmp_path, {"curve": CURVE}, score_bins=4).models["mail"].score_edges
    assert coarse == (0.25, 0.5, 0.75)
