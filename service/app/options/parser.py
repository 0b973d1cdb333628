"""The parser of the whole command line.

A command is named as `module:function`, and its module is imported when it is run, so that help, version and
mistakes are answered at once, whatever the commands need.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from service import __version__
from service.app.docgen.generated_files import add_check_option
from service.app.options import dead_letters, layouts, reference
from service.replay import options as replay

DESCRIPTION = """\
Credence watches deployed classifiers with few labels. It streams a model's predictions from
Kafka into Redis, keeps Bayesian beliefs about every group's accuracy and calibration, asks by Thompson
sampling for the labels that tell most, and shows credible intervals through Prometheus.

Start with `credence demo`, which brings its own broker and Redis. In production, write a configuration
(docs/configuration.md), look at it with `credence check`, create the topics, and run.
"""

EPILOG = """\
exit codes: 0 done; 1 failed while running; 2 the configuration or the command line is not valid.
The configuration is a YAML file; CREDENCE_* variables override its keys (CREDENCE_REDIS__URL is redis.url).
"""

PAGES: Final[Mapping[str, str]] = {
    "configuration": "service.app.docgen.configuration:configuration_page",
    "metrics": "service.app.docgen.metrics:metrics_page",
    "rights": "service.app.docgen.rights:rights_page",
}
"""What `describe` writes: the function that returns the text of each page."""

RIGHTS: Final[Mapping[str, str]] = {
    "kafka": "service.app.permissions:kafka_lines",
    "redis": "service.app.permissions:redis_lines",
}
"""What `rights` prints: the function that returns the lines for each server, from the settings."""


def build_parser() -> argparse.ArgumentParser:
    """Parser of all commands; the option `command` names the function of the one that was given."""
    parser = argparse.ArgumentParser(
        prog="credence",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"credence {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    configured = _configured()
    _add_operations(commands, configured)
    _add_vendors(commands)
    dead_letters.add_parser(commands, configured)
    layouts.add_parser(commands, configured)
    reference.add_parser(commands, configured)
    replay.add_parser(commands)
    _add_contract(commands)
    _add_describe(commands)
    _add_demo(commands, configured)
    return parser


def _configured() -> argparse.ArgumentParser:
    """The option that names the configuration."""
    configured = argparse.ArgumentParser(add_help=False)
    configured.add_argument(
        "-c",
        "--config",
        type=Path,
        default=Path(os.environ.get("CREDENCE_CONFIG", "credence.yaml")),
        metavar="FILE",
        help="the configuration (default: $CREDENCE_CONFIG, else credence.yaml)",
    )
    return configured


def _add_operations(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the commands that run Credence, and prepare it."""

    def add(name: str, command: str, text: str) -> argparse.ArgumentParser:
        sub: argparse.ArgumentParser = commands.add_parser(
            name, help=text, description=text, parents=[configured]
        )
        sub.set_defaults(command=command)
        return sub

    add("check", "service.app.check_command:check", "validate the configuration and say what it would do")
    add("run", "service.app.role_command:run", "run everything in one process")
    consume = add(
        "consume",
        "service.app.role_command:consume",
        "run one consumer alone; as many processes as partitions share the work",
    )
    consume.add_argument("what", choices=["predictions", "labels"], help="what is consumed")
    add(
        "schedule",
        "service.app.role_command:schedule",
        "run the rounds alone; of any number of replicas one asks for labels",
    )
    add(
        "serve",
        "service.app.role_command:serve",
        "serve the status page and its API alone, without asking for labels",
    )
    topics = add("topics", "service.app.topics_command:topics", "create the Kafka topics")
    topics.add_argument(
        "action", choices=["create"], help="what to do; topics that exist are left as they are"
    )
    rights = add(
        "rights", "service.app.rights_command:rights", "tell what every role must be allowed, and no more"
    )
    rights.add_argument(
        "where",
        choices=sorted(RIGHTS),
        help="redis: lines of an ACL file, still without passwords; kafka: arguments of kafka-acls.sh",
    )
    add(
        "status",
        "service.app.status_command:status",
        "show what is believed now, as tables in the terminal",
    )


def _add_vendors(commands: Any) -> None:
    vendors = commands.add_parser(
        "vendors",
        help="make a secret for a labelling vendor",
        description="Print a new bearer token of the vendor API with its SHA-256, or a new label key. "
        "Nothing is stored: put SHA-256 or key into the configuration, and give the vendor the secret.",
    )
    vendors.add_argument("what", choices=["token", "key"], help="which secret")
    vendors.set_defaults(command="service.app.vendors_command:vendors")


def _add_contract(commands: Any) -> None:
    contract = commands.add_parser(
        "contract",
        help="write the message contract",
        description="Write JSON Schemas, the AsyncAPI document and the page of all messages.",
    )
    contract.add_argument("directory", nargs="?", type=Path, default=Path("docs/contract"), metavar="DIR")
    add_check_option(contract)
    contract.set_defaults(command="service.app.contract_command:contract")


def _add_describe(commands: Any) -> None:
    describe = commands.add_parser(
        "describe",
        help="write a page of the docs",
        description="Write docs/configuration.md, docs/metrics.md or docs/rights.md from the code.",
    )
    describe.add_argument("page", choices=sorted(PAGES))
    describe.add_argument("directory", nargs="?", type=Path, default=Path("docs"), metavar="DIR")
    add_check_option(describe)
    describe.set_defaults(command="service.app.describe_command:describe")


def _add_demo(commands: Any, configured: argparse.ArgumentParser) -> None:
    demo = commands.add_parser(
        "demo",
        help="see it work on a real classifier, with a broker and a Redis of its own",
        description="Train classifiers on handwritten digits, stream their predictions through a real "
        "broker, degrade one of two cameras half-way, and watch Credence find it with few labels.",
        parents=[configured],
    )
    demo.add_argument(
        "part",
        nargs="?",
        choices=["producer", "labeller"],
        help="play this part alone, against the Kafka of the configuration, until it is stopped; the whole "
        "demo brings servers and a configuration of its own",
    )
    demo.add_argument(
        "--seconds",
        type=float,
        default=float(os.environ.get("DEMO_SECONDS", "90")),
        help="length of the stream (default: $DEMO_SECONDS, else 90)",
    )
    demo.add_argument(
        "--seed",
        type=int,
        default=int(os.environ.get("DEMO_SEED", "1")),
        help="decides images, cameras, draws and answers of the whole demo (default: $DEMO_SEED, else 1)",
    )
    demo.set_defaults(command="service.app.demo_command:demo")
