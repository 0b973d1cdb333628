"""The containers of pods as processes of this machine: read-only, without capabilities, as their user alone.

`.ci/contained.py` runs them. What is not as in a cluster: pods share the machine's network, where each has an
address of its own, and the image is this checkout with its virtual environment.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from control_plane import Api, Object
from rendering import ROOT

from service.demo.servers import Child

_CONTAINED = ROOT / ".ci/contained.py"
_LISTENERS = ("CREDENCE_MONITORING__HOST", "CREDENCE_HTTP__HOST", "CREDENCE_VENDOR_API__HOST")
_ANY_USER = 1_000_650_000
"""Where the pod names none, as OpenShift chooses one."""

_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache")


class Image:
    """What containers see: this machine's libraries and this checkout, all of it read-only.

    Args:
        folder: empty; becomes the root of the file system.
        hosts: names and addresses, read by every container; may change at any time.
    """

    def __init__(self, folder: Path, hosts: Path) -> None:
        self.root = folder
        base = Path(sys.base_prefix)
        places = [*(Path(place) for place in _SYSTEM if Path(place).exists()), ROOT]
        if not base.is_relative_to("/usr"):
            places.append(base)
        self.mounts = {str(place): str(place.resolve()) for place in places}
        self.mounts["/etc/hosts"] = str(hosts)
        self.path = f"{Path(sys.executable).parent}:{base}/bin:/usr/bin:/bin"
        for place in ("/proc", "/dev", "/tmp"):
            self.place(place)
        for place, source in self.mounts.items():
            self.place(place, file=Path(source).is_file())
        (folder / "etc/passwd").write_text("root:x:0:0::/:/bin/false\n")

    def place(self, path: str, *, file: bool = False) -> None:
        """Make a place in the image where something may be mounted."""
        at = self.root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        if file:
            at.touch()
        else:
            at.mkdir(exist_ok=True)


class Container:
    """The only container of a pod.

    Args:
        api: of which ConfigMaps and Secrets are read.
        image: what it sees.
        pod: as the API server gives it.
        address: the pod's own.
        folder: empty; for its volumes and its log.
    """

    def __init__(self, api: Api, image: Image, pod: Object, address: str, folder: Path) -> None:
        self._api = api
        self._image = image
        self._pod = pod
        self._address = address
        self._folder = folder
        (self.spec,) = pod["spec"]["containers"]
        security = pod["spec"].get("securityContext", {})
        self._user: int = security.get("runAsUser", _ANY_USER)
        self._group: int | None = security.get("fsGroup")
        self.log = folder / "log"
        self.child: Child | None = None

    def start(self) -> None:
        """Start its process.

        Raises:
            RejectedError: a ConfigMap or a Secret does not exist.
            KeyError: a Secret lacks a key.
        """
        mounts, writable = self._mounts()
        self._contained = {
            "root": str(self._image.root),
            "environment": self._environment(),
            "folder": "/",
            "user": self._user,
            "mounts": self._image.mounts | mounts,
            "writable": writable,
        }
        self.child = self._run(
            [*self.spec.get("command", ["credence"]), *self.spec.get("args", [])], self.log
        )

    def _run(self, arguments: list[str], log: Path) -> Child:
        # A shell finds the program on the path of the image.
        spec = self._contained | {"arguments": ["/bin/sh", "-c", 'exec "$@"', "sh", *arguments]}
        with log.open("ab") as sink:
            return Child("a pod", [sys.executable, _CONTAINED, json.dumps(spec)], output=sink)

    def prepare_to_stop(self) -> None:
        """Run the hook that the pod has before it is terminated, to its end."""
        hook = self.spec.get("lifecycle", {}).get("preStop")
        if hook:
            self._run(hook["exec"]["command"], self._folder / "hook").process.wait()

    def probe(self, name: str) -> bool:
        """Whether a probe succeeds."""
        asked = self.spec[name]["httpGet"]
        ports = {port["name"]: port["containerPort"] for port in self.spec["ports"]}
        url = f"http://{self._address}:{ports[asked['port']]}{asked['path']}"
        try:
            with urllib.request.urlopen(url, timeout=self.spec[name].get("timeoutSeconds", 1)) as reply:
                return 200 <= reply.status < 400
        except OSError:
            return False

    def _environment(self) -> dict[str, str]:
        fields = {"metadata.name": self._pod["metadata"]["name"]}
        # A pod has a network of its own in a cluster, so all addresses may listen on the same port.
        result = {"PATH": self._image.path, "PYTHONDONTWRITEBYTECODE": "1"}
        result |= dict.fromkeys(_LISTENERS, self._address)
        for variable in self.spec.get("env", []):
            field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            value = fields[field] if field else variable.get("value", "")
            # Likewise its loopback.
            result[variable["name"]] = value.replace("127.0.0.1", self._address.replace("10.", "127.", 1))
        return result

    def _mounts(self) -> tuple[dict[str, str], list[str]]:
        volumes = {volume["name"]: volume for volume in self._pod["spec"].get("volumes", [])}
        mounts, writable = {}, []
        for mount in self.spec.get("volumeMounts", []):
            volume = volumes[mount["name"]]
            self._image.place(mount["mountPath"])
            if "emptyDir" in volume:
                writable.append(mount["mountPath"])
            else:
                mounts[mount["mountPath"]] = str(self._volume(volume))
        return mounts, writable

    def _volume(self, volume: dict[str, Any]) -> Path:
        folder = self._folder / volume["name"]
        folder.mkdir(exist_ok=True)
        if "configMap" in volume:
            data = self._object("configmaps", volume["configMap"]["name"])["data"]
            self._write(folder, {key: text.encode() for key, text in data.items()}, 0o644)
            return folder
        projected = volume["projected"]
        for source in projected["sources"]:
            data = self._object("secrets", source["secret"]["name"])["data"]
            files = {item["path"]: base64.b64decode(data[item["key"]]) for item in source["secret"]["items"]}
            self._write(folder, files, projected["defaultMode"])
        return folder

    def _object(self, kind: str, name: str) -> Object:
        return self._api.get(f"/api/v1/namespaces/{self._pod['metadata']['namespace']}/{kind}/{name}")

    def _write(self, folder: Path, files: dict[str, bytes], mode: int) -> None:
        for name, content in files.items():
            path = folder / name
            path.unlink(missing_ok=True)
            path.write_bytes(content)
            path.chmod(mode)
            if self._group is not None:
                os.chown(path, 0, self._group)
