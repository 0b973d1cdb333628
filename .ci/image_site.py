"""Where the images run while they are checked: containers, without any program of a base but Python."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USER = 65_532
START_SECONDS = 180.0

_CONTAINED = Path(__file__).parent / "contained.py"
_PROGRAM_FOLDERS = ("usr/bin", "usr/sbin")

_TRIPWIRE = """\
#!/usr/bin/python3 -I
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
    wire.sendto(" ".join(sys.argv).encode(), "\\0{name}")
sys.exit(127)
"""


@dataclass(frozen=True)
class Image:
    """One image.

    Attributes:
        config: what it says of itself.
        root: where its files are.
    """

    config: dict[str, Any]
    root: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that it sets."""
        return dict(line.split("=", 1) for line in self.config["Env"])


class Site:
    """Where containers run: what is mounted into them, and a wire that tells of programs that were called.

    Args:
        folder: a temporary one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.configuration = folder / "configuration"
        self.configuration.mkdir()
        self._name = f"credence-tripwire-{os.getpid()}"
        self._wire = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._wire.bind(f"\0{self._name}")
        self._wire.setblocking(False)

    def tripped(self) -> list[str]:
        """The programs that were called since this was asked last."""
        calls = []
        while True:
            try:
                calls.append(self._wire.recv(4_096).decode())
            except BlockingIOError:
                return calls

    def start(
        self,
        image: Image,
        *command: str,
        writable: tuple[str, ...] = (),
        variables: dict[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Start a container; the image's own entry point is before the command.

        Args:
            image: what runs.
            command: its arguments, or a program if its first word is a path.
            writable: places where it may write.
            variables: more of its environment.
        """
        arguments = list(command) if command[0].startswith("/") else [*image.config["Entrypoint"], *command]
        spec = {
            "root": str(image.root),
            "arguments": [self.path(image, arguments[0]), *arguments[1:]],
            "environment": image.environment | (variables or {}),
            "folder": image.config["WorkingDir"],
            "user": USER,
            "mounts": {
                image.config["WorkingDir"]: str(self.configuration),
                **{f"/{name}": str(self._programs(image, name)) for name in _PROGRAM_FOLDERS},
            },
            "writable": list(writable),
        }
        return subprocess.Popen(
            [sys.executable, str(_CONTAINED), json.dumps(spec)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def finish(
        self, image: Image, *command: str, seconds: float = START_SECONDS, **options: Any
    ) -> tuple[int, str]:
        """Run a container to its end; its exit code, and what it said."""
        process = self.start(image, *command, **options)
        try:
            said, _ = process.communicate(timeout=seconds)
        finally:
            process.kill()
        return process.returncode, said

    def path(self, image: Image, program: str) -> str:
        """Where the image finds a program; there is no shell to look for it."""
        if program.startswith("/"):
            return program
        folders = image.environment["PATH"].split(":")
        return next(f"{f}/{program}" for f in folders if os.path.lexists(f"{image.root}{f}/{program}"))

    def _programs(self, image: Image, name: str) -> Path:
        """A folder as one of the image's, with Python as it is there, and tripwires for all the rest."""
        folder = self.folder / image.root.name / name
        if not folder.exists():
            folder.mkdir(parents=True)
            tripwire = self.folder / "tripwire"
            tripwire.write_text(_TRIPWIRE.format(name=self._name))
            tripwire.chmod(0o755)
            for program in (image.root / name).iterdir():
                if program.name.startswith("python3"):
                    shutil.copy2(program, folder, follow_symlinks=False)
                else:
                    (folder / program.name).hardlink_to(tripwire)
        return folder
