"""Prints what KServe's logger makes of the answers of model servers, as the records of docs/connect.md.

The logger posts CloudEvents over HTTP. Their headers are named here as the Kafka binding of CloudEvents names
them, which Knative's KafkaSink follows: `ce-id` is `ce_id`. `.ci/record_model_servers.sh` runs this.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

SECONDS = 120.0
REQUEST = {
    "id": "5b1f0c6e",
    "inputs": [
        {
            "name": "features",
            "shape": [2, 4],
            "datatype": "FP32",
            "data": [5.1, 3.5, 1.4, 0.2, 6.3, 3.3, 6.0, 2.5],
        }
    ],
}

TRAIN = """
import joblib, sys
from sklearn.linear_model import LogisticRegression

rows = [[5.1, 3.5, 1.4, 0.2], [5.9, 2.8, 4.3, 1.3], [6.3, 3.3, 6.0, 2.5]] * 20
joblib.dump(LogisticRegression(max_iter=1000).fit(rows, ["cat", "dog", "owl"] * 20), sys.argv[1])
"""

TRITON = """
import sys
import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

@batch
def answer(features):
    probabilities = np.array([[0.02, 0.05, 0.93], [0.8, 0.15, 0.05]], np.float32)
    return {"probabilities": probabilities, "attributes.region": np.array([[b"north"], [b"south"]])}

with Triton(config=TritonConfig(http_port=int(sys.argv[1]), allow_grpc=False, allow_metrics=False)) as server:
    server.bind(
        model_name="sorter",
        infer_func=answer,
        inputs=[Tensor(name="features", dtype=np.float32, shape=(4,))],
        outputs=[
            Tensor(name="probabilities", dtype=np.float32, shape=(3,)),
            Tensor(name="attributes.region", dtype=bytes, shape=(1,)),
        ],
        config=ModelConfig(max_batch_size=8),
    )
    server.serve()
"""


class Sink(BaseHTTPRequestHandler):
    """Keeps the events that it gets."""

    events: ClassVar[list[tuple[dict[str, str], Any]]] = []

    def do_POST(self) -> None:
        """Keep an event."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.events.append((dict(self.headers.items()), json.loads(body)))
        self.send_response(202)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def call(url: str, body: Any = None) -> bool:
    """Whether a call succeeds."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def await_call(url: str, body: Any = None) -> None:
    """Repeat a call until it succeeds."""
    deadline = time.monotonic() + SECONDS
    while not call(url, body):
        if time.monotonic() > deadline:
            raise TimeoutError(url)
        time.sleep(0.2)


def record(place: Path, name: str, server: list[str], port: int, more: Mapping[str, str]) -> None:
    """Start a server behind the logger, ask it once, and print the event of its answer."""
    sink = HTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=sink.serve_forever, daemon=True).start()
    agent_port = free_port()
    agent = [
        str(place / "agent"), f"--port={agent_port}", f"--component-port={port}", "--log-mode=response",
        f"--log-url=http://127.0.0.1:{sink.server_address[1]}/", "--source-uri=http://localhost:9081/",
        "--inference-service=sorter", "--namespace=models", "--component=predictor",
    ]  # fmt: skip
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with (
        subprocess.Popen(server, env=os.environ | dict(more), **quiet) as served,
        subprocess.Popen(agent, env=os.environ | {"SERVING_READINESS_PROBE": ""}, **quiet) as logging,
    ):
        try:
            await_call(f"http://127.0.0.1:{port}/v2/health/ready")
            await_call(f"http://127.0.0.1:{agent_port}/v2/models/sorter/infer", REQUEST)
            while not Sink.events:
                time.sleep(0.1)
        finally:
            logging.terminate()
            served.terminate()
    headers, value = Sink.events.pop()
    kafka = {key.lower().replace("ce-", "ce_", 1): text for key, text in headers.items()}
    kept = {key: text for key, text in kafka.items() if key.startswith("ce_") or key == "content-type"}
    print(name, json.dumps({"headers": kept, "value": value}, indent=2), sep="\n")


def main(place: Path) -> None:
    """Record both servers."""
    with tempfile.TemporaryDirectory() as folder:
        python = str(place / "kserve/bin/python")
        subprocess.run([python, "-c", TRAIN, f"{folder}/model.joblib"], check=True)
        port = free_port()
        options = [
            "--model_name=sorter",
            f"--model_dir={folder}",
            f"--http_port={port}",
            "--enable_grpc=false",
        ]
        more = {"PREDICT_PROBA": "true", "PYTHONPATH": os.environ["SKLEARN_SERVER"]}
        record(place, "KServe", [python, "-m", "sklearnserver", *options], port, more)
        port = free_port()
        server = [str(place / "triton/bin/python"), "-c", TRITON, str(port)]
        record(place, "Triton", server, port, {})


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
