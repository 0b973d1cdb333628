"""Parsers of `credence gate`, and of the commands with actions: `dead-letters`, `layouts` and others."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, Final

from service.domain.times import HOW_TIMES_ARE_WRITTEN, moment


def add_command(
    commands: Any,
    name: str,
    function: str,
    text: str,
    *parents: argparse.ArgumentParser,
    about: str = "",
    epilog: str = "",
) -> argparse.ArgumentParser:
    """Add a command, and return its parser.

    Args:
        commands: of the parser that the command belongs to.
        name: of the command.
        function: `module:function` in `service.app` that runs it; empty if only its actions run.
        text: its line in the list of commands.
        parents: have further options.
        about: the first paragraph of its own help; the text if empty.
        epilog: the last paragraph of its own help.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=about or text,
        epilog=epilog,
        parents=parents,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if function:
        parser.set_defaults(command=f"service.app.{function}")
    return parser


def add_actions(commands: Any, name: str, text: str, *, about: str, epilog: str = "") -> Any:
    """Add a command that has actions; each is added to the result."""
    parser = add_command(commands, name, "", text, about=about, epilog=epilog)
    return parser.add_subparsers(title="actions", metavar="ACTION", required=True)


def _add_confirmation(parser: argparse.ArgumentParser, *, dry_run: str, yes: str) -> None:
    """Add `--yes`, without which a command changes nothing, and `--dry-run`, which says so."""
    confirmation = parser.add_mutually_exclusive_group()
    confirmation.add_argument("--dry-run", action="store_true", help=f"{dry_run} (the default)")
    confirmation.add_argument("--yes", action="store_true", help=yes)


_DEAD_LETTERS = """\
Dead letters are messages that Credence could not use. It keeps them in the dead-letter topic.

`list` shows each one with its reason and its place in the source topic. It shows message contents, which may
be private, only with --values. `replay` sends messages back to the topic, partition and time that they came
from. Redis remembers what was sent, so each message is sent once. Without --yes, `replay` sends nothing.
"""

_DEAD_LETTERS_EXAMPLES = f"""\
{HOW_TIMES_ARE_WRITTEN}

examples:
  credence dead-letters list --summary
  credence dead-letters list --since 2h --reason unknown_class --json
  credence dead-letters replay --reason unknown_class --since 1d           show what would be sent
  credence dead-letters replay --reason unknown_class --since 1d --yes     send it
"""


def add_dead_letters(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add `credence dead-letters`; `configured` has the option that names the configuration."""
    text = "list dead letters, and redrive them after the fix"
    actions = add_actions(commands, "dead-letters", text, about=_DEAD_LETTERS, epilog=_DEAD_LETTERS_EXAMPLES)
    parents = configured, _filter_options()

    listing = add_command(actions, "list", "dead_letters_command:list_letters", "show dead letters", *parents)
    shape = listing.add_mutually_exclusive_group()
    shape.add_argument("--summary", action="store_true", help="count them by source topic and reason")
    shape.add_argument("--json", action="store_true", help="one JSON object per line instead of a table")
    listing.add_argument(
        "--values", action="store_true", help="show message contents too; they may be private"
    )

    again = add_command(
        actions, "replay", "dead_letters_command:replay_letters", "send messages back", *parents
    )
    _add_confirmation(again, dry_run="show what would be sent", yes="send")
    again.add_argument(
        "--retry-unfinished",
        action="store_true",
        help="also send messages whose earlier replay was interrupted; check first whether they arrived",
    )
    again.add_argument(
        "--not-read-again",
        action="store_true",
        help="also send predictions that a change of classes made valid, if the topic no longer held them "
        "when it was read again; predictions that it still held would count twice",
    )


def _filter_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    which = options.add_argument_group("which")
    which.add_argument("--reason", action="append", default=[], help="such as unknown_class; repeatable")
    which.add_argument("--source-topic", metavar="TOPIC", help="topic that the message came from")
    which.add_argument("--partition", type=int, metavar="P", help="partition that it came from")
    which.add_argument("--since", type=moment, metavar="TIME", help="written at this time or later")
    which.add_argument("--until", type=moment, metavar="TIME", help="written before this time")
    which.add_argument("--limit", type=positive, metavar="N", help="at most N, the oldest first")
    return options


def positive(text: str) -> int:
    """A whole number of 1 or more.

    Raises:
        argparse.ArgumentTypeError: the text is something else.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 1 or more")
    return int(text)


_LAYOUTS = """\
Redis keeps the traffic and the pool of a model under a layout: a fingerprint of its classes and of the
half-life of traffic. If you change one of these, a new layout begins. The old one stays, so that you can undo
the change, until you remove it here.

`list` shows all layouts. `remove` removes those that this configuration does not use. With --in-use it
removes those that it does use: stop all predictions consumers first, and start them afterwards; they rebuild
traffic and pool from what Kafka retains. Label requests and labels are not part of a layout. Without --yes,
`remove` removes nothing.
"""


def add_layouts(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add `credence layouts`."""
    text = "list stored traffic and pools, and remove those that are not used"
    actions = add_actions(commands, "layouts", text, about=_LAYOUTS)
    add_command(actions, "list", "store_commands:list_layouts", "show layouts", configured)
    removing = add_command(actions, "remove", "store_commands:remove_layouts", "remove layouts", configured)
    removing.add_argument(
        "--model", metavar="NAME", help="only layouts of this model; it need not be configured"
    )
    removing.add_argument(
        "--in-use",
        action="store_true",
        help="layouts that this configuration uses, to rebuild traffic and pools from Kafka",
    )
    _add_confirmation(removing, dry_run="show what would be removed", yes="remove")


_REFERENCE = """\
A model's reference is the time that "now" is compared with. Unless you set a window, it is the first labels
of every group (models.<name>.reference.labels), and for the drift of unlabelled traffic the first predictions
(models.<name>.drift.reference_predictions).

`set` makes the predictions of a time window the reference. Later predictions are "now", and evidence starts
again with them: set the reference after a repair, or when you deploy a new version. Choose the window by the
time of a deployment, never by its labels: compared with a time chosen because it looks good, everything after
it looks worse than it is. `clear` removes the window. Nothing else changes; every process follows with its
next round.
"""

_REFERENCE_EXAMPLES = f"""\
{HOW_TIMES_ARE_WRITTEN}

examples:
  credence reference set animals                                   everything until now
  credence reference set animals --since 2026-01-31 --until 2026-02-07
  credence reference set animals --since 2h --until 2026-12-24     from two hours ago until then
  credence reference show
"""


def add_reference(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add `credence reference`."""
    text = 'show or set what "now" is compared with'
    actions = add_actions(commands, "reference", text, about=_REFERENCE, epilog=_REFERENCE_EXAMPLES)
    setting = add_command(actions, "set", "store_commands:set_reference", "set a window", configured)
    setting.add_argument("model", metavar="MODEL", help="name of the model")
    setting.add_argument(
        "--since", type=moment, default=-math.inf, metavar="TIME", help="predicted at this time or later"
    )
    setting.add_argument(
        "--until", type=moment, metavar="TIME", help="predicted before this time (default: now)"
    )
    text = "show the reference"
    showing = add_command(actions, "show", "store_commands:show_reference", text, configured)
    showing.add_argument("model", metavar="MODEL", nargs="?", help="name of the model (default: all models)")
    text = "remove the window; the first labels of every group are the reference again"
    clearing = add_command(actions, "clear", "store_commands:clear_reference", text, configured)
    clearing.add_argument("model", metavar="MODEL", help="name of the model")


_RESET = """\
Credence recognises a Redis that has lost what it had stored: one that was emptied, replaced, or restored from
an older state. It records what was lost, and reports it until you acknowledge it.

`show` prints the loss. `acknowledge` removes it: then page, `credence status` and alert report it no more.
Nothing else changes. Acknowledge it after you have restored a backup of Redis, or accepted the loss.
"""


def add_reset(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add `credence reset`."""
    text = "show or acknowledge that Redis has lost data"
    actions = add_actions(commands, "reset", text, about=_RESET)
    add_command(actions, "show", "store_commands:show_reset", "show the loss", configured)
    text = "stop reporting the loss"
    add_command(actions, "acknowledge", "store_commands:acknowledge_reset", text, configured)


EXIT_NO_ANSWER: Final = 3
"""Of `credence gate`, whose lower exit codes are answers."""

_GATE = """\
Is it shown that the accuracy of every group is at least alerts.min_accuracy? The answer is a certificate. Of
models with a group below the threshold, at most a share of evidence.alpha ever gets one, however often you
ask. So a pipeline may ask after every label, and release once the exit code is 0 (docs/certificate.md).

It reads Redis as `credence status` does, and changes nothing.
"""

_GATE_EXAMPLES = f"""\
exit codes: 0 shown: every group meets the threshold; 1 missed: a group is confirmed to be below it;
2 undecided: more labels are needed; {EXIT_NO_ANSWER} no answer: the command line or the configuration
is not valid, or Redis is unreachable.

examples:
  credence gate --model animals
  credence gate --model animals --grouping region --junit gate.xml
"""


def add_gate(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add `credence gate`."""
    text = "exit with 0 once every group is shown to meet the accuracy threshold"
    parser = add_command(
        commands, "gate", "gate_command:run_gate", text, configured, about=_GATE, epilog=_GATE_EXAMPLES
    )
    parser.add_argument("--model", required=True, metavar="MODEL", help="name of the model")
    parser.add_argument(
        "--grouping",
        action="append",
        metavar="NAME",
        help="repeatable (default: all groupings with a threshold that assessments request labels for)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="also write JUnit XML, a case for every group"
    )
    parser.set_defaults(bad_usage=EXIT_NO_ANSWER)
