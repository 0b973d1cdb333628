"""A Kubernetes control plane of one machine: etcd and the API server, and what else of it is asked for.

Its programs stand in one folder (`.ci/kubernetes.sh` builds them). It listens on 127.0.0.1 alone.
"""

from __future__ import annotations

import json
import os
import secrets
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from service.demo.ports import free_port
from service.demo.servers import Child

SERVICE_NETWORK = "10.96.0.0/16"
Object = dict[str, Any]

_START_SECONDS = 60.0
_MERGE = "application/strategic-merge-patch+json"


class RejectedError(Exception):
    """The API server did not do what it was asked; `code` is its HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True)
class Reply:
    """What the API server answers.

    Attributes:
        document: the object or the list.
        warnings: which it gives along, as kubectl prints them.
    """

    document: Object
    warnings: tuple[str, ...]


class Api:
    """Calls of the API server, as its administrator."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        # Its certificate is its own, made at its start.
        self._tls = ssl._create_unverified_context()
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}

    def call(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json", **query: str
    ) -> Reply:
        """Call it.

        Raises:
            RejectedError: it rejects the call.
        """
        asked = f"?{urllib.parse.urlencode(query)}" if query else ""
        request = urllib.request.Request(
            f"{self._url}{path}{asked}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": kind},
        )
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=30) as reply:
                warnings = tuple(reply.headers.get_all("Warning") or ())
                return Reply(json.loads(reply.read()), warnings)
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            raise RejectedError(error.code, f"{method} {path}: {_message(said)}") from error

    def get(self, path: str) -> Object:
        """The object or the list at a path."""
        return self.call("GET", path).document

    def items(self, path: str) -> list[Object]:
        """The objects of the list at a path."""
        return self.get(path)["items"] or []

    def patch(self, path: str, change: Object) -> None:
        """Change an object as Kubernetes' own parts do."""
        self.call("PATCH", path, change, kind=_MERGE)

    def create(self, thing: Object, *, namespace: str, dry_run: bool = False) -> Reply:
        """Create an object whose unknown keys are errors; with `dry_run` it is admitted and forgotten."""
        query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        return self.call("POST", self._place(thing, namespace), thing, **query)

    def _place(self, thing: Object, namespace: str) -> str:
        version = thing["apiVersion"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if version not in self._kinds:
            self._kinds[version] = {
                one["kind"]: (one["name"], one["namespaced"])
                for one in self.get(base)["resources"]
                if "/" not in one["name"]
            }
        name, namespaced = self._kinds[version][thing["kind"]]
        return f"{base}/namespaces/{namespace}/{name}" if namespaced else f"{base}/{name}"


def _message(said: str) -> str:
    try:
        return str(json.loads(said)["message"])
    except (ValueError, KeyError, TypeError):
        return said


class ControlPlane:
    """A control plane that runs while this is a context.

    Args:
        programs: the folder that they stand in.
        folder: empty; for its data, its logs and `kubeconfig`.
        whole: with controllers and scheduler, without which objects are admitted and nothing comes of them.

    Attributes:
        api: calls of its API server.
        kubeconfig: by which kubectl and Helm reach it.
    """

    def __init__(self, programs: Path, folder: Path, *, whole: bool) -> None:
        self._programs = programs
        self._folder = folder
        self._whole = whole
        self._stack = ExitStack()
        self._token = secrets.token_hex(16)
        self._ports = {name: free_port() for name in ("clients", "peers", "api", "controllers", "scheduler")}
        self.kubeconfig = folder / "kubeconfig"
        self.api = Api(f"https://127.0.0.1:{self._ports['api']}", self._token)

    def __enter__(self) -> Self:
        key = generate_private_key(public_exponent=65537, key_size=2048)
        (self._folder / "accounts.key").write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        )
        (self._folder / "tokens.csv").write_text(f"{self._token},admin,admin,system:masters\n")
        self._write_kubeconfig()
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self) -> None:
        clients, peers = (f"http://127.0.0.1:{self._ports[name]}" for name in ("clients", "peers"))
        self._run(
            "etcd",
            f"--data-dir={self._folder / 'etcd'}",
            *(f"--{name}-client-urls={clients}" for name in ("listen", "advertise")),
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            # It need not outlive its machine.
            "--unsafe-no-fsync",
        )
        accounts = self._folder / "accounts.key"
        server = self._run(
            "kube-apiserver",
            f"--etcd-servers={clients}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._ports['api']}",
            f"--cert-dir={self._folder}",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={accounts}",
            f"--service-account-signing-key-file={accounts}",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            # An address on the loopback is not accepted as an endpoint.
            "--endpoint-reconciler-type=none",
        )
        server.wait_until(self._answers, seconds=_START_SECONDS)
        if self._whole:
            common = (f"--kubeconfig={self.kubeconfig}", "--bind-address=127.0.0.1", "--leader-elect=false")
            self._run(
                "kube-controller-manager",
                *common,
                f"--secure-port={self._ports['controllers']}",
                f"--cert-dir={self._folder}",
                f"--service-account-private-key-file={accounts}",
                "--use-service-account-credentials=true",
            )
            scheduler = (f"--secure-port={self._ports['scheduler']}", f"--cert-dir={self._folder}")
            self._run("kube-scheduler", *common, *scheduler)

    def _run(self, name: str, *arguments: str) -> Child:
        log = self._stack.enter_context((self._folder / f"{name}.log").open("wb"))
        child = Child(name, [self._programs / name, *arguments], output=log)
        # It has nothing to finish: its data are removed with it.
        self._stack.callback(child.kill)
        return child

    def _answers(self) -> bool:
        try:
            # Priorities and roles are made after the first answer.
            self.api.get("/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical")
        except (OSError, RejectedError):
            return False
        return True

    def _write_kubeconfig(self) -> None:
        server = {"server": f"https://127.0.0.1:{self._ports['api']}", "insecure-skip-tls-verify": True}
        configuration = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": server}],
            "users": [{"name": "admin", "user": {"token": self._token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(configuration))

    def run(
        self, program: str | Path, *arguments: str, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run Helm, or kubectl by its name alone, against this cluster.

        Raises:
            AssertionError: it fails, and `check` is set.
        """
        path = self._programs / program if program == "kubectl" else program
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig)}
        result = subprocess.run(
            [path, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert not (check and result.returncode), f"{' '.join(arguments)}: {result.stderr}{result.stdout}"
        return result


def define(api: Api, files: Iterable[Path]) -> None:
    """Create the CustomResourceDefinitions of files."""
    for file in files:
        for document in yaml.safe_load_all(file.read_text()):
            if document:
                api.create(document, namespace="")


def is_defined(api: Api, files: Sequence[Path]) -> bool:
    """Whether the API server serves the resources of files."""
    found = api.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    ready = [
        one
        for one in found
        for condition in one["status"].get("conditions") or []
        if (condition["type"], condition["status"]) == ("Established", "True")
    ]
    return len(ready) == len(files)
