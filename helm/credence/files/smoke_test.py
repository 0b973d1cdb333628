"""`helm test`: every process that has an address is ready, and the page's API knows the models.

Runs in Credence's own image, by Python's library alone.
"""

import argparse
import http.client
import json
import socket
import sys
import time

_PATIENCE_SECONDS = 240.0
_PAUSE_SECONDS = 2.0


def fetched(address: str, path: str, name: str = "") -> tuple[int, bytes]:
    """Status and body; asked under a name, if it is to be another one than the address."""
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path, headers={"Host": name or address})
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def problems(monitoring: str, page: str, page_name: str, models: list[str]) -> list[str]:
    """What is not as it should be."""
    host, _, port = monitoring.rpartition(":")
    # The name of a headless Service stands for the addresses of all processes.
    found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    addresses = [f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip in sorted(found)]
    answers = {address: fetched(address, "/readyz") for address in addresses}
    told = [
        f"{address} is not ready: {body.decode(errors='replace')[:500]}"
        for address, (status, body) in answers.items()
        if status != http.client.OK
    ]
    status, body = fetched(page, "/api/v1/models", page_name)
    known = [model["model"] for model in json.loads(body)["models"]] if status == http.client.OK else []
    told += [f"the page does not know model {name}" for name in models if name not in known]
    return told or ([] if answers else ["no process has an address"])


def main() -> int:
    """Try until all is well, or patience ends; the exit code."""
    parser = argparse.ArgumentParser(description="Ask the processes of a release how they are.")
    parser.add_argument(
        "--monitoring", required=True, help="host and port of all processes, a headless Service"
    )
    parser.add_argument("--page", required=True, help="host and port of the page")
    parser.add_argument("--page-name", default="", help="the name that the page is asked under")
    parser.add_argument("--model", action="append", default=[], help="a model that the page must know")
    parser.add_argument("--seconds", type=float, default=_PATIENCE_SECONDS, help="patience")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    while True:
        try:
            told = problems(options.monitoring, options.page, options.page_name, options.model)
        except (OSError, http.client.HTTPException) as error:
            told = [str(error)]
        if not told:
            print("all processes are ready, and the page knows the models")
            return 0
        if time.monotonic() > end:
            print("\n".join(told), file=sys.stderr)
            return 1
        time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
