"""The rooms of the code as a picture and a table in `docs/architecture.md`: `python -m docs.house`.

Floors are those of the layered contract in `pyproject.toml`, and arrows are the imports between rooms.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from pathlib import Path

from service.app.docgen.generated_files import add_check_option, write_or_check

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).parent / "architecture.md"
BEGIN, END = "<!-- rooms: python -m docs.house -->\n", "<!-- end of rooms -->\n"
CONSUMERS = "consumers"

WAYS = {
    "prediction": (("consumers", "domain"), ("consumers", "store")),
    "label": (("consumers", "store"),),
    "round": (("app", "monitoring"), ("monitoring", "statistics"), ("monitoring", "store")),
    "metric": (("serving", "monitoring"),),
}
"""Calls from room to room on each way."""


def folder(room: str) -> Path:
    """Where the modules of a room are."""
    return ROOT / (CONSUMERS if room == CONSUMERS else f"service/{room}")


def floors() -> list[list[str]]:
    """Rooms by floor, the lowest first; consumers are on the floor of monitoring."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("exhaustive"))
    found = [layer.replace("|", " ").replace(":", " ").split() for layer in reversed(layers)]
    next(rooms for rooms in found if "monitoring" in rooms).insert(0, CONSUMERS)
    return found


def imports(room: str) -> set[str]:
    """Rooms that a room imports."""
    found: set[str] = set()
    for file in folder(room).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                first, *rest = node.module.split(".")
                if first == CONSUMERS:
                    found.add(CONSUMERS)
                elif first == "service" and rest:
                    found.add(rest[0])
    return found - {room}


def sentence(room: str) -> str:
    """What a room says of itself."""
    text = ast.get_docstring(ast.parse((folder(room) / "__init__.py").read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def rooms_section() -> str:
    """The picture and the table, as Markdown."""
    storeys = floors()
    order = [room for rooms in storeys for room in rooms]
    of = {room: imports(room) for room in order}
    lines = ["```mermaid", "flowchart TB"]
    for number, rooms in reversed(list(enumerate(storeys, 1))):
        lines += [f"  subgraph floor{number}[floor {number}]", *(f"    {room}" for room in rooms), "  end"]
    lines += [f"  {caller} -- {way} --> {called}" for way, calls in WAYS.items() for caller, called in calls]
    lines += ["```", ""]
    arrows = sum(len(rooms) for rooms in of.values())
    lines += [f"{len(order)} rooms on {len(storeys)} floors, {arrows} arrows between rooms.", ""]
    lines += ["| floor | room | what is in it | imports |", "| ---: | --- | --- | --- |"]
    for number, rooms in enumerate(storeys, 1):
        for room in rooms:
            below = ", ".join(sorted(of[room], key=order.index)) or "-"
            lines.append(f"| {number} | `{folder(room).relative_to(ROOT)}` | {sentence(room)} | {below} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the section, or check that it is current."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_check_option(parser)
    check = parser.parse_args().check
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    current = before + BEGIN + rooms_section() + END + rest.split(END)[1]
    return write_or_check(PAGE.parent, {PAGE.name: current}, check=check)


if __name__ == "__main__":
    sys.exit(main())
