"""`credence init`: a commented configuration from a sample of predictions."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from service.app.files.opening import READ_AT_ONCE, STANDARD_INPUT, chosen_format, open_rows
from service.app.files.rows import Table
from service.app.files_command import is_read_once
from service.app.init_parser import COLUMN_OPTIONS
from service.app.own_command import own_command
from service.app.plain_text import plain
from service.app.proposal.commented_yaml import commented
from service.app.proposal.heading import heading
from service.app.proposal.kafka_entries import Place
from service.app.proposal.profile import Profile, profile_rows
from service.app.proposal.propose import Proposal, Wishes, propose
from service.config.bounds import Bounds
from service.config.document import Document, parse_document
from service.config.loader import settings_of
from service.config.settings import Settings
from service.domain.errors import misuse
from service.domain.open_inference import TENSOR_RULES

_SERVERS = "CREDENCE_KAFKA__BOOTSTRAP_SERVERS"

ROW_BYTES = 4 * Bounds().message_bytes
"""Longest row: it may have columns that are not sent, so it may be longer than a message."""

_NEWEST_RECORDS = 10_000

_OF_REGISTRY = {"url", "username", "ca_file", "token_file"}
"""Settings of the schema registry that a configuration may show."""


def initialise(options: argparse.Namespace) -> int:
    """Print or write a configuration for a file or a topic.

    Raises:
        ConfigurationError: the options do not fit the sample, or predictions need what it does not have.
        UnusableFileError: the file cannot be read, or has no predictions.
        Unavailable: Kafka does not answer, or refuses.
    """
    if options.file is None and options.topic is None:
        raise misuse("FILE", "name a file, or a topic with --topic")
    if options.output is not None and options.output.exists():
        raise misuse("--output", f"{plain(str(options.output))} exists; name another file, or remove it")
    if options.topic is None:
        wishes = wishes_of(options)
        profile = profile_file(options)
        proposal, read_back, refused = propose(profile, wishes), "", ""
    else:
        connection = _connection(options.bootstrap_servers)
        profile, wishes, kept = _sampled_topic(options, connection)
        proposal = propose(profile, wishes)
        refused = _refusals(proposal, connection, kept) if kept else ""
        all_used = (
            f"Read back with this configuration: all of the first {len(kept):,} sampled records are used."
        )
        read_back = refused or (all_used if kept else "")
    config = str(options.output or "credence.yaml")
    text = configuration_text(
        profile, proposal, options, config=config, topic=options.topic, read_back=read_back
    )
    if options.output is None:
        print(text, end="")
        return 0
    with options.output.open("x", encoding="utf-8") as handle:
        handle.write(text)
    if refused:
        print(plain(refused), file=sys.stderr)
    check = f"{own_command()} check --config {shlex.quote(str(options.output))}"
    print(f"{options.output}: written; read its comments, then `{check}`")
    return 0


def configuration_text(
    profile: Profile,
    proposal: Proposal,
    options: argparse.Namespace,
    *,
    config: str,
    topic: str | None = None,
    read_back: str = "",
) -> str:
    """The commented YAML of a proposal that is to be saved as `config`; of records of a topic, or a file.

    Args:
        profile: of the sample.
        proposal: made from it.
        options: of the command line.
        config: path of the configuration.
        topic: that the records are of; None for a file of rows.
        read_back: what consumers would refuse of the records; empty if it is not known.
    """
    path = options.file if topic is None else None
    above = heading(
        profile,
        proposal,
        path=path,
        config=config,
        given=reading_options(options),
        parts="of records in equal parts from all partitions" if options.file is None else "of its lines",
        read_back=read_back,
    )
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
        place=Place(options.bootstrap_servers),
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


def _refusals(proposal: Proposal, connection: Settings, kept: Sequence[Any]) -> str:
    """What consumers would refuse of sampled records with a proposal."""
    from service.app.sample_check import refusals  # noqa: PLC0415 - with the clients

    # The proposal has no logins.
    registry = {"schema_registry": connection.kafka.schema_registry}
    kafka = proposal.settings.kafka.model_copy(update=registry)
    return refusals(proposal.settings.model_copy(update={"kafka": kafka}), kept)


def _sampled_topic(options: argparse.Namespace, settings: Settings) -> tuple[Profile, Wishes, Sequence[Any]]:
    """The profile of the newest records of a topic, the wishes with what is known of it, and some records."""
    # Files of rows need no client of Kafka.
    from service.app.proposal.topic_shape import sample_of  # noqa: PLC0415

    wishes = wishes_of(options)
    registry = settings.kafka.schema_registry
    with _records(options, settings) as (source, batches):
        sample = sample_of(batches, settings, model=options.model, given=wishes.columns, source=source)
        table = Table(None, sample.rows, unit=sample.unit)
        profile = _profile(table, source, options, most_rows=None, model_column=sample.model_column)
    place = Place(
        settings.kafka.bootstrap_servers,
        options.topic,
        {} if registry is None else registry.model_dump(include=_OF_REGISTRY, exclude_defaults=True),
        sample.tensors,
    )
    columns = wishes.columns
    if sample.tensors is not None:
        # Tensors that the user names are columns of the fields themselves.
        columns = {name: each for name, each in columns.items() if not each or name not in TENSOR_RULES}
    profile = replace(profile, records=sample.records)
    return profile, replace(wishes, columns=columns, place=place), sample.kept


@contextmanager
def _records(
    options: argparse.Namespace, settings: Settings
) -> Iterator[tuple[str, Iterable[Sequence[Any]]]]:
    """What the records of a topic are read from, and these in batches."""
    if options.file is not None:
        from service.app.proposal.dumped_records import dumped_records  # noqa: PLC0415

        path = Path(options.file)
        yield str(path), dumped_records(path, options.records, settings.bounds.message_bytes)
        return
    from service.app.proposal.topic_sample import newest_records  # noqa: PLC0415
    from service.kafka.clients import build_reader  # noqa: PLC0415

    # The client logs each of its attempts; the command itself says what failed.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    records = options.records or _NEWEST_RECORDS
    with closing(build_reader(settings.kafka)) as reader:
        source = f"the sample of topic {options.topic} (its newest {records:,} records)"
        yield source, newest_records(reader, options.topic, records)


def _profile(
    table: Table,
    source: str,
    options: argparse.Namespace,
    *,
    most_rows: int | None,
    model_column: str = "model",
) -> Profile:
    column = options.model_column
    return profile_rows(
        table,
        source,
        most_rows=most_rows,
        model=options.model,
        model_column=model_column if column is None else column,
    )


def _connection(servers: Sequence[str] | None) -> Settings:
    """Settings of Kafka: of the environment, as there is no configuration yet; `servers` replace its own."""
    kafka = {} if servers is None else {"bootstrap_servers": list(servers)}
    content = {"kafka": kafka, "models": {"sample": {"classes": ["0", "1"]}}}
    own = {name: value for name, value in os.environ.items() if not servers or name != _SERVERS}
    return settings_of(Document(content), "the environment", own)
