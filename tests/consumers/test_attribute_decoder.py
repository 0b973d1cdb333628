"""Attribute values are decoded as the contract's own decoder does it, whatever else a text holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from consumers.formats.native import AttributeDecoder, decode_attributes
from service.domain.errors import BadMessage
from service.domain.messages import MOST_ATTRIBUTES

NAMES = ("camera", "région", "class")
TEXTS = [
    b"",
    b"{}",
    b'{"camera":"dock","class":"x"}',
    b'{"class":"x","camera":"dock"}',
    b'{"camera":"dock","camera":"gate"}',
    b'{"\\u0063amera":"d\\u00f6ck"}',
    '{"région":"süd"}'.encode(),
    b'{"camera":"dock","weather":"rain"}',
    b'{"camera":null}',
    b'{"camera":1}',
    b'{"weather":1}',
    b'{"":"empty"}',
    b'{"' + b"x" * 129 + b'":"long"}',
    b'{"camera":"\xff"}',
    b'{"weather":"\xff"}',
    b"null",
    b"[]",
    b"7",
    b'{"camera":"dock"',
    json.dumps({f"n{i}": "v" for i in range(MOST_ATTRIBUTES)}).encode(),
    json.dumps({f"n{i}": "v" for i in range(MOST_ATTRIBUTES + 1)}).encode(),
]


def expected(text: bytes, names: tuple[str, ...]) -> Any:
    try:
        decoded = decode_attributes(text)
    except BadMessage as error:
        return error.reason, error.detail
    return tuple(map(decoded.get, names))


def found(texts: list[bytes], names: tuple[str, ...]) -> list[Any]:
    values = AttributeDecoder(names).values(texts)
    return [(one.reason, one.detail) if isinstance(one, BadMessage) else one for one in values]


@pytest.mark.parametrize("text", TEXTS)
def test_one_text_is_decoded_as_by_the_contract(text: bytes) -> None:
    for names in (NAMES, NAMES[:1], ()):
        assert found([text], names) == [expected(text, names)]


def test_texts_are_decoded_each_by_itself_though_some_are_bad() -> None:
    assert found(TEXTS, NAMES) == [expected(text, NAMES) for text in TEXTS]


def test_no_more_attributes_are_taken_where_groupings_use_more() -> None:
    names = tuple(f"n{i}" for i in range(MOST_ATTRIBUTES + 1))
    text = json.dumps(dict.fromkeys(names, "v")).encode()
    assert found([text], names) == [expected(text, names)]
    assert found([b""], names) == [expected(b"", names)]
