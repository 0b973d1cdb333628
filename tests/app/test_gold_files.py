"""Files of gold items: what is read, and what is refused with the key and the line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from service.app import gold_files
from service.app.cli import main
from service.app.gold_files import read_gold
from service.config.settings import Settings
from service.domain.errors import ConfigurationError
from service.store.records import GoldItem

KEY = "models.mail.labels_per_item.gold.file"


def row(item: str = "a", **fields: Any) -> dict[str, Any]:
    return {"item_id": item, "predicted_class": "ham", "score": 0.9, "true_class": "spam", **fields}


def settings_of(path: Path) -> Settings:
    model = {"classes": ["ham", "spam"], "labels_per_item": {"gold": {"file": str(path)}}}
    return Settings.model_validate({"models": {"mail": model}, "bounds": {"payload_bytes": 40}})


def read(folder: Path, *lines: str | dict[str, Any], name: str = "gold.jsonl") -> Sequence[GoldItem]:
    path = folder / name
    path.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines))
    return read_gold(settings_of(path))["mail"]


def refusal(folder: Path, *lines: str | dict[str, Any], name: str = "gold.jsonl") -> str:
    with pytest.raises(ConfigurationError) as caught:
        read(folder, *lines, name=name)
    assert {path for path, _ in caught.value.problems} == {KEY}
    return "; ".join(problem for _, problem in caught.value.problems)


def test_a_row_is_a_prediction_with_its_true_class(tmp_path: Path) -> None:
    payload = {"text": "win"}
    first, second = read(
        tmp_path, row(payload=payload, attributes={"region": "eu"}), row("b", true_class="ham")
    )
    assert (first.record.item_id, first.record.predicted_class, first.true_class) == ("a", "ham", "spam")
    assert json.loads(first.record.payload) == payload
    assert first.record.attributes == {}, "no request has them"
    assert second.true_class == "ham"


def test_csv_is_read_too(tmp_path: Path) -> None:
    (item,) = read(tmp_path, "item_id,predicted_class,score,true_class", "a,ham,0.9,spam", name="gold.csv")
    assert (item.record.score, item.true_class) == (0.9, "spam")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"true_class": None}, "line 2: true_class: it is missing"),
        ({"true_class": "owl"}, "line 2: true_class: not a class of the model"),
        ({"predicted_class": "owl"}, "line 2: predicted_class is not in the model's label set"),
        ({"score": None}, "line 2: give predicted_class and score, or probabilities"),
        ({"score": 2}, "line 2: the score must lie in [0, 1]"),
        ({"item_id": "first"}, "line 2: item_id: an earlier row has the same item"),
        ({"payload": "x" * 50}, "line 2: the payload is over 40 bytes"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    assert refusal(tmp_path, row("first"), row() | fields) == problem


def test_a_row_that_is_no_json_is_refused_with_its_line(tmp_path: Path) -> None:
    assert refusal(tmp_path, row(), "{secret").startswith("line 2: ")
    assert "secret" not in refusal(tmp_path, row(), "{secret")


@pytest.mark.parametrize(
    ("name", "lines", "problem"),
    [
        ("gold.txt", ["x"], "the name must end with .jsonl, .csv or .parquet"),
        ("gold.jsonl", [], "no items"),
        ("gold.csv", ["item_id,predicted_class,score", "a,ham,0.9"], "there is no column true_class"),
    ],
)
def test_a_file_without_items_is_refused(tmp_path: Path, name: str, lines: list[str], problem: str) -> None:
    assert refusal(tmp_path, *lines, name=name).endswith(problem)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"{KEY}: .*no such file or directory"):
        read_gold(settings_of(tmp_path / "gold.jsonl"))


def test_a_file_with_too_many_items_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gold_files, "MOST_GOLD_ITEMS", 2)
    assert len(read(tmp_path, row(), row("b"))) == 2
    assert refusal(tmp_path, row(), row("b"), row("c")).endswith("more than 2 items")


def configured(folder: Path, *rows: dict[str, Any]) -> Path:
    gold, config = folder / "gold.jsonl", folder / "credence.yaml"
    gold.write_text("\n".join(map(json.dumps, rows)))
    policy = f"{{gold: {{file: {gold}, share: 0.05}}}}"
    config.write_text(f"models: {{mail: {{classes: [ham, spam], labels_per_item: {policy}}}}}")
    return config


def test_a_check_says_how_many_items_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = configured(tmp_path, row(), row("b", true_class="ham"))
    assert main(["check", "--config", str(config)]) == 0
    assert (
        "  gold items: 2, of which the model predicts 1 correctly; each is requested once, 5.0% of the "
        "requests for new items\n"
    ) in capsys.readouterr().out


@pytest.mark.parametrize("command", ["check", "run", "schedule"])
def test_a_process_that_requests_labels_does_not_start_with_a_bad_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    config = configured(tmp_path, row(), row("b", true_class="owl"))
    assert main([command, "--config", str(config)]) == 2
    assert f"{KEY}: line 2: true_class: not a class of the model" in capsys.readouterr().err
