"""`credence try`: a file of predictions through the whole loop on this machine, and a report."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from rich.console import Console

from service.app.files.opening import chosen_format
from service.app.files.rows import UnusableFileError
from service.app.files_command import is_read_once
from service.app.init_command import ROW_BYTES, configuration_text, profile_file, reading_options, wishes_of
from service.app.own_command import NAME, own_command
from service.app.plain_text import plain
from service.app.proposal.profile import Profile
from service.app.proposal.propose import Proposal, propose
from service.app.proposal.renamed import send_command
from service.app.trial.answers import Answering
from service.app.trial.bad_cells import MOST_BAD, without_bad_scores
from service.app.trial.configuration import default_labels
from service.app.trial.example import write_example
from service.app.trial.file_stamp import stamp_of
from service.app.trial.html_report import html_report
from service.app.trial.results import NextSteps
from service.app.trial.rows import answerable_rows, has_truth
from service.app.trial.run import TrialPlan, try_plan
from service.app.trial.terminal import print_result
from service.app.try_parser import EXAMPLE
from service.app.wide_console import wide_console
from service.demo.world import MODEL
from service.domain.errors import ConfigurationError, misuse

_STEM = "credence-try"

_NO_ITEM = (
    "No command sends this file: no column names the item of each row, by which labels find their "
    "predictions. Add one, or name it with --item COLUMN: then `credence predictions send` sends the file."
)


def try_file(options: argparse.Namespace) -> int:
    """Try a file; the exit code.

    Raises:
        ConfigurationError: the options do not fit the file, or predictions need what it does not have.
        UnusableFileError: the file cannot be read, or has no predictions.
        OSError: the report cannot be written.
    """
    # The client logs each of its attempts; the command itself says what failed.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    console = wide_console()
    report, configuration = _outputs(options)
    if options.file == EXAMPLE:
        options.file = str(report.with_suffix(".csv"))
        options.model = options.model or MODEL
        write_example(Path(options.file))
        console.print(f"{options.file}: written; the recording that is tried", markup=False, soft_wrap=True)
    plan, text = _plan(options, configuration, console)
    code, result = try_plan(plan, console)
    if result is not None:
        for path, content in ((configuration, text), (report, html_report(result))):
            with path.open("x", encoding="utf-8") as handle:
                handle.write(content)
        print_result(console, result)
        print(f"{report}: the report, for a browser")
    return code


def _plan(options: argparse.Namespace, configuration: Path, console: Console) -> tuple[TrialPlan, str]:
    """The plan of a trial, and the text of the configuration that is proposed."""
    if is_read_once(options.file):
        raise misuse(plain(options.file), "the file is read twice, so it must be a regular file, no pipe")
    stamp = stamp_of(options.file)
    with console.status("Reading the file"):
        profile, proposal = _proposed(options)
        text = configuration_text(profile, proposal, options, config=str(configuration))
    plan = TrialPlan(
        path=options.file,
        stamp=stamp,
        kind=chosen_format(options.file, options.format),
        delimiter=options.delimiter,
        row_bytes=ROW_BYTES,
        source=plain(options.file),
        profile=profile,
        proposal=proposal,
        labels=min(
            options.labels or default_labels(proposal, is_answered=has_truth(proposal)),
            answerable_rows(profile, proposal),
        ),
        rate=options.rate,
        answering=Answering(options.delay, options.noise),
        cost=options.cost,
        next=_next_steps(proposal, options, str(configuration)),
    )
    return plan, text


def _proposed(options: argparse.Namespace) -> tuple[Profile, Proposal]:
    """The profile of the file and its proposal, in spite of some bad scores."""
    wishes = wishes_of(options)
    profile = profile_file(options)
    try:
        return profile, propose(profile, wishes)
    except ConfigurationError as error:
        try:
            cleaned = profile_file(options, prepare=without_bad_scores(wishes.columns))
        except UnusableFileError:
            raise error from None
        if cleaned.refused - profile.refused > MOST_BAD * profile.rows:
            raise
        return cleaned, propose(cleaned, wishes)


def _next_steps(proposal: Proposal, options: argparse.Namespace, config: str) -> NextSteps:
    model = proposal.settings.models[proposal.model]
    assessments = [f"{name}: {each.budget.labels:,} labels a day" for name, each in model.assessments.items()]
    servers = f"{own_command()} servers"
    note = f"These need Kafka and Redis. To try them, `{servers}` starts both on the addresses of {config}."
    if not proposal.roles.fields["item_id"]:
        note += f" {_NO_ITEM}"
    return NextSteps(config, assessments, _commands(proposal, options, config), note)


def _commands(proposal: Proposal, options: argparse.Namespace, config: str) -> Sequence[str]:
    credence = own_command()
    commands = [
        f"{credence} check --config {config}",
        f"{credence} topics create --config {config}",
        f"{credence} run --config {config}",
    ]
    if proposal.roles.fields["item_id"]:
        send = send_command(proposal.renamed, options.file, config, reading_options(options))
        commands.append(f"{credence}{send.removeprefix(NAME)}")
    return commands


def _outputs(options: argparse.Namespace) -> tuple[Path, Path]:
    """Where the report and the configuration go; neither exists."""
    suffixes = (".html", ".yaml", ".csv") if options.file == EXAMPLE else (".html", ".yaml")
    folder = Path() if options.report is None else options.report.parent
    if not os.access(folder, os.W_OK):
        problem = f"no file can be written in {plain(str(folder.absolute()))}; name one in another folder"
        raise misuse("--report", problem)
    if options.report is None:
        stems = (Path(_STEM if number == 1 else f"{_STEM}-{number}") for number in count(1))
        stem = next(each for each in stems if not any(each.with_suffix(end).exists() for end in suffixes))
        return stem.with_suffix(".html"), stem.with_suffix(".yaml")
    report: Path = options.report
    if report.suffix not in {".html", ".htm"}:
        raise misuse("--report", f"{plain(str(report))} must end in .html; the configuration ends in .yaml")
    for path in (report, *(report.with_suffix(end) for end in suffixes[1:])):
        if path.exists():
            raise misuse("--report", f"{plain(str(path))} exists; name another file, or remove it")
    return report, report.with_suffix(".yaml")
