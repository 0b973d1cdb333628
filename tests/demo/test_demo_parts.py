"""The demo's producer and labeller as commands of their own; tests/stack/test_compose.py plays them."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from service.app.cli import main
from service.demo.journal import Journal
from service.demo.producer import Classifier, PredictionStream
from service.demo.world import CLASSES, World, item_number, load_split


@pytest.mark.parametrize("model", ["sorter", "digits"])
@pytest.mark.parametrize("part", ["producer", "labeller"])
def test_a_part_refuses_a_configuration_without_the_demos_model(
    part: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "credence.yaml"
    config.write_text(f"models: {{{model}: {{classes: [cat, dog]}}}}")
    assert main(["demo", part, "--config", str(config)]) == 2
    assert "models.digits: the demo needs this model, with the classes 0, 1, 2" in capsys.readouterr().err


def test_the_labeller_does_not_answer_for_vendors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "credence.yaml"
    vendors = f"{{acme: {{label_keys: [{'a' * 64}]}}}}"
    config.write_text(f"models: {{digits: {{classes: {json.dumps(CLASSES)}}}}}\nvendors: {vendors}")
    assert main(["demo", "labeller", "--config", str(config)]) == 2
    assert "vendors: the demo's labeller is none of them" in capsys.readouterr().err


def test_a_stream_may_begin_with_any_item_so_that_none_comes_again(tmp_path: Path) -> None:
    digits = load_split(1)
    classifier = Classifier(digits.training_images, digits.training_classes)
    first = 538_000_000_000
    with Journal(tmp_path / "journal") as journal:
        stream = PredictionStream(
            World(1, digits), classifier, journal, degrade_after_seconds=1.0, number=first
        )
        stream.start(0.0)
        records = [msgspec.json.decode(value) for _, value, _ in stream.records(0.1, 30)]
    messages = [each for record in records for each in (record if isinstance(record, list) else [record])]
    assert [item_number(message["item_id"]) for message in messages] == list(range(first, first + 30))
