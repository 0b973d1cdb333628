"""Settings of gold items, and of the bound that is learned from them."""

from __future__ import annotations

from typing import Any

import pytest

from service.config.document import Document
from service.config.loader import settings_of
from service.config.settings import Settings
from service.domain.errors import ConfigurationError

GOLD = {"file": "gold.jsonl"}
AT = "models.m.labels_per_item"


def settings(policy: dict[str, Any], **variables: str) -> Settings:
    content = {"models": {"m": {"classes": ["cat", "dog"], "labels_per_item": policy}}}
    return settings_of(Document(content, {}, []), "test", variables)


def test_labels_may_be_wrong_where_gold_items_are_requested() -> None:
    policy = settings({"gold": GOLD}).models["m"].labels_per_item
    assert (policy.may_err, policy.several, policy.has_evidence) == (True, False, False)
    assert policy.gold is not None
    assert policy.gold.share == 0.02


def test_a_learned_bound_is_evidence_and_states_nothing() -> None:
    policy = settings({"gold": GOLD, "max_error": "learned"}).models["m"].labels_per_item
    assert (policy.has_evidence, policy.learns_bound, policy.wrong_labels) == (True, True, 0.0)


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({"max_error": "learned"}, (AT, "`max_error: learned` requires `gold`")),
        (
            {"most": 3, "max_error": 0.7},
            (f"{AT}.max_error", "must be more than 0 and less than 0.5, or `learned`, but is 0.7"),
        ),
        ({"gold": GOLD | {"share": 0}}, (f"{AT}.gold.share", "must be more than 0, but is 0")),
    ],
)
def test_what_cannot_be_is_refused(policy: dict[str, Any], problem: tuple[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        settings(policy)
    assert caught.value.problems == [problem]


def test_a_variable_names_the_file() -> None:
    found = settings({"most": 3}, CREDENCE_MODELS__M__LABELS_PER_ITEM__GOLD__FILE="/gold/m.csv")
    gold = found.models["m"].labels_per_item.gold
    assert gold is not None
    assert gold.file == "/gold/m.csv"
