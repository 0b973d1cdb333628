"""What consumers would refuse of a topic is not proposed by `credence init`, or is a warning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from samples import CLASSES, Init, Proposed, rows, write_jsonl

COUNT = 60
Row = dict[str, Any]
Propose = Callable[..., Proposed]


@pytest.fixture
def propose(init: Init, tmp_path: Path) -> Propose:
    """The command of records in a file."""

    def run(found: list[Row], *options: str) -> Proposed:
        return init(write_jsonl(tmp_path / "records.jsonl", found), "--topic", "scores", *options)

    return run


def records(**fields: Callable[[int], Any]) -> list[Row]:
    """Records of another shape, with further fields by the record's number; None leaves a field out."""
    found = [
        {"id": n, "label": row["predicted_class"], "score": row["score"], "region": row["region"]}
        | {name: value(n) for name, value in fields.items()}
        for n, row in enumerate(rows(COUNT))
    ]
    return [{name: value for name, value in each.items() if value is not None} for each in found]


def responses(*unused: Row) -> list[Row]:
    """Inference responses with the probabilities of two rows, and further tensors."""
    tensor = {
        "name": "probabilities",
        "datatype": "FP64",
        "shape": [2, 3],
        "data": [0.2, 0.3, 0.5, 0.6, 0.3, 0.1],
    }
    return [{"model_name": "animals", "id": f"r{n}", "outputs": [tensor, *unused]} for n in range(3)]


def test_lists_that_are_nested_deeply_are_a_bad_record_with_its_reason(propose: Propose) -> None:
    deep: Any = "north"
    for _ in range(600):
        deep = [deep]
    proposed = propose(records(deep=lambda n: deep if n == 5 else "north"))
    assert proposed.code == 0
    assert "1 cannot be read and were left out" in proposed.comments
    assert "more than 8 lists are nested in one another" in proposed.comments


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00.123", "2026-01-31 12:00:00", "2026-01-31"])
def test_times_that_mappings_refuse_are_not_the_time(propose: Propose, text: str) -> None:
    proposed = propose(records(timestamp=lambda _: text))
    assert "time" not in yaml.safe_load(proposed.text)["kafka"]["mapping"]
    assert "$.timestamp is not taken: some of its times have no time zone" in proposed.comments
    assert "predictions then count as of the time of their records" in proposed.comments


def test_a_prediction_has_at_most_64_attributes(propose: Propose) -> None:
    proposed = propose(records(**{f"a{each}": lambda n: "xy"[n % 2] for each in range(70)}))
    assert len(yaml.safe_load(proposed.text)["kafka"]["mapping"]["attributes"]) == 64
    assert "$.a69: a prediction has at most 64 attributes" in proposed.comments


def test_a_shape_of_many_numbers_is_not_multiplied(propose: Propose) -> None:
    many = {"name": "label", "datatype": "BYTES", "shape": [10**18] * 40_000, "data": []}
    assert propose(responses(many)).model["tensors"] == {}


def test_integers_beside_probabilities_are_not_read_whatever_their_name(propose: Propose) -> None:
    places = {"name": "predicted_class", "datatype": "INT64", "shape": [2], "data": [2, 0]}
    proposed = propose(responses(places), "--classes", ",".join(CLASSES))
    assert proposed.model["tensors"] == {"predicted_class": "no_predicted_class"}
    assert "so that tensor predicted_class is not read" in proposed.comments


def test_a_topic_that_is_read_as_proposed_says_so(propose: Propose) -> None:
    for found in (records(), responses()):
        proposed = propose(found)
        assert f"all of the first {len(found)} sampled records are used" in proposed.comments
        assert "WARNING" not in proposed.comments


def test_records_that_would_be_refused_are_counted_by_reason(propose: Propose, tmp_path: Path) -> None:
    output = tmp_path / "my conf.yaml"
    found = records(region=lambda n: ["north"] if n % 5 == 0 else "north", model=lambda n: "ab"[n % 3 == 0])
    proposed = propose(found, "--model", "a", "--attributes", "$.region", "--output", str(output))
    for text in (proposed.error, output.read_text().replace("\n# ", " ")):
        assert "WARNING: 28 of 60 sampled records would be refused" in text
        assert "unknown_model (16), such as record" in text
        assert "invalid_field (12), such as record" in text
        assert "attributes: expected a string or a number" in text
        assert "Models that are not here need a section in `models`" in text
    assert f"check --config '{output}'" in proposed.text
