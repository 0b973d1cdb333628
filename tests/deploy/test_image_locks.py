"""What the image is built from: pinned, with hashes, and as pyproject.toml wants it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/image"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
SERVICE = PROJECT["project"]["dependencies"] + EXTRAS["schemas"]
NEEDS = {
    "requirements.lock": SERVICE,
    "demo.lock": SERVICE + EXTRAS["demo"],
    "build.lock": PROJECT["build-system"]["requires"],
}

PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)( ; (?P<marker>[^\\]+))? \\\n", re.MULTILINE)
HASHES = re.compile(r"(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+")


def _text(lock: str) -> str:
    return (FOLDER / lock).read_text()


def _pins(lock: str) -> dict[str, dict[str, str]]:
    """By name, the versions that may be installed, each with its marker."""
    pins: dict[str, dict[str, str]] = {}
    for found in PIN.finditer(_text(lock)):
        pins.setdefault(found["name"], {})[found["version"]] = (found["marker"] or "").strip()
    return pins


@pytest.mark.parametrize("lock", NEEDS)
def test_every_dependency_is_pinned_within_the_bounds_of_the_project(lock: str) -> None:
    pins = _pins(lock)
    for need in map(Requirement, NEEDS[lock]):
        versions = pins.get(canonicalize_name(need.name), {})
        assert versions, f"{need.name} is not pinned; run deploy/image/lock.sh"
        for version in versions:
            assert need.specifier.contains(version), (
                f"{need} is pinned to {version}; run deploy/image/lock.sh"
            )


@pytest.mark.parametrize("lock", NEEDS)
def test_a_lock_is_pins_with_hashes_and_nothing_else(lock: str) -> None:
    """No address of an index, no path, no option: where packages come from is the builder's to say."""
    rest = _text(lock)
    while rest:
        pin = PIN.match(rest)
        assert pin, f"neither a pin nor a hash: {rest.splitlines()[0]}"
        hashes = HASHES.match(rest, pin.end())
        assert hashes, f"{pin['name']} has no hash"
        rest = rest[hashes.end() :]


def test_the_service_is_the_same_in_both_images() -> None:
    service, demo = _pins("requirements.lock"), _pins("demo.lock")
    assert {name: demo.get(name) for name in service} == service
