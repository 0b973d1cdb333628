"""Runs a program as a cluster runs it: a container runtime in small, for machines on which none works.

The program is process 1 of its own namespaces, on a root that is read-only, as a user that is but a number,
without any capability and without a way to get one. It shares the machine's network. Linux, and root, only.

Usage: contained.py SPEC, where SPEC is JSON: `Contained` tells its keys.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC, _CLONE_NEWPID = 0x20000, 0x4000000, 0x8000000, 0x20000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 32, 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_DEVICES = ("null", "zero", "full", "random", "urandom")
_COULD_NOT_START = 125

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Contained:
    """What runs, and where.

    Attributes:
        root: the image's files; never written to.
        arguments: the program, by its path in the image, and its arguments.
        environment: all of it.
        folder: where it starts, in the image.
        user: number of its user and group.
        mounts: what else is seen, read-only: the place in the image, and the folder or file of this machine.
        writable: places of the image where it may write; they begin empty.
    """

    root: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    user: int
    mounts: dict[str, str] = field(default_factory=dict)
    writable: list[str] = field(default_factory=list)


def run(spec: Contained) -> int:
    """Run the program to its end; its exit code. SIGTERM and SIGINT are handed on to it."""
    _call(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWUTS | _CLONE_NEWIPC | _CLONE_NEWPID), "unshare")
    child = os.fork()
    if child == 0:
        try:
            _become(spec)
        except OSError as error:
            print(f"contained: {error}", file=sys.stderr)
            os._exit(_COULD_NOT_START)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: os.kill(child, number))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _become(spec: Contained) -> None:
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    root = Path(spec.root)
    _bind(spec.root, root)
    _mount("proc", str(root / "proc"), "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    _mount("tmpfs", str(root / "dev"), "tmpfs", _MS_NOSUID, "mode=755")
    for name in _DEVICES:
        (root / "dev" / name).touch()
        _mount(f"/dev/{name}", str(root / "dev" / name), None, _MS_BIND)
    (root / "dev/shm").mkdir()
    for place in ("/dev/shm", *spec.writable):
        _mount("tmpfs", f"{root}{place}", "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "mode=1777,size=64m")
    for place, source in spec.mounts.items():
        _bind(source, Path(f"{root}{place}"))
    os.chroot(root)
    os.chdir(spec.folder)
    os.umask(0o022)
    for capability in range(int(Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1):
        _call(_libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0), "prctl")
    os.setgroups([])
    os.setresgid(spec.user, spec.user, spec.user)
    os.setresuid(spec.user, spec.user, spec.user)
    _call(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    _call(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    os.execve(spec.arguments[0], spec.arguments, spec.environment)


def _bind(source: str, target: Path) -> None:
    """Show a folder or a file at another place, read-only."""
    _mount(source, str(target), None, _MS_BIND)
    _mount(None, str(target), None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind, data)]
    _call(
        _libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]), f"mount {target}"
    )


def _call(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(run(Contained(**json.loads(sys.argv[1]))))
