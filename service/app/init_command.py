"""`credence init`: a commented configuration from a sample of predictions."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

from service.app.files.opening import READ_AT_ONCE, STANDARD_INPUT, chosen_format, open_rows
from service.app.files.rows import Table
from service.app.files_command import is_read_once
from service.app.init_parser import COLUMN_OPTIONS
from service.app.plain_text import plain
from service.app.proposal.commented_yaml import commented
from service.app.proposal.heading import heading
from service.app.proposal.profile import Profile, profile_rows
from service.app.proposal.propose import Proposal, Wishes, propose
from service.config.bounds import Bounds
from service.config.document import Document, parse_document
from service.config.loader import settings_of
from service.config.settings import Settings
from service.domain.errors import misuse

_SERVERS = "CREDENCE_KAFKA__BOOTSTRAP_SERVERS"

ROW_BYTES = 4 * Bounds().message_bytes
"""Longest row: it may have columns that are not sent, so it may be longer than a message."""

_NEWEST_RECORDS = 10_000


def initialise(options: argparse.Namespace) -> int:
    """Print or write a configuration for a file or a topic.

    Raises:
        ConfigurationError: the options do not fit the sample, or predictions need what it does not have.
        UnusableFileError: the file cannot be read, or has no predictions.
        Unavailable: Kafka does not answer, or refuses.
    """
    if (options.file is None) == (options.topic is None):
        raise misuse("FILE", "name a file, or a topic with --topic: one of the two")
    if options.output is not None and options.output.exists():
        raise misuse("--output", f"{plain(str(options.output))} exists; name another file, or remove it")
    if options.topic is None:
        wishes = wishes_of(options)
        profile = profile_file(options)
    else:
        settings = _connection(options.bootstrap_servers)
        wishes = replace(
            wishes_of(options),
            servers=settings.kafka.bootstrap_servers,
            topic=None if options.topic == settings.kafka.topics.predictions else options.topic,
        )
        profile = _profile_topic(options, settings)
    proposal = propose(profile, wishes)
    text = configuration_text(profile, proposal, options, config=str(options.output or "credence.yaml"))
    if options.output is None:
        print(text, end="")
        return 0
    with options.output.open("x", encoding="utf-8") as handle:
        handle.write(text)
    print(f"{options.output}: written; read its comments, then `credence check --config {options.output}`")
    return 0


def configuration_text(
    profile: Profile, proposal: Proposal, options: argparse.Namespace, *, config: str
) -> str:
    """The commented YAML of a proposal that is to be saved as `config`."""
    above = heading(profile, proposal, path=options.file, config=config, given=reading_options(options))
    text = commented(proposal.entries, heading=above)
    # Read back as every command reads it.
    settings_of(parse_document(text, "the proposal"), "the proposal", {})
    return text


def reading_options(options: argparse.Namespace) -> list[str]:
    """The options that say how the file is read, as they were given."""
    kind = [] if options.format is None else ["--format", options.format]
    return kind if options.delimiter == "," else [*kind, "--delimiter", options.delimiter]


def wishes_of(options: argparse.Namespace) -> Wishes:
    """What the command line says of columns, classes, times and labels."""
    columns = {field: getattr(options, option) for field, option in COLUMN_OPTIONS.items()}
    return Wishes(
        columns={field: column for field, column in columns.items() if column is not None},
        attributes=options.attributes,
        classes=options.classes,
        model=options.model,
        within_days=options.decide_within,
        detect=options.detect,
        min_accuracy=options.min_accuracy,
        labels_per_day=options.labels_per_day,
        servers=options.bootstrap_servers,
    )


def profile_file(
    options: argparse.Namespace, *, prepare: Callable[[Table], Table] = lambda table: table
) -> Profile:
    """The profile of a file of predictions, read once.

    Args:
        options: of the command line.
        prepare: its table before that.

    Raises:
        ConfigurationError: its format is not known, or cannot be read from a pipe.
        UnusableFileError: it cannot be read, or has no predictions.
    """
    kind = chosen_format(options.file, options.format)
    if kind in READ_AT_ONCE and is_read_once(options.file):
        raise misuse(
            plain(options.file), "parquet and npz need a regular file: pipes are read once, in order"
        )
    with open_rows(
        options.file,
        kind=kind,
        delimiter=options.delimiter,
        row_bytes=ROW_BYTES,
        used=set,
    ) as table:
        source = "standard input" if options.file == STANDARD_INPUT else options.file
        return _profile(prepare(table), source, options, most_rows=options.records)


def _profile_topic(options: argparse.Namespace, settings: Settings) -> Profile:
    """The profile of the newest records of a topic."""
    # Files need no client of Kafka.
    from service.app.format_wiring import prediction_formats  # noqa: PLC0415
    from service.app.proposal.topic_sample import topic_table  # noqa: PLC0415
    from service.kafka.clients import build_reader  # noqa: PLC0415

    # The client logs each of its attempts; the command itself says what failed.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    records = options.records or _NEWEST_RECORDS
    with closing(build_reader(settings.kafka)) as reader:
        table = topic_table(
            reader,
            options.topic,
            records=records,
            message_bytes=settings.bounds.message_bytes,
            formats=prediction_formats(settings, any_model=True),
        )
        return _profile(
            table, f"the newest {records:,} records of topic {options.topic}", options, most_rows=None
        )


def _profile(table: Table, source: str, options: argparse.Namespace, *, most_rows: int | None) -> Profile:
    column = options.model_column
    return profile_rows(
        table,
        source,
        most_rows=most_rows,
        model=options.model,
        model_column="model" if column is None else column,
    )


def _connection(servers: Sequence[str] | None) -> Settings:
    """Settings of Kafka: of the environment, as there is no configuration yet; `servers` replace its own."""
    kafka = {} if servers is None else {"bootstrap_servers": list(servers)}
    content = {"kafka": kafka, "models": {"sample": {"classes": ["0", "1"]}}}
    own = {name: value for name, value in os.environ.items() if not servers or name != _SERVERS}
    return settings_of(Document(content), "the environment", own)
