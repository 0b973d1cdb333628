"""`credence servers`: a broker and a Redis to try Credence with. The broker is an extra."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from service.demo.children import ChildDiedError, Children, Stopped
from service.demo.ports import is_free
from service.demo.process import StopFlag
from service.demo.stage import POLL_SECONDS, stopping_signals
from service.domain.errors import EmbeddedServerError


def servers(options: argparse.Namespace) -> int:
    """Start both, print their addresses, and run until a signal comes.

    Raises:
        EmbeddedServerError: a port is in use, a program is not installed, or a server ended.
    """
    for option in ("kafka_port", "redis_port"):
        _refuse_used(option, getattr(options, option))
    stop = StopFlag(*stopping_signals())
    try:
        with tempfile.TemporaryDirectory(prefix="credence-servers-") as folder:
            _run(options, Path(folder), stop)
    except Stopped:
        print("Stopped.")
    except ChildDiedError as death:
        raise EmbeddedServerError(f"{death}; the end of its log:\n{death.tail}") from death
    finally:
        stop.restore()
    return 0


def _run(options: argparse.Namespace, folder: Path, stop: StopFlag) -> None:
    with Children(folder, stop.wait) as children:
        broker = children.start_broker(port=options.kafka_port)
        redis = children.start_redis(port=options.redis_port)
        print(f'kafka.bootstrap_servers: ["{broker.bootstrap_server}"]')
        print(f"redis.url: {redis.url}")
        print("Ready. Ctrl-C stops both, and removes their data.", flush=True)
        while True:
            children.check()
            children.pause(POLL_SECONDS)


def _refuse_used(option: str, port: int) -> None:
    # A server that is there already would answer in place of the one that cannot start.
    if not is_free(port):
        name = option.replace("_", "-")
        raise EmbeddedServerError(
            f"--{name}: port {port} of 127.0.0.1 is in use; stop what listens there, or name another port"
        )
