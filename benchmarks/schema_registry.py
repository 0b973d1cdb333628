"""A schema registry with the REST API of Confluent's, which a benchmark or a trial runs itself.

It answers what readers ask: for a schema by its id. It can be stopped and started again, and be silent.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

_PATH = "/schemas/ids/"
_NO_SCHEMA = 40_403
"""Code of the registry's own for an id that it does not know."""

Answer = Mapping[str, Any]
"""What is answered for an id: `schema`, its text, and `schemaType`, if it is not Avro."""


class LocalSchemaRegistry:
    """A registry on 127.0.0.1, at the same port for as long as it exists; a context manager.

    Args:
        answer: what is answered for an id; None if the registry has no schema of this id.
    """

    def __init__(self, answer: Callable[[int], Answer | None]) -> None:
        self._answer = answer
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self._may_answer = threading.Event()
        self._may_answer.set()

    @property
    def url(self) -> str:
        """Where it is; start it first."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Answer requests."""
        handler = partial(_Handler, self._answer, self._may_answer)
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), handler)
        self._server.daemon_threads = True
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on, if it runs."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        self.resume()

    def pause(self) -> None:
        """Accept connections and requests, and answer none."""
        self._may_answer.clear()

    def resume(self) -> None:
        """Answer again, also what was asked meanwhile."""
        self._may_answer.set()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def one_schema(schema: Mapping[str, Any]) -> LocalSchemaRegistry:
    """A registry in which every id is that of this Avro schema."""
    answer = {"schema": json.dumps(schema)}
    return LocalSchemaRegistry(lambda _: answer)


class _Handler(BaseHTTPRequestHandler):
    def __init__(
        self, answer: Callable[[int], Answer | None], may_answer: threading.Event, *arguments: Any
    ) -> None:
        self._answer = answer
        self._may_answer = may_answer
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self._may_answer.wait()
        number = self.path.removeprefix(_PATH)
        found = self._answer(int(number)) if self.path.startswith(_PATH) and number.isdecimal() else None
        body = {"error_code": _NO_SCHEMA, "message": "Schema not found"} if found is None else found
        content = json.dumps(body).encode()
        try:
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except ConnectionError:
            self.close_connection = True  # whoever asked has given up

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""
