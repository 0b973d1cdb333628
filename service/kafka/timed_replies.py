"""HTTP replies that must be complete in time, however slowly their bytes come."""

from __future__ import annotations

import io
import time
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.request import HTTPHandler, HTTPSHandler, Request


class TimedHTTP(HTTPHandler):
    """Opens `http://` URLs; a reply takes no longer than the connection's timeout, header and content."""

    def http_open(self, req: Request) -> HTTPResponse:
        """The reply to a request."""
        return self.do_open(_Connection, req)


class TimedHTTPS(HTTPSHandler):
    """Opens `https://` URLs alike."""

    def https_open(self, req: Request) -> HTTPResponse:
        """The reply to a request."""
        return self.do_open(_SecureConnection, req, context=self._context)  # type: ignore[attr-defined]


class _TimedBytes(io.RawIOBase):
    def __init__(self, raw: Any, seconds: float | None) -> None:
        self._raw = raw
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise TimeoutError
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Reply(HTTPResponse):
    def __init__(self, sock: Any, *args: Any, **keys: Any) -> None:
        super().__init__(sock, *args, **keys)
        self.fp = io.BufferedReader(_TimedBytes(self.fp.detach(), sock.gettimeout()))


class _Connection(HTTPConnection):
    response_class = _Reply


class _SecureConnection(HTTPSConnection):
    response_class = _Reply
