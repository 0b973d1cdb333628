"""Runs the images as a cluster would, and fails where they do not do what docs/image.md says.

Every program of a base but Python is replaced by a tripwire while the images run: one that is called, be it
a shell by some library, is told of and makes this check fail.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import yaml
from image_site import START_SECONDS, USER, Image, Site

from service.demo.ports import free_port
from service.demo.servers import EmbeddedBroker, EmbeddedRedis

STOP_SECONDS, DEMO_SECONDS = 10.0, 180.0
COMPILERS = {"as", "c++", "cc", "clang", "g++", "gcc", "ld", "make"}

CALLS_A_SHELL = "import os; os.system('true')"
IMPORTS_ALL_ROLES = "from service.app import role_command, rounds, vendor_wiring"
IS_CONFINED = """
import errno, os, pathlib
status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    assert int(status[name], 16) == 0, (name, status[name])
assert status["NoNewPrivs"].strip() == "1"
assert os.getresuid() == os.getresgid() == (65532,) * 3 and os.getgroups() == []
for folder in ("/", "/tmp", "/var/tmp", "/etc/credence", "/opt/credence", "/run"):
    try:
        open(folder + "/x", "w")
    except OSError as error:
        assert error.errno == errno.EROFS, (folder, error)
    else:
        raise AssertionError(folder + " can be written to")
"""


def check_what_it_says_of_itself(image: Image, *, version: str, revision: str) -> None:
    """User, entry point, place, ports and labels are what docs and charts rely on."""
    config, labels = image.config, image.config["Labels"]
    expect(config["User"] == f"{USER}:{USER}", f"user is {config['User']}")
    expect(config["Entrypoint"] == ["credence"], f"entry point is {config['Entrypoint']}")
    expect(config["WorkingDir"] == "/etc/credence", f"folder is {config['WorkingDir']}")
    expect(set(config["ExposedPorts"]) == {"8400/tcp", "8401/tcp", "8402/tcp"}, "ports are others")
    for name, value in {"version": version, "revision": revision, "licenses": "Apache-2.0"}.items():
        found = labels.get(f"org.opencontainers.image.{name}")
        expect(found == value, f"label {name} is {found!r}, not {value!r}")
    expect({f"org.opencontainers.image.{n}" for n in ("title", "description")} <= set(labels), "labels miss")


def check_its_files(image: Image) -> None:
    """No file lends its owner's rights, none is the user's or everybody's to write, none is a build's."""
    for folder, _, names in os.walk(image.root):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            found = path.lstat()
            shown = f"/{path.relative_to(image.root)}"
            if stat.S_ISLNK(found.st_mode):
                continue
            expect(USER not in (found.st_uid, found.st_gid), f"{shown} belongs to the user")
            if stat.S_ISREG(found.st_mode):
                expect(not found.st_mode & (stat.S_ISUID | stat.S_ISGID), f"{shown} lends its owner's rights")
                expect(not found.st_mode & stat.S_IWOTH, f"{shown} can be written to by everybody")
            if path.parent.name == "bin":
                expect(path.name not in COMPILERS, f"{shown} is a compiler")
            expect(path.name not in {"pip", "ensurepip"} or not path.is_dir(), f"{shown} is there")


def check_it_is_confined(site: Site, image: Image) -> None:
    """The user has no right, nothing can be written; and a shell that is called is noticed."""
    code, said = site.finish(image, "/opt/credence/bin/python", "-c", IS_CONFINED)
    expect(code == 0, said)
    site.finish(image, "/opt/credence/bin/python", "-c", CALLS_A_SHELL)
    expect(len(site.tripped()) == 1, "a shell that is called is not noticed")


def check_modules_are_compiled(site: Site, image: Image) -> None:
    """No module is compiled anew at every start, as what comes of it could not be kept."""
    code, said = site.finish(image, "/opt/credence/bin/python", "-v", "-c", IMPORTS_ALL_ROLES)
    expect(code == 0, said)
    lines = [line for line in said.splitlines() if line.startswith("# code object from ")]
    compiled = [line for line in lines if not line.endswith(".pyc'")]
    expect(len(lines) > 100, "Python does not tell where modules come from")
    expect(not compiled, "compiled at the start:\n" + "\n".join(compiled))


def check_it_runs(site: Site, image: Image) -> None:
    """Check, topics, run, health check and a polite end, with a real Redis and a real broker."""
    monitoring, page = free_port(), free_port()
    ports = {"CREDENCE_MONITORING__PORT": str(monitoring), "CREDENCE_HTTP__PORT": str(page)}
    health_check = image.config["Healthcheck"]["Test"]
    expect(health_check[0] == "CMD", "the health check needs a shell")

    def is_healthy() -> bool:
        program = site.path(image, health_check[1])
        return site.finish(image, program, *health_check[2:], variables=ports)[0] == 0

    with EmbeddedRedis() as redis, EmbeddedBroker() as broker:
        document = {
            "kafka": {"bootstrap_servers": [broker.bootstrap_server], "session_timeout_seconds": 6},
            "redis": {"url": redis.url},
            "models": {"sorter": {"classes": ["cat", "dog"]}},
        }
        (site.configuration / "credence.yaml").write_text(yaml.safe_dump(document))
        for command in (["check"], ["topics", "create"]):
            code, said = site.finish(image, *command, variables=ports)
            expect(code == 0, f"credence {' '.join(command)}: {said}")
        expect(not is_healthy(), "what does not run is healthy")
        started = time.monotonic()
        process = site.start(image, "run", variables=ports)
        try:
            for path in ("healthz", "readyz"):
                url = f"http://127.0.0.1:{monitoring}/{path}"
                wait_until(partial(answers, url), process, what=path)
            tell(f"ready after {time.monotonic() - started:.1f} s")
            expect(answers(f"http://127.0.0.1:{page}/"), "there is no status page")
            expect(is_healthy(), "what runs is not healthy")
            asked = time.monotonic()
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=STOP_SECONDS)
            expect(process.returncode == 0, f"SIGTERM ends it with {process.returncode}: {said}")
            tell(f"ended {time.monotonic() - asked:.1f} s after SIGTERM")
        finally:
            process.kill()


def check_the_demo(site: Site, image: Image) -> None:
    """The loop closes in the image, which brings its broker and its Redis; it writes to /tmp alone."""
    code, said = site.finish(
        image,
        "demo",
        "--seconds",
        "30",
        seconds=DEMO_SECONDS,
        writable=("/tmp",),
    )
    expect(code == 0 and "The loop closed." in said, said)


def expect(condition: bool, otherwise: str) -> None:
    """End this check if the condition does not hold."""
    if not condition:
        sys.exit(f"image: {otherwise}")


def tell(line: str) -> None:
    """Say what was seen."""
    print(f"        {line}", flush=True)


def answers(url: str) -> bool:
    """Whether it answers with 200."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[str], *, what: str) -> None:
    """Wait, while the process lives, no longer than a start may take."""
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            sys.exit(f"image: {what} does not answer: {process.communicate()[0]}")
        time.sleep(0.05)


@contextmanager
def watched(site: Site) -> Iterator[None]:
    """Fails where a program but Python is called meanwhile."""
    yield
    calls = site.tripped()
    expect(not calls, f"programs were called: {calls}")


def main() -> None:
    """Check both images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", required=True)
    for name in ("credence", "demo"):
        parser.add_argument(f"--{name}", nargs=2, metavar=("INSPECTED", "ROOT"), required=True)
    found = parser.parse_args()
    images = {
        name: Image(json.loads(Path(inspected).read_text())["Docker"]["config"], Path(root))
        for name, (inspected, root) in {"credence": found.credence, "demo": found.demo}.items()
    }
    with tempfile.TemporaryDirectory(prefix="credence-image-") as folder:
        Path(folder).chmod(0o755)
        site = Site(Path(folder))
        for name, image in images.items():
            tell(name)
            check_what_it_says_of_itself(image, version=found.version, revision=found.revision)
            check_its_files(image)
            check_it_is_confined(site, image)
            with watched(site):
                check_modules_are_compiled(site, image)
        with watched(site):
            check_it_runs(site, images["credence"])
            check_the_demo(site, images["demo"])


if __name__ == "__main__":
    main()
