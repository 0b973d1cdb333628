"""The commands of docs/operations.md, carried out as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from harness import Deployment

PAGE = (Path(__file__).parents[2] / "docs/operations.md").read_text()

_NAMED = re.compile(
    r"^ *<!-- procedure: (?P<name>.+?) -->\n *```sh\n(?P<commands>.*?)^ *```$", re.MULTILINE | re.DOTALL
)

PROCEDURES = {found["name"]: dedent(found["commands"]) for found in _NAMED.finditer(PAGE)}
"""Commands by the name that stands above them, which readers do not see."""


def carry_out(name: str, deployment: Deployment, **variables: str | Path) -> str:
    """What the commands of a procedure print; all of them must succeed.

    Args:
        name: of the procedure.
        deployment: whose configuration, Redis and prefix the commands use.
        variables: that they use besides.
    """
    folder = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", PROCEDURES[name]],
        env=os.environ
        | {
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "CREDENCE_CONFIG": str(deployment.config),
            "REDIS_URL": deployment.settings.redis.url.get_secret_value(),
            "PREFIX": deployment.settings.redis.prefix,
        }
        | {variable: str(value) for variable, value in variables.items()},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
    return done.stdout
