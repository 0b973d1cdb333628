"""Arguments of the commands that bring their own servers: the demo, and the servers alone."""

from __future__ import annotations

import argparse
import os
from typing import Any, Final

from service.app.action_parsers import add_command, positive

_HIGHEST_PORT: Final = 65_535


def add_demo(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the command that runs a demo."""
    about = """\
Train classifiers on handwritten digits, stream their predictions through a real broker, degrade one of two
cameras after a third of the time, and watch Credence detect it with few labels. With --rare, one transaction
in 500 is fraud, and the recall of a classifier is estimated from 200 labels: chosen by the policy adaptive,
and at random. With --labeller me, you label the digits in the browser; the run ends after --labels labels, or
at Ctrl-C."""
    text = "run a demo with a real classifier, and its own broker and Redis"
    demo = add_command(commands, "demo", "demo_command:demo", text, configured, about=about)
    demo.add_argument(
        "part",
        nargs="?",
        choices=["producer", "labeller"],
        help="run only this part, with the Kafka of the configuration, until it is stopped; the whole demo "
        "brings its own servers and configuration",
    )
    demo.add_argument(
        "--rare",
        action="store_true",
        help="run the demo of a rare class: one item in 500 is positive",
    )
    demo.add_argument(
        "--repair",
        action="store_true",
        help="after the verdict, repair the camera and show how its estimates recover",
    )
    demo.add_argument(
        "--labeller",
        choices=["simulated", "me"],
        default="simulated",
        help="who labels: a simulated labeller, or you, in the browser (default: simulated)",
    )
    demo.add_argument(
        "--labels",
        type=int,
        metavar="N",
        help="with --labeller me: end after this many labels (default: 60)",
    )
    demo.add_argument(
        "--seconds",
        type=float,
        default=os.environ.get("DEMO_SECONDS", "90"),
        help="length of the stream; with --labeller me, it sets windows and half-lives alone (default: "
        "$DEMO_SECONDS, else 90)",
    )
    demo.add_argument(
        "--seed",
        type=int,
        default=os.environ.get("DEMO_SEED", "1"),
        help="seed of what is streamed, draws and answers (default: $DEMO_SEED, else 1)",
    )


def add_servers(commands: Any) -> None:
    """Add the command that starts servers to try Credence with."""
    about = """\
Start the bundled Kafka-compatible broker and a Redis on this machine, for trying Credence and for tutorials.
They listen on 127.0.0.1, without a login. Their data are lost when the command ends: Ctrl-C ends it."""
    text = "start a broker and a Redis on this machine, to try Credence"
    servers = add_command(commands, "servers", "servers_command:servers", text, about=about)
    for option, port, name in (("--kafka-port", 9092, "the broker"), ("--redis-port", 6379, "Redis")):
        servers.add_argument(
            option, type=_port, default=port, metavar="PORT", help=f"port of {name} (default: {port})"
        )


def _port(text: str) -> int:
    if (port := positive(text)) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"'{text}' is above {_HIGHEST_PORT}, the highest port")
    return port
