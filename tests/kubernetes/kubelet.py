"""Stands in for the kubelet of two nodes: pods that are bound to them run as processes of this machine."""

from __future__ import annotations

import re
import ssl
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import trustme
from control_plane import Api, Object, RejectedError
from pod_processes import Container, Image

NODES = ("node-a", "node-b")
ADDRESS = "10.0.0.1"
"""Of both nodes."""

_LOOK_SECONDS = 0.3
_PROBE_SECONDS = 0.5
_FAILURES = 2
_LONGEST_BACKOFF_SECONDS = 40.0
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _seconds() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(kind: str, holds: bool) -> Object:
    return {"type": kind, "status": str(holds), "lastTransitionTime": _seconds()}


class Pod(threading.Thread):
    """Runs one pod until it is deleted.

    A process dies with the thread that has started it, so this one lives as long.
    """

    def __init__(self, api: Api, image: Image, pod: Object, address: str, folder: Path) -> None:
        super().__init__(name=pod["metadata"]["name"], daemon=True)
        self._api = api
        self._pod = pod
        self._address = address
        self._path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self._restarts = 0
        self._startup_done = False
        self._reported: object = None
        self._grace_seconds = 0.0
        self._deleted = threading.Event()
        self.container = Container(api, image, pod, address, folder)

    def delete(self, grace_seconds: float) -> None:
        """Have it end within its time of grace."""
        self._grace_seconds = grace_seconds
        self._deleted.set()

    def run(self) -> None:
        """Start its container as often as its policy says; end it when the pod is deleted."""
        while not self._deleted.is_set():
            try:
                self.container.start()
            except (RejectedError, KeyError) as error:
                self._report({"waiting": {"reason": "ContainerCreating", "message": str(error)}}, "Pending")
                self._deleted.wait(1)
                continue
            code = self._watch()
            if code is None:
                break
            if self._pod["spec"]["restartPolicy"] == "Never":
                reason = "Error" if code else "Completed"
                ended = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": _seconds()}}
                self._report(ended, "Failed" if code else "Succeeded")
                self._deleted.wait()
                break
            self._restarts += 1
            self._report(
                {"waiting": {"reason": "CrashLoopBackOff", "message": f"exit code {code}"}}, "Running"
            )
            self._deleted.wait(min(5.0 * 2**self._restarts, _LONGEST_BACKOFF_SECONDS))
        self._end()

    def _watch(self) -> int | None:
        """Probe the container while it runs; its exit code, or None if the pod is deleted."""
        self._startup_done = "startupProbe" not in self.container.spec
        ready, failures = False, 0
        child = self.container.child
        assert child is not None
        while not self._deleted.wait(_PROBE_SECONDS):
            code = child.process.poll()
            if code is not None:
                return code
            if not self._startup_done:
                self._startup_done = self.container.probe("startupProbe")
            elif "readinessProbe" in self.container.spec:
                failures = 0 if self.container.probe("readinessProbe") else failures + 1
                ready = not failures or (ready and failures < _FAILURES)
            else:
                ready = True
            self._report({"running": {"startedAt": _seconds()}}, "Running", ready=ready)
        return None

    def _report(self, state: Object, phase: str, *, ready: bool = False) -> None:
        key = (next(iter(state)), phase, ready, self._startup_done, self._restarts)
        if key == self._reported:
            return
        conditions = [
            *(_condition(kind, True) for kind in ("PodScheduled", "Initialized")),
            *(_condition(kind, ready) for kind in ("ContainersReady", "Ready")),
        ]
        container = {
            "name": self.container.spec["name"],
            "image": self.container.spec["image"],
            "imageID": "",
            "ready": ready,
            "started": self._startup_done,
            "restartCount": self._restarts,
            "state": state,
        }
        status = {
            "phase": phase,
            "podIP": self._address,
            "podIPs": [{"ip": self._address}],
            "hostIP": ADDRESS,
            "hostIPs": [{"ip": ADDRESS}],
            "startTime": self._pod["metadata"]["creationTimestamp"],
            "conditions": conditions,
            "containerStatuses": [container],
        }
        try:
            self._api.patch(f"{self._path}/status", {"status": status})
        except RejectedError as error:
            # Deleted meanwhile.
            if error.code != HTTPStatus.NOT_FOUND:
                raise
        self._reported = key

    def _end(self) -> None:
        deadline = time.monotonic() + self._grace_seconds
        child = self.container.child
        if child is not None and child.process.poll() is None:
            self.container.prepare_to_stop()
            child.stop(seconds=max(1.0, deadline - time.monotonic()))
        # Without a time of grace, the object itself goes away.
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        try:
            self._api.call(
                "DELETE", self._path, options | {"preconditions": {"uid": self._pod["metadata"]["uid"]}}
            )
        except RejectedError as error:
            if error.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise


class Kubelet:
    """The nodes, while this is a context.

    Args:
        api: of the cluster.
        folder: empty; for the files of pods.
        image: what they see.

    Attributes:
        failures: what failed in here, which is no fault of what is tested.
    """

    def __init__(self, api: Api, folder: Path, image: Image) -> None:
        self._api = api
        self._folder = folder
        self._image = image
        self._pods: dict[str, Pod] = {}
        self._threads_of_pods: list[Pod] = []
        self._stopping = threading.Event()
        self.failures: list[str] = []
        self._server = _log_server(self._log)
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (
                partial(self._repeat, self._look, _LOOK_SECONDS),
                partial(self._repeat, self._renew, 5),
                self._server.serve_forever,
            )
        ]

    def __enter__(self) -> Self:
        for zone, name in enumerate(NODES):
            self._register(name, zone)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        for thread in self._threads:
            thread.join()
        # While there is an API server that they can tell.
        for pod in self._threads_of_pods:
            pod.delete(0)
            if pod.container.child is not None:
                pod.container.child.kill()
        for pod in self._threads_of_pods:
            pod.join()

    def _repeat(self, work: Callable[[], None], seconds: float) -> None:
        while not self._stopping.wait(seconds):
            try:
                work()
            except (OSError, RejectedError) as error:
                self.failures.append(repr(error))

    def _register(self, name: str, zone: int) -> None:
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "topology.kubernetes.io/zone": f"zone-{zone}",
        }
        self._api.create(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}, namespace=""
        )
        capacity = {"cpu": "16", "memory": "32Gi", "pods": "110"}
        status = {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.server_address[1]}},
            "conditions": [_condition("Ready", True) | {"lastHeartbeatTime": _seconds()}],
        }
        self._api.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": _now()}
        self._api.create(lease | {"spec": spec}, namespace="kube-node-lease")

    def _renew(self) -> None:
        for name in NODES:
            self._api.patch(f"{_LEASES}/{name}", {"spec": {"renewTime": _now()}})

    def _look(self) -> None:
        found = {}
        for pod in self._api.items("/api/v1/pods"):
            if pod["spec"].get("nodeName") not in NODES:
                continue
            uid = pod["metadata"]["uid"]
            found[uid] = pod
            if uid not in self._pods:
                self._pods[uid] = self._started(pod)
            if "deletionTimestamp" in pod["metadata"]:
                self._pods[uid].delete(pod["metadata"].get("deletionGracePeriodSeconds", 0))
        for uid in set(self._pods) - set(found):
            self._pods.pop(uid).delete(0)

    def _started(self, pod: Object) -> Pod:
        high, low = divmod(len(self._threads_of_pods) + 1, 250)
        folder = self._folder / pod["metadata"]["uid"]
        folder.mkdir()
        result = Pod(self._api, self._image, pod, f"10.0.{high + 1}.{low + 1}", folder)
        self._threads_of_pods.append(result)
        result.start()
        return result

    def _log(self, name: str) -> bytes:
        logs = [pod.container.log for pod in self._pods.values() if pod.name == name]
        return b"".join(log.read_bytes() for log in logs if log.exists())


def _log_server(log_of: Callable[[str], bytes]) -> ThreadingHTTPServer:
    """What the API server asks for the logs of a pod."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = re.match(r"/containerLogs/[^/]+/([^/]+)/", self.path)
            text = log_of(asked[1]) if asked else b""
            self.send_response(HTTPStatus.OK if asked else HTTPStatus.NOT_FOUND)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_parts: Any) -> None:
            """Nobody reads who asked."""

    server = ThreadingHTTPServer((ADDRESS, 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert(ADDRESS).configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server
