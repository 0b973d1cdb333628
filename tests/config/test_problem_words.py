"""What is said of an invalid configuration: in our words, with the place, and all of it at once."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest
from library_sentences import SENTENCES
from problem_lines import problem_lines
from pydantic import BaseModel

from service.config.assessments import ASSESSMENTS
from service.config.document import Document, parse_document
from service.config.loader import settings_of
from service.config.settings import Settings
from service.domain.errors import ConfigurationError

MODEL = "models: {animals: {classes: [cat, dog]}}\n"

WRONG: tuple[Any, ...] = (
    *(
        None,
        True,
        5,
        -1,
        0,
        1.5,
        1e30,
        math.nan,
        math.inf,
        dt.date(2024, 1, 31),
        "",
        "no",
        "a b!",
        "z" * 300,
    ),
    *(
        [],
        [None],
        ["x"],
        ["x"] * 40,
        [True],
        [1.5],
        [[]],
        {},
        {"a": None},
        {"a": 5},
        {"a": {}},
        {1: 2},
        {True: "x"},
    ),
    *({"a": ["x"]}, {"a": {"task": 5}}, {"a b": "x"}, "9" * 5_000),
)


def fields(annotation: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Paths of all keys that settings can have, with `a` for every name."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield (*path, name)
            yield from fields(field.annotation, (*path, name))
        return
    below: tuple[str | int, ...] = {dict: ("a",), list: (0,)}.get(get_origin(annotation), ())
    if below:
        yield (*path, *below)
    for argument in get_args(annotation):
        yield from fields(argument, (*path, *below))


def document(path: tuple[str | int, ...], value: Any, task: str) -> Any:
    """A document with a value at a path; assessments on it are of this task."""
    for i, part in reversed(list(enumerate(path))):
        value = [value] if part == 0 else {part: value}
        if path[:4] == ("models", "a", "assessments", "a") and i == 4:
            value = {"task": task} | value
    return value


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=".".join(map(str, p))) for p in dict.fromkeys(fields(Settings, ()))]
)
def test_no_sentence_of_the_library_is_shown_whatever_is_wrong(path: tuple[str | int, ...]) -> None:
    messages = []
    for task in ASSESSMENTS if "assessments" in path else ["estimation"]:
        for value in WRONG:
            try:
                settings_of(Document(document(path, value, task)), "credence.yaml", {})
            except ConfigurationError as error:
                messages.append(str(error))
    assert messages
    assert [message for message in messages if SENTENCES.search(message)] == []


# Every kind of mistake


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("http: {port: 70000}", "http.port (line 2): must be at most 65535, but is 70000"),
        ("http: {history_hours: 0}", "http.history_hours (line 2): must be more than 0, but is 0"),
        ("http: {port: many}", "http.port (line 2): must be a whole number, but is text"),
        ("http: {port: 1.5}", "http.port (line 2): must be a whole number, but is 1.5"),
        ("kafka: {flush_seconds: .inf}", "kafka.flush_seconds (line 2): must be a finite number, but is inf"),
        ("kafka: {fast_fetch: 7}", "kafka.fast_fetch (line 2): must be true or false, but is 7"),
        ("kafka: {start: middle}", "kafka.start (line 2): must be `earliest` or `latest`"),
        (
            "kafka: {topics: {labels: 'a b'}}",
            (
                "kafka.topics.labels (line 2): must start with a letter or a digit, "
                "followed by letters, digits, `.`, `_` or `-`"
            ),
        ),
        (
            "kafka: {bootstrap_servers: 'a:9092'}",
            "kafka.bootstrap_servers (line 2): must be a list, such as [a, b], but is text",
        ),
        (
            "redis:",
            (
                "redis (line 2): must be a section: lines of `key: value`, indented below the key, "
                "but is empty; give it a value, indent what belongs to it, or remove it"
            ),
        ),
        (
            "redis: {password: 12345}",
            "redis.password (line 2): must be text, but YAML reads it as a number; put it in quotes",
        ),
        ("redis: {ulr: x}", "redis.ulr (line 2): unknown key; did you mean `url`?"),
        (
            "min_accuracy: 0.8",
            (
                "min_accuracy (line 2): unknown key here; check the indentation: "
                "it belongs to models.<name>.alerts"
            ),
        ),
        (
            "assesments: {}",
            "assesments (line 2): unknown key; did you mean `models.<name>.assessments`?",
        ),
        (
            "monitoring: {colour: red}",
            "monitoring.colour (line 2): unknown key; accepted here: host, port",
        ),
    ],
)
def test_a_mistake_is_described_with_what_to_do(text: str, line: str) -> None:
    assert problem_lines(MODEL + text) == [f"  {line}"]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("yes", 'true or false; put it in quotes: "yes", "no"'),
        ("off", 'true or false; put it in quotes: "yes", "no"'),
        ("1.5", "a number; put it in quotes"),
        ("2024-01-31", "a date; put it in quotes"),
        ("2024-01-31 10:00:00", "a date; put it in quotes"),
    ],
)
def test_a_class_that_yaml_takes_for_something_else_needs_quotes(word: str, kind: str) -> None:
    [line] = problem_lines(f"models: {{animals: {{classes: [cat, {word}]}}}}\n")
    assert line == f"  models.animals.classes.1 (line 1): must be text, but YAML reads it as {kind}"


def test_a_name_that_yaml_takes_for_something_else_needs_quotes() -> None:
    [line] = problem_lines("models: {2024: {classes: [cat, dog]}}\n")
    assert line.endswith("as a name: must be text, but YAML reads it as a number; put it in quotes")


def test_a_section_that_is_not_indented_is_called_empty_and_its_keys_unknown() -> None:
    first, second = problem_lines("models:\nanimals:\n  classes: [cat, dog]\n")
    assert "models (line 1): must be a mapping" in first
    assert "but is empty; give it a value, indent what belongs to it" in first
    assert "animals (line 2): unknown key" in second


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("models:\n\ta: 1\n", "line 2, column 1", "a tab; indent with spaces"),
        ("a:\n    b: 1\n   c: 2\n", "line 3, column 4", "indented differently"),
        ("a: b: c\n", "line 1, column 5", "a `:` where none can be"),
        ("a: [1, 2\nb: 3\n", "line 2, column 2", "a bracket opened before is not closed"),
        ("a: 'b\n", "line 2, column 1", "a quote opened before is not closed"),
        ("a: @b\n", "line 1, column 4", "begins with a special character; put it in quotes"),
        ("a: *b\n", "line 1, column 4", "begins with `*`"),
        ("a: !b c\n", "line 1, column 4", "begins with `!`"),
        (
            "a: 2024-02-30\n",
            "line 1, column 4",
            "a number, date or time that does not exist; put it in quotes",
        ),
        ("a: b\nc\n", "line 3, column 1", "a key without `:`"),
    ],
)
def test_text_that_is_no_yaml_is_refused_with_the_place_and_what_to_do(
    text: str, place: str, words: str
) -> None:
    [line] = problem_lines(text)
    assert line.startswith(f"  (file): is not valid YAML at {place}: ")
    assert words in line


@pytest.mark.parametrize(
    "text", ["password: *hunter2", "password: !hunter2 x", "password: &hunter2 [*hunter3]"]
)
def test_what_is_no_yaml_is_not_quoted(text: str) -> None:
    assert "hunter" not in "".join(problem_lines(MODEL + f"redis: {{{text}}}\n"))


# Servers


@pytest.mark.parametrize("server", ["kafka", "10.0.0.1", "kafka.internal"])
def test_a_server_without_a_port_is_refused_with_an_example(server: str) -> None:
    assert problem_lines(f"{MODEL}kafka: {{bootstrap_servers: ['a:9092', {server}]}}\n") == [
        f"  kafka.bootstrap_servers.1 (line 2): the port is missing; write host:port, such as {server}:9092"
    ]


@pytest.mark.parametrize(
    "server", ["a:9092,b:9092", "PLAINTEXT://a:9092", "::1", "user:word@a:9092", "a:", ":9092", ""]
)
def test_what_is_no_server_is_refused_without_quoting_it(server: str) -> None:
    assert problem_lines(f"{MODEL}kafka: {{bootstrap_servers: ['{server}']}}\n") == [
        (
            "  kafka.bootstrap_servers.0 (line 2): must be one server as host:port, such as kafka:9092; "
            "a list has one per entry"
        )
    ]


@pytest.mark.parametrize("port", ["0", "65536"])
def test_a_server_with_an_impossible_port_is_refused(port: str) -> None:
    [line] = problem_lines(f"{MODEL}kafka: {{bootstrap_servers: ['a:{port}']}}\n")
    assert line.endswith(f"the port must be from 1 to 65535, but is {port}")


@pytest.mark.parametrize("server", ["kafka:9092", "127.0.0.1:1", "[::1]:65535", "kafka-0.kafka:9092"])
def test_a_server_has_a_host_and_a_port(server: str) -> None:
    document = parse_document(f"{MODEL}kafka: {{bootstrap_servers: ['{server}']}}\n", "credence.yaml")
    assert settings_of(document, "credence.yaml", {}).kafka.bootstrap_servers == [server]


def test_a_file_within_itself_ends_in_words() -> None:
    assert problem_lines(MODEL + "redis: &a {url: *a}\n") == [
        "  redis.url (line 2): must be text, but is a mapping"
    ]
    assert problem_lines("models: &a [*a]\n")
