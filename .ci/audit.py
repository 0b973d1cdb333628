"""Audits locks with pip-audit: every pin that this Python would install.

pip-audit alone calls it a success when the index knows nothing about a release, as with mirrors that have no
page for each. Here the project's page is asked then, whose advisories are of its newest release; an older pin
stays unjudged, and is named. Before all, a release that is known to be vulnerable has to be found out.

Fails on a finding. Where the index tells nothing, or nothing about half the pins, it says so, and fails where
`CI=true`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from packaging.version import Version
from pip_audit._dependency_source import RequirementSource
from pip_audit._service import Dependency, PyPIService, ResolvedDependency, ServiceError

TIMEOUT_SECONDS = 30
KNOWN_BAD = ResolvedDependency("pycrypto", Version("2.6.1"))
"""Its last release, with advisories that nothing mends."""


class ProjectPages:
    """What pip-audit's session is to it; a release without a page is looked for on its project's page.

    Args:
        session: pip-audit's own.
    """

    def __init__(self, session: Any) -> None:
        self._session = session

    def get(self, *, url: str, timeout: int) -> Any:
        """The page of the release at this address, else its project's if this is the newest release."""
        page = self._session.get(url=url, timeout=timeout)
        if page.status_code == 404:
            project, version, _ = url.rsplit("/", 2)
            newest = self._session.get(url=f"{project}/json", timeout=timeout)
            if newest.ok and newest.json()["info"]["version"] == version:
                return newest
        return page


def main(locks: list[Path]) -> int:
    """Audit all locks; the exit code."""
    service = PyPIService(timeout=TIMEOUT_SECONDS)
    service.session = ProjectPages(service.session)
    try:
        if not service.query(KNOWN_BAD)[1]:
            return unaudited(f"the index knows nothing bad about {KNOWN_BAD.name} {KNOWN_BAD.version}")
        pins = set(RequirementSource(locks, require_hashes=True, disable_pip=True).collect())
        answers = [(pin, *service.query(pin)) for pin in sorted(pins, key=name_and_version)]
    except (ServiceError, OSError) as error:
        return unaudited(f"the index does not answer: {error}")
    unjudged = [name_and_version(pin) for pin, judged, _ in answers if judged.is_skipped()]
    findings = [(name_and_version(pin), finding) for pin, _, found in answers for finding in found]
    for pin, finding in findings:
        mended = ", ".join(map(str, finding.fix_versions)) or "nothing yet"
        print(
            f"{pin}: {finding.id} ({', '.join(sorted(finding.aliases))}), mended by {mended}", file=sys.stderr
        )
    if unjudged:
        print(
            f"NOT AUDITED, as the index tells of newer releases alone: {', '.join(unjudged)}", file=sys.stderr
        )
    print(f"{len(answers)} pins, {len(answers) - len(unjudged)} audited, {len(findings)} findings")
    if findings:
        return 1
    return unaudited("the index tells of too few") if 2 * len(unjudged) >= len(answers) else 0


def name_and_version(pin: Dependency) -> str:
    """As a pin is written."""
    return (
        f"{pin.canonical_name}=={pin.version}" if isinstance(pin, ResolvedDependency) else pin.canonical_name
    )


def unaudited(reason: str) -> int:
    """Say that there was no audit; the exit code."""
    print(f"NOT AUDITED: {reason}", file=sys.stderr)
    return int(os.environ.get("CI") == "true")


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
