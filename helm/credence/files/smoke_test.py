"""`helm test`: all processes are ready, and the API lists all models.

Runs in Credence's image and uses only the standard library.
"""

import argparse
import http.client
import json
import socket
import sys
import time

_TIMEOUT_SECONDS = 240.0
_PAUSE_SECONDS = 2.0


def fetch(address: str, path: str, host: str = "") -> tuple[int, bytes]:
    """Status and body of a GET request; `host` overrides the Host header."""
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path, headers={"Host": host or address})
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def problems(monitoring: str, page: str, page_name: str, models: list[str]) -> list[str]:
    """Processes that are not ready, and models that the API does not list."""
    host, _, port = monitoring.rpartition(":")
    # A headless Service resolves to the addresses of all processes.
    found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    addresses = [f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip in sorted(found)]
    answers = {address: fetch(address, "/readyz") for address in addresses}
    unmet = [
        f"{address} is not ready: {body.decode(errors='replace')[:500]}"
        for address, (status, body) in answers.items()
        if status != http.client.OK
    ]
    status, body = fetch(page, "/api/v1/models", page_name)
    known = [model["model"] for model in json.loads(body)["models"]] if status == http.client.OK else []
    unmet += [f"the API does not list model {name}" for name in models if name not in known]
    return unmet or ([] if answers else ["no process found"])


def main() -> int:
    """Retry until there are no problems, or until the timeout; returns the exit code."""
    parser = argparse.ArgumentParser(description="Check the health of all processes of a release.")
    parser.add_argument(
        "--monitoring", required=True, help="host and port of the headless Service of all processes"
    )
    parser.add_argument("--page", required=True, help="host and port of the status page")
    parser.add_argument("--page-name", default="", help="Host header for the status page")
    parser.add_argument("--model", action="append", default=[], help="a model that the API must list")
    parser.add_argument("--seconds", type=float, default=_TIMEOUT_SECONDS, help="timeout")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    while True:
        try:
            current = problems(options.monitoring, options.page, options.page_name, options.model)
        except (OSError, http.client.HTTPException) as error:
            current = [str(error)]
        if not current:
            print("all processes are ready, and the API lists all models")
            return 0
        if time.monotonic() > end:
            print("\n".join(current), file=sys.stderr)
            return 1
        time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
