"""The command line.

A command is named as `module:function`, and its module is imported when the command runs. So help, version
and usage errors need no library, and come at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

from service import __version__
from service.app.action_parsers import (
    add_command,
    add_dead_letters,
    add_gate,
    add_layouts,
    add_reference,
    add_reset,
    positive,
)
from service.app.demo_parsers import add_demo, add_servers
from service.app.docgen.generated_files import PAGES, add_check_option
from service.app.file_parsers import add_labels, add_predictions
from service.app.init_parser import add_init, share
from service.app.try_parser import add_try
from service.domain.errors import ConfigurationError, CredenceError
from service.replay import options as replay

EXIT_FAILED = 1
EXIT_BAD_CONFIGURATION = 2
EXIT_INTERRUPTED = 128 + 2
EXIT_BROKEN_PIPE = 128 + 13
"""What shells report of a program that ended by SIGINT, or by SIGPIPE: its reader has gone."""

DESCRIPTION = """\
Credence monitors deployed classifiers with few labels. It reads a model's predictions from Kafka, estimates
the accuracy and calibration of every group, requests the most informative labels by Thompson sampling, and
exports credible intervals to Prometheus.

Start with `credence demo`, or with `credence try FILE` on predictions of your own: both bring their own
broker and Redis. In production, propose a configuration from a sample of predictions with `credence init`
(docs/configuration.md has every key), create the topics with `credence topics create`, check everything with
`credence check --connect`, and start `credence run`.
"""

EPILOG = """\
exit codes: 0 done; 1 failed while running, such as without Kafka or Redis; 2 the configuration or the command
line is not valid; 130 interrupted; 141 the program that reads its output has ended. `credence gate --help`
lists those of gate.
The configuration is a YAML file; CREDENCE_* variables override its keys (CREDENCE_REDIS__URL is redis.url).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the process's exit code."""
    try:
        try:
            code = _run(arguments)
        except SystemExit as ended:
            # Of a pipe that breaks, rich makes an end like this.
            if isinstance(ended.__context__, BrokenPipeError):
                raise BrokenPipeError from ended
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except BrokenPipeError:
        # Whatever is still in the buffer goes nowhere; else the interpreter would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


def _run(arguments: Sequence[str] | None) -> int:
    options = _parsed(arguments)
    command: Callable[[argparse.Namespace], int] = resolve_name(options.command)
    try:
        return command(options)
    except BrokenPipeError:
        raise
    except ConfigurationError as error:
        print(f"credence: {error}", file=sys.stderr)
        return EXIT_BAD_CONFIGURATION
    except (CredenceError, OSError) as error:
        print(f"credence: {error}", file=sys.stderr)
        return EXIT_FAILED


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; what the chosen command does not know is an error of that command."""
    parser = build_parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.set_defaults(bad_usage=getattr(options, "bad_usage", None))
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


class _Parser(argparse.ArgumentParser):
    """A parser of which commands choose the exit code of a command line that is not valid."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and what is wrong, and exit."""
        self.print_usage(sys.stderr)
        code = self.get_default("bad_usage") or EXIT_BAD_CONFIGURATION
        self.exit(code, f"{self.prog}: error: {message}\n")


def build_parser() -> argparse.ArgumentParser:
    """Parser of all commands; the option `command` names the function of the one that was given."""
    parser = _Parser(
        prog="credence",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"credence {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    configured = argparse.ArgumentParser(add_help=False)
    configured.add_argument(
        "-c",
        "--config",
        type=Path,
        default=Path(os.environ.get("CREDENCE_CONFIG", "credence.yaml")),
        metavar="FILE",
        help="the configuration (default: $CREDENCE_CONFIG, else credence.yaml)",
    )
    add_init(commands)
    _add_operations(commands, configured)
    add_predictions(commands, configured)
    add_labels(commands, configured)
    add_dead_letters(commands, configured)
    add_layouts(commands, configured)
    add_reference(commands, configured)
    add_reset(commands, configured)
    add_gate(commands, configured)
    replay.add_parser(commands)
    _add_documents(commands)
    add_demo(commands, configured)
    add_try(commands)
    add_servers(commands)
    return parser


def _add_operations(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the commands that run Credence, and prepare it."""

    def add(name: str, function: str, text: str) -> argparse.ArgumentParser:
        return add_command(commands, name, function, text, configured)

    check = add("check", "check_command:check", "validate the configuration and show what it does")
    check.add_argument(
        "--connect",
        action="store_true",
        help="also test the connections to Kafka and Redis, the topics, and the permissions; changes nothing",
    )
    check.add_argument(
        "--role",
        action="append",
        choices=["predictions", "labels", "schedule", "serve"],
        help="with --connect: only what this role needs; repeatable (default: what `credence run` needs)",
    )
    check.add_argument(
        "--sample",
        type=positive,
        nargs="?",
        const=100,
        metavar="RECORDS",
        help="also read the newest records of the predictions topic (default: 100), and show what they say, "
        "and what would be refused; changes nothing",
    )
    check.add_argument(
        "--detect",
        type=share,
        default="0.1",
        metavar="DROP",
        help="forecast how soon a fall of a group's accuracy by this much is found (default: 0.1)",
    )
    run = add("run", "role_command:play", "run everything in one process")
    run.set_defaults(roles=["predictions", "labels", "schedule", "serve"])
    consume = add(
        "consume",
        "role_command:play",
        "run one consumer; processes share partitions",
    )
    consume.add_argument("roles", nargs=1, choices=["predictions", "labels"], help="topic to consume")
    schedule = add(
        "schedule", "role_command:play", "compute estimates every round; the leader also requests labels"
    )
    schedule.set_defaults(roles=["schedule"])
    serve = add("serve", "role_command:play", "serve the status page and its API, without requesting labels")
    serve.set_defaults(roles=["serve"])
    topics = add("topics", "setup_commands:topics", "create the Kafka topics")
    topics.add_argument("action", choices=["create"], help="create topics that do not exist")
    rights = add("rights", "setup_commands:rights", "print the minimal permissions of every role")
    rights.add_argument(
        "where",
        choices=["kafka", "redis"],
        help="redis: lines of an ACL file, without passwords; kafka: arguments of kafka-acls.sh",
    )
    add("status", "status_command:status", "show the current estimates as tables in the terminal")


def _add_documents(commands: Any) -> None:
    """Add the commands that write secrets, files and pages."""
    about = """\
Print a new bearer token of the vendor API with its SHA-256, or a new label key. Nothing is stored: put the
SHA-256 or the key into the configuration, and give the vendor the secret."""
    text = "generate a secret for a labelling vendor"
    vendors = add_command(commands, "vendors", "setup_commands:vendors", text, about=about)
    vendors.add_argument("what", choices=["token", "key"], help="kind of secret")

    about = "Write JSON Schemas, the AsyncAPI document and the page of all messages."
    contract = add_command(
        commands, "contract", "docgen.generated_files:contract", "write the message contract", about=about
    )
    _add_files(contract, "docs/contract")

    about = "Write docs/configuration.md, docs/metrics.md or docs/rights.md from the code."
    describe = add_command(
        commands, "describe", "docgen.generated_files:describe", "write a page of the docs", about=about
    )
    describe.add_argument("page", choices=sorted(PAGES))
    _add_files(describe, "docs")


def _add_files(parser: argparse.ArgumentParser, directory: str) -> None:
    parser.add_argument("directory", nargs="?", type=Path, default=Path(directory), metavar="DIR")
    add_check_option(parser)


if __name__ == "__main__":
    sys.exit(main())
