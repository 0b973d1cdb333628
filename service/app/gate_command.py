"""`credence gate`: whether every group is shown to meet the accuracy threshold, for pipelines."""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from xml.etree import ElementTree as ET

from service.app.action_parsers import EXIT_NO_ANSWER
from service.app.monitor_wiring import read_snapshots
from service.app.plain_text import plain
from service.app.wiring import connect
from service.config.alert_validation import uncertifiable_keys
from service.config.assessments import PolicySettings
from service.config.evidence import most_certified
from service.config.loader import load_settings
from service.config.settings import Settings
from service.domain.errors import ConfigurationError, CredenceError
from service.serving.documents.certificates import Gate, GroupingGate, Outcome, gate

EXIT_CODES: Final[Mapping[Outcome, int]] = {"shown": 0, "missed": 1, "undecided": 2}
_COMMAND_LINE = "the command line"
_ELEMENTS: Final[Mapping[Outcome, str]] = {"missed": "failure", "undecided": "error", "excluded": "skipped"}
_COUNTS: Final[Mapping[Outcome, str]] = {"missed": "failures", "undecided": "errors", "excluded": "skipped"}


def run_gate(options: argparse.Namespace) -> int:
    """Print the certificate of a model, and say by the exit code whether it is given."""
    try:
        settings = load_settings(options.config, os.environ)
        groupings = _groupings(settings, options.model, options.grouping)
        [snapshot] = read_snapshots(settings, connect(settings), [options.model])
        found = gate(snapshot, groupings)
        if options.junit is not None:
            options.junit.write_bytes(junit(found))
    except (CredenceError, OSError) as error:
        print(f"credence: {error}", file=sys.stderr)
        return EXIT_NO_ANSWER
    except Exception:  # noqa: BLE001 - Python would exit with 1, which says that a group misses the threshold
        traceback.print_exc()
        return EXIT_NO_ANSWER
    try:
        print(found.model_dump_json(indent=2) if options.json else _text(found), flush=True)
    except (OSError, UnicodeError) as error:
        # Nothing of it is left to be written when the process ends, which would give another exit code.
        sys.stdout = io.StringIO()
        print(f"credence: the answer cannot be written: {error}", file=sys.stderr)
        return EXIT_NO_ANSWER
    return EXIT_CODES[found.outcome]


def _groupings(settings: Settings, model: str, chosen: list[str] | None) -> list[str]:
    """The groupings that are asked about: those chosen, or all that labels are requested for by a policy.

    Raises:
        ConfigurationError: there is no such model or grouping, or nothing can be shown of it.
    """

    def refused(at: str, problem: str) -> ConfigurationError:
        return ConfigurationError([(at, problem)], _COMMAND_LINE)

    if model not in settings.models:
        raise refused("--model", f"unknown model {model!r}; configured: {', '.join(sorted(settings.models))}")
    known, asked = settings.cell_space(model).groupings, settings.models[model]
    possible = sorted(name for name, by in known.items() if by.has_threshold)
    labels = asked.labels_per_item
    if labels.stated_bound is None:
        problem = f"labels may be wrong: set models.{model}.labels_per_item.max_error to a number"
        raise refused("--model", problem)
    for name in chosen or ():
        if name not in possible:
            raise refused("--grouping", f"{name!r} has no threshold; choose from {', '.join(possible)}")
    requested = {
        each.asked_grouping for each in asked.assessments.values() if isinstance(each, PolicySettings)
    }
    found = list(dict.fromkeys(chosen or [name for name in possible if name in requested]))
    if not found:
        raise refused(
            "--grouping", f"no assessment requests labels by groups; choose from {', '.join(possible)}"
        )
    for name in found:
        if keys := uncertifiable_keys(asked.alerts, known[name], labels):
            most = most_certified(labels)
            raise refused("--model", f"set models.{model}.alerts.{keys[0]}, above 0 and at most {most:g}")
    return found


def _text(found: Gate) -> str:
    """For people: a line for every grouping, and one for every group."""
    lines = []
    for one in found.groupings:
        lines.append(f"{found.model} by {one.grouping}: {one.outcome}. {one.sentence}")
        lines += [
            f"  {each.group}: {each.sentence} {each.labels:,} labels, e-value 10^{each.log10_e:.1f}."
            for each in one.group_certificates
        ]
    return "\n".join(map(plain, lines))


def junit(found: Gate) -> bytes:
    """The same as JUnit XML: a suite for every grouping, and a case for every group.

    A group that misses the threshold is a failure, an undecided one an error, and one left out is skipped.
    """
    suites = ET.Element("testsuites", {"name": "credence gate"} | _counts(*found.groupings))
    for one in found.groupings:
        at = datetime.fromtimestamp(found.taken_at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        name = plain(f"{found.model}.{one.grouping}")
        suite = ET.SubElement(suites, "testsuite", {"name": name, "timestamp": at} | _counts(one))
        for group, outcome, sentence in _cases(one):
            case = ET.SubElement(suite, "testcase", classname=name, name=plain(group))
            if outcome in _ELEMENTS:
                ET.SubElement(case, _ELEMENTS[outcome], message=plain(sentence))
    ET.indent(suites)
    return bytes(ET.tostring(suites, encoding="utf-8", xml_declaration=True))


def _cases(found: GroupingGate) -> list[tuple[str, Outcome, str]]:
    """Name, outcome and sentence of every case; where no group counts, of the grouping."""
    cases = [(each.group, each.outcome, each.sentence) for each in found.group_certificates]
    return cases if found.groups else [*cases, ("every group", found.outcome, found.sentence)]


def _counts(*groupings: GroupingGate) -> dict[str, str]:
    outcomes = [outcome for one in groupings for _, outcome, _ in _cases(one)]
    counts = {_COUNTS[each]: str(outcomes.count(each)) for each in _COUNTS}
    return {"tests": str(len(outcomes))} | counts
