"""What Label Studio needs to show items: a labelling configuration, and what a task shows of an item."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from service.domain.label_studio import CHOICE

Shown = Literal["image", "audio", "video", "text"]

ITEM = "item"
PAYLOAD = "payload"

FEW_CHOICES = 20
"""More than these are shown as a drop-down list."""

_ENDINGS: dict[Shown, tuple[str, ...]] = {
    "image": (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp", ".avif"),
    "audio": (".wav", ".mp3", ".ogg", ".flac", ".m4a", ".opus"),
    "video": (".mp4", ".webm", ".mov"),
}
_TAGS: dict[Shown, str] = {"image": "Image", "audio": "Audio", "video": "Video", "text": "Text"}


def kind_of(payload: Any, payload_uri: str | None) -> Shown:
    """Kind of view for an item, by the ending of its address; `text` if that says nothing."""
    address = payload_uri if payload_uri is not None else payload
    if not isinstance(address, str):
        return "text"
    for kind, endings in _ENDINGS.items():
        if address.startswith(f"data:{kind}/"):
            return kind
        if address.startswith(("http://", "https://", "s3://", "gs://", "/")) or payload_uri is not None:
            try:
                path = urlsplit(address).path
            except ValueError:
                return "text"
            if path.lower().endswith(endings):
                return kind
    return "text"


def text_of(payload: Any, payload_uri: str | None) -> str:
    """Text of an item in a task: its address, or its payload."""
    if payload_uri is not None:
        return payload_uri
    if isinstance(payload, str):
        return payload
    return "" if payload is None else json.dumps(payload, indent=2, ensure_ascii=False)


def labelling_configuration(classes: Sequence[str], kind: Shown) -> str:
    """The labelling configuration, XML: the item, and one choice among the classes, in their order."""
    view = ET.Element("View")
    shown = ET.SubElement(view, _TAGS[kind], name=ITEM, value=f"${PAYLOAD}")
    if kind == "image":
        shown.set("zoom", "true")
    choices = ET.SubElement(view, "Choices", name=CHOICE, toName=ITEM, choice="single", required="true")
    choices.set("layout", "select" if len(classes) > FEW_CHOICES else "vertical")
    for choice in choices_of(classes):
        ET.SubElement(choices, "Choice", value=choice)
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def choices_of(classes: Sequence[str]) -> dict[str, str]:
    """Class by the text that is shown for it, and that comes back in annotations.

    The text is the class itself, except for characters that XML cannot hold.
    """
    choices: dict[str, str] = {}
    for name in classes:
        plain = "".join(c if _in_xml(c) else "\N{REPLACEMENT CHARACTER}" for c in name)
        shown, number = plain, 2
        while shown in choices or (shown != name and shown in classes):
            shown, number = f"{plain} ({number})", number + 1
        choices[shown] = name
    return choices


def class_of(classes: Sequence[str], choice: str) -> str | None:
    """The class of a choice; None if there is no such class."""
    choices = choices_of(classes)
    trimmed = {shown.strip(): name for shown, name in choices.items()}
    return choices.get(choice, trimmed.get(choice))


def _in_xml(character: str) -> bool:
    code = ord(character)
    return code in {0x9, 0xA, 0xD} or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code > 0xFFFF  # noqa: PLR2004 - the production Char of XML 1.0
