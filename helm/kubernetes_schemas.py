"""Strict JSON Schemas of Kubernetes' objects, for kubeconform, from what Kubernetes publishes itself.

`python -m helm.kubernetes_schemas FOLDER FILE...` reads OpenAPI documents (JSON) and
CustomResourceDefinitions (YAML), and writes a schema for every kind, named as kubeconform
looks for it. Keys that Kubernetes would drop in silence are errors.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]

GROUPS = frozenset({"", "apps", "autoscaling", "batch", "networking.k8s.io", "policy"})
"""Whose kinds the chart may have; others refer to themselves, and could not be written out."""

_NUMBER_OR_TEXT: Schema = {"oneOf": [{"type": "string"}, {"type": "number"}]}
_SPECIAL: dict[str, Schema] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _NUMBER_OR_TEXT,
}


def schemas_of(path: Path) -> Iterator[tuple[str, Schema]]:
    """The schemas that a file has, with the names of their files."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        yield from _built_in(json.loads(text)["definitions"])
    else:
        for document in yaml.safe_load_all(text):
            yield from _custom(document)


def _built_in(definitions: Schema) -> Iterator[tuple[str, Schema]]:
    for definition in definitions.values():
        for kind in definition.get("x-kubernetes-group-version-kind", []):
            listed = "metadata" in definition.get("properties", {}) and not kind["kind"].endswith("List")
            if listed and kind["group"] in GROUPS:
                schema = _strict(definition, definitions)
                yield _named(schema, kind["group"], kind["version"], kind["kind"])


def _custom(definition: Schema) -> Iterator[tuple[str, Schema]]:
    spec = definition["spec"]
    for version in spec["versions"]:
        schema = _strict(version["schema"]["openAPIV3Schema"], {})
        yield _named(schema, spec["group"], version["name"], spec["names"]["kind"])


def _named(schema: Schema, group: str, version: str, kind: str) -> tuple[str, Schema]:
    api = f"{group}/{version}" if group else version
    schema["properties"] |= {"apiVersion": {"const": api}, "kind": {"const": kind}}
    schema["required"] = sorted({*schema.get("required", []), "apiVersion", "kind", "metadata"})
    suffix = "-".join(part for part in (group.partition(".")[0], version) if part)
    return f"{kind}-{suffix}.json".lower(), schema


def _strict(node: Any, definitions: Schema) -> Any:
    if isinstance(node, list):
        return [_strict(child, definitions) for child in node]
    if not isinstance(node, dict):
        return node
    if isinstance(reference := node.get("$ref"), str):
        name = reference.rpartition("/")[2]
        return _SPECIAL.get(name) or _strict(definitions[name], definitions)
    if node.get("x-kubernetes-int-or-string"):
        return _NUMBER_OR_TEXT
    strict = {
        key: {name: _strict(part, definitions) for name, part in child.items()}
        if key == "properties"
        else _strict(child, definitions)
        for key, child in node.items()
        if key not in ("description", "default", "format") and not key.startswith("x-kubernetes")
    }
    open_ended = "additionalProperties" in node or node.get("x-kubernetes-preserve-unknown-fields")
    if "properties" in strict and not open_ended:
        strict["additionalProperties"] = False
    return strict


def main() -> None:
    """Write the schemas of the files that are named."""
    parser = argparse.ArgumentParser(prog="python -m helm.kubernetes_schemas", description="Write schemas.")
    parser.add_argument("folder", type=Path, help="where they are written")
    parser.add_argument("files", type=Path, nargs="+", help="OpenAPI documents, CustomResourceDefinitions")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for path in options.files:
        for name, schema in schemas_of(path):
            (options.folder / name).write_text(json.dumps(schema), encoding="utf-8")


if __name__ == "__main__":
    main()
