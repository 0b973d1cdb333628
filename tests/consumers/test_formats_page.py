"""The examples of docs/formats.md do what the page says."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from consumers.formats.records import decode_records
from service.app.format_wiring import prediction_formats
from service.config.document import parse_document
from service.config.loader import settings_of
from service.config.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def block(comment: str) -> str:
    """The text of the block below a comment."""
    found = re.search(rf"<!-- {comment} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, comment
    return found[1]


def configuration(comment: str) -> Settings:
    return settings_of(parse_document(block(comment), comment), comment, {})


@dataclass
class Record:
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = (("host", b"gate-3"),)
    key: bytes | None = None


def test_the_record_of_the_page_is_read_by_its_mapping() -> None:
    formats = prediction_formats(configuration("configuration: mapping"))
    record = Record(block("record: mapping").encode())
    (found,) = decode_records([record], message_bytes=10_000, formats=formats).predictions
    assert (found.model, found.item_id, found.predicted_class, found.score) == ("sorter", "17", "owl", 0.93)
    assert json.loads(bytes(found.attributes)) == {"region": "north", "host": "gate-3"}
    assert found.time is not None
    assert found.time.isoformat() == "2026-01-31T12:00:00+00:00"


@pytest.mark.parametrize("name", ["configuration: mapping", "configuration: labels"])
def test_the_configurations_of_the_page_are_valid(name: str) -> None:
    assert configuration(name).models
