"""Runs the services of a compose file without Docker: each as a process in namespaces of its own.

A service has its own interfaces on private networks, its own mounts upon a copy of the machine's root, its
own user, no capabilities and no way to new ones. So configuration files, commands, host names and ports are
those of the compose file, byte for byte. In the place of an image stand programs of this machine (`Image`).
Not played: limits of resources, restarts, published ports.

Needs root. All of it is gone with its processes.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from compose_file import COMPOSE_FILE, ROOT, compose_file, mounts
from harness import wait_for
from private_network import PrivateNetworks

from service.demo.servers import Child
from service.domain.errors import EmbeddedServerError

_START_SECONDS = 120.0
_COMMAND_SECONDS = 60.0
_PROGRAMS = ("ip", "unshare", "nsenter", "setpriv", "bash", "wget")
"""What makes containers, and what their healthchecks find in the images."""

_LAUNCH = """
set -eu
mount --make-rprivate /
{joining}
mount -t tmpfs tmpfs {folder}
mkdir {folder}/upper {folder}/work {folder}/root
mount -t overlay overlay -o lowerdir=/,upperdir={folder}/upper,workdir={folder}/work {folder}/root
cd {folder}/root
for each in proc dev sys; do mount --rbind /$each $each; done
printf 'nameserver {name_server}\\n' >{folder}/resolv.conf
mount --bind {folder}/resolv.conf etc/resolv.conf
printf '127.0.0.1 localhost\\n' >{folder}/hosts
mount --bind {folder}/hosts etc/hosts
{mounts}
{read_only}
exec {enter} {command}
"""


@dataclass(frozen=True)
class Image:
    """What stands for an image.

    Attributes:
        user: that its processes are of, unless the service says so: user and group.
        entrypoint: before every command.
        workdir: where they are started.
        environment: that it brings.
        writable: folders that its user may write to, though they are no volumes.
        needs: folders of this machine that it reads, by where they are in the image.
        healthcheck: its own, for services that have none and do not do without.
    """

    user: str
    entrypoint: Sequence[str] = ()
    workdir: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    writable: Sequence[str] = ()
    needs: Mapping[str, Path] = field(default_factory=dict)
    healthcheck: Sequence[str] = ()


class Container:
    """A service that runs, or has run to its end.

    Attributes:
        name: of the service.
        log: what it says.
    """

    def __init__(self, name: str, child: Child, log: Path, prefix: list[str], healthcheck: list[str]) -> None:
        self.name = name
        self.log = log
        self._child = child
        self._prefix = prefix
        self._healthcheck = healthcheck

    @property
    def has_healthcheck(self) -> bool:
        """Whether the service, or its image, has one."""
        return bool(self._healthcheck)

    def run(self, *command: str) -> str:
        """What a command says inside it."""
        inside = ["nsenter", "-t", str(self._child.process.pid), "--mount", "--net", "--uts"]
        done = subprocess.run(
            [*inside, *self._prefix, *command],
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == 0, (
            f"{self.name}: {command} ended with {done.returncode}: {done.stderr[-2000:]}"
        )
        return done.stdout

    def healthy(self) -> bool:
        """Whether its healthcheck succeeds now; it must still run."""
        assert self._child.process.poll() is None, f"{self.name} ended: {self.said()}"
        try:
            self.run(*self._healthcheck)
        except AssertionError:
            return False
        return True

    def completed(self) -> bool:
        """Whether it has ended, which must be with success."""
        code = self._child.process.poll()
        assert code in (None, 0), f"{self.name} ended with {code}: {self.said()}"
        return code == 0

    def stop(self, seconds: float) -> int:
        """Ask it to stop; its exit code."""
        return self._child.stop(seconds=seconds)

    def log_tail(self) -> str:
        """The end of what it said."""
        return self.log.read_text(errors="replace")[-3_000:]


class Stack:
    """The services of a compose file.

    Args:
        folder: for volumes, logs and roots.
        images: by their names, without the version.
        environment: of who runs Compose.

    Attributes:
        file: the compose file.
        services: of it.
        running: those that were started.
        networks: that they are on.

    Raises:
        EmbeddedServerError: namespaces cannot be had here.
    """

    def __init__(self, folder: Path, images: Mapping[str, Image], environment: Mapping[str, str]) -> None:
        if missing := [name for name in _PROGRAMS if shutil.which(name) is None]:
            raise EmbeddedServerError(f"containers need {', '.join(missing)} on the PATH")
        self.file = compose_file(environment)
        self.services: dict[str, dict[str, Any]] = self.file["services"]
        self.running: dict[str, Container] = {}
        self._folder = folder
        self._images = images
        self._stack = ExitStack()
        members = {name: service["networks"] for name, service in self.services.items()}
        self.networks = self._stack.enter_context(PrivateNetworks(folder, members))

    def up(self, *names: str) -> None:
        """Start services, after those that they depend on, as their conditions say."""
        for name in names:
            if name in self.running:
                continue
            needed = self.services[name].get("depends_on", {})
            self.up(*needed)
            for other, how in needed.items():
                self._await(self.running[other], how["condition"])
            self.running[name] = self._start(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _await(self, container: Container, condition: str) -> None:
        ready = {"service_healthy": container.healthy, "service_completed_successfully": container.completed}
        try:
            wait_for(ready[condition], seconds=_START_SECONDS, what=f"{container.name}: {condition}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it said: {container.said()}") from error

    def _start(self, name: str) -> Container:
        service = self.services[name]
        image = self._images[service["image"].partition(":")[0]]
        root = self._folder / "roots" / name
        root.mkdir(parents=True)
        enter = _enter(root / "root", image, service)
        command = [*image.entrypoint, *service.get("command", [])]
        script = _LAUNCH.format(
            joining="\n".join(self.networks.joining(name)),
            folder=root,
            name_server=self.networks.name_server(name),
            mounts="\n".join(self._mounts(service, image)),
            read_only=f"mount -o remount,ro {root}/root" if service.get("read_only") else "",
            enter=shlex.join(enter),
            command=shlex.join(command),
        )
        log = self._folder / f"{name}.log"
        apart = ["unshare", "--net", "--mount", "--uts", "--ipc", "sh", "-c", script]
        with log.open("ab") as output:
            child = self._stack.enter_context(Child(name, apart, output=output))
        child.wait_until(lambda: Path(f"/proc/{child.process.pid}/root").readlink() != Path("/"))
        return Container(name, child, log, enter, _healthcheck(service, image))

    def _mounts(self, service: Mapping[str, Any], image: Image) -> list[str]:
        """Lines that mount what a service sees, in a shell whose folder is its root."""
        user = service.get("user", image.user)
        lines = []
        for path in (ROOT, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()):
            if path.stat().st_dev != Path("/").stat().st_dev:
                lines.append(_bind(path, str(path)))
            # Whoever the service is may pass; in its root alone.
            lines += [f"chmod a+x {shlex.quote('.' + str(each))}" for each in reversed(path.parents)]
        lines += [_bind(source, target) for target, source in image.needs.items()]
        for target in image.writable:
            lines.append(f"mkdir -p .{target} && chown {user} .{target}")
        for target in service.get("tmpfs", []):
            lines.append(f"mkdir -p .{target} && mount -t tmpfs tmpfs .{target}")
        for source, target, writable in mounts(service):
            if source.startswith((".", "/")):
                lines.append(_bind((COMPOSE_FILE.parent / source).resolve(), target, writable=writable))
                continue
            volume = self._folder / "volumes" / source
            if not volume.exists():
                # Docker makes a volume as the folder in the image is.
                volume.mkdir(parents=True)
                os.chown(volume, *(int(each) for each in user.split(":")))
            lines.append(_bind(volume, target, writable=True))
        for secret in service.get("secrets", []):
            path = COMPOSE_FILE.parent / self.file["secrets"][secret]["file"]
            lines.append(_bind(path.resolve(), f"/run/secrets/{secret}"))
        return lines


def _healthcheck(service: Mapping[str, Any], image: Image) -> list[str]:
    """The command that tells whether the service is healthy; nothing where none does."""
    logged = service.get("healthcheck", {})
    if logged.get("disable"):
        return []
    kind, *command = logged.get("test", ["CMD", *image.healthcheck])
    return ["sh", "-c", *command] if kind == "CMD-SHELL" else command


def _bind(source: Path, target: str, *, writable: bool = False) -> str:
    at, logged = shlex.quote(f".{target}"), shlex.quote(str(source))
    made = f"mkdir -p {at}" if source.is_dir() else f"mkdir -p $(dirname {at}) && touch {at}"
    bound = f"{made} && mount --bind {logged} {at}"
    return bound if writable else f"{bound} && mount -o remount,bind,ro {at}"


def _enter(root: Path, image: Image, service: Mapping[str, Any]) -> list[str]:
    """What a command follows to be the service's: its root, environment, folder, user, and no rights."""
    user, group = service.get("user", image.user).split(":")
    environment = {"PATH": os.environ["PATH"], "HOME": "/"} | dict(image.environment)
    environment |= {name: str(value) for name, value in service.get("environment", {}).items()}
    rights = [] if service["cap_drop"] != ["ALL"] else ["--inh-caps=-all", "--bounding-set=-all"]
    rights += ["--no-new-privs"] if "no-new-privileges:true" in service["security_opt"] else []
    return [
        *("env", "-i", *(f"{name}={value}" for name, value in environment.items())),
        *("chroot", str(root), "env", f"--chdir={image.workdir}"),
        *("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", *rights, "--pdeathsig=KILL"),
        "--",
    ]
