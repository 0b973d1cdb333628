"""The image's health check: exits with 0 while the process in it is alive.

It asks on the monitoring port. `CREDENCE_MONITORING__PORT` says which one that is, where it is not 8401;
a port that stands in the configuration file alone is not known here.
"""

from __future__ import annotations

import os
import sys
from http.client import HTTPConnection, HTTPException

DEFAULT_PORT = "8401"
TIMEOUT_SECONDS = 3.0


def is_alive(port: int) -> bool:
    """Whether the process that listens there on loopback says that it is alive."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200  # noqa: PLR2004 - OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(not is_alive(int(os.environ.get("CREDENCE_MONITORING__PORT", DEFAULT_PORT))))
