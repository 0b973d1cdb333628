"""Settings: what is accepted, what is refused and how it is said, and the page about them."""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from service.app.docgen import configuration
from service.app.docgen.schemas import in_words
from service.config.loader import load_settings
from service.config.model import ModelSettings, decay_per_second
from service.config.settings import (
    KafkaSettings,
    RedisSettings,
    ScheduleSettings,
    Settings,
)
from service.domain.cells import SCORE_BIN
from service.domain.errors import ConfigurationError
from service.domain.groupings import ALL

COMMITTED = Path(__file__).parents[2] / "docs" / "configuration.md"
MODEL = "models: {animals: {classes: [cat, dog]}}\n"
PASSWORD = "hunter2-hunter2"


@cache
def page() -> str:
    """The page of the configuration, which takes half a second to write."""
    return configuration.configuration_page()


def load(directory: Path, text: str, environment: dict[str, str] | None = None) -> Settings:
    path = directory / "credence.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, environment or {})


def refused(directory: Path, text: str, environment: dict[str, str] | None = None) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load(directory, text, environment)
    return caught.value


def paths(error: ConfigurationError) -> list[str]:
    return [path for path, _ in error.problems]


def model_text(**keys: str) -> str:
    lines = "".join(f"    {key}: {value}\n" for key, value in {"classes": "[cat, dog]", **keys}.items())
    return f"models:\n  animals:\n{lines}"


def assessment_text(keys: str) -> str:
    return model_text(assessments=f"{{question: {{budget: {{labels: 10}}, {keys}}}}}")


# Defaults


def test_a_model_with_its_classes_is_enough(tmp_path: Path) -> None:
    assert load(tmp_path, MODEL).models["animals"].classes == ["cat", "dog"]


def test_everything_listens_and_connects_on_loopback_by_default(tmp_path: Path) -> None:
    settings = load(tmp_path, MODEL)
    assert settings.http.host == "127.0.0.1"
    assert settings.kafka.bootstrap_servers == ["127.0.0.1:9092"]
    assert settings.redis.url.get_secret_value() == "redis://127.0.0.1:6379/0"


def test_no_assessment_asks_for_labels_by_default(tmp_path: Path) -> None:
    assert load(tmp_path, MODEL).models["animals"].assessments == {}


def test_predictions_are_not_revealed_by_default(tmp_path: Path) -> None:
    settings = load(tmp_path, assessment_text("task: estimation"))
    assert settings.models["animals"].assessments["question"].reveal_prediction is False


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    settings = load(tmp_path, MODEL)
    with pytest.raises(ValidationError, match="frozen"):
        settings.log_level = "debug"


# The file


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"absent\.yaml does not exist; name another one"):
        load_settings(tmp_path / "absent.yaml", {})


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="directory"):
        load_settings(tmp_path, {})


@pytest.mark.parametrize("text", ["[]", "text", "3"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    [(path, problem)] = refused(tmp_path, text).problems
    assert path == "(file)"
    assert problem.startswith("must be a mapping at the top level: lines of `key: value`")


@pytest.mark.parametrize("text", ["", "# models\n", "---\n"])
def test_an_empty_file_is_called_empty(tmp_path: Path, text: str) -> None:
    message = str(refused(tmp_path, text))
    assert message.startswith(f"{tmp_path / 'credence.yaml'} is empty; it needs `models` at least")


def test_a_file_that_is_no_yaml_is_refused_with_the_place(tmp_path: Path) -> None:
    [(path, problem)] = refused(tmp_path, MODEL + "redis: {url: x\n").problems
    assert path == "(file)"
    assert "not valid YAML" in problem
    assert "line 3" in problem


@pytest.mark.parametrize("content", [b"redis: {prefix: \xff}\n", b"\x7fELF\x02\x01\x01\x00"])
def test_a_file_that_is_no_text_is_called_that(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "credence.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"credence\.yaml is not a text file.*name another one"):
        load_settings(path, {})


def test_a_file_that_cannot_be_read_is_called_that(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(MODEL)
    with pytest.raises(ConfigurationError, match=r"credence\.yaml cannot be read: Not a directory; make it"):
        load_settings(tmp_path / "file" / "credence.yaml", {})


def test_a_file_written_by_a_windows_editor_is_read(tmp_path: Path) -> None:
    path = tmp_path / "credence.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + MODEL.replace("\n", "\r\n").encode())
    assert load_settings(path, {}).models.keys() == {"animals"}


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, MODEL + "log_level: info\nlog_level: debug\n").problems == [
        ("log_level", "duplicate key, on lines 2 and 3; keep one of them")
    ]


def test_a_nested_key_given_twice_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, MODEL + "http:\n  port: 1\n  port: 2\n  port: 3\n").problems == [
        ("http.port", "duplicate key, on lines 3, 4 and 5; keep one of them")
    ]


def test_a_model_given_twice_is_refused(tmp_path: Path) -> None:
    text = "models:\n  a: {classes: [x, y]}\n  a: {classes: [x, z]}\n"
    assert "models.a (line 2): duplicate key" in str(refused(tmp_path, text))


def test_a_key_that_is_no_text_is_refused(tmp_path: Path) -> None:
    assert "not valid YAML" in str(refused(tmp_path, MODEL + "? [a, b]\n: 1\n"))


def test_a_merge_key_shares_settings_between_models(tmp_path: Path) -> None:
    text = (
        "models:\n"
        "  first: &shared {classes: [cat, dog], interval: 0.8}\n"
        "  second: {<<: *shared, interval: 0.9}\n"
    )
    models = load(tmp_path, text).models
    assert models["second"].classes == ["cat", "dog"]
    assert (models["first"].interval, models["second"].interval) == (0.8, 0.9)


# Unknown keys and impossible values


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (MODEL + "colour: red\n", "colour"),
        (MODEL + "kafka: {topcis: {}}\n", "kafka.topcis"),
        (MODEL + "kafka: {topics: {label: x}}\n", "kafka.topics.label"),
        (model_text(intervall="0.9"), "models.animals.intervall"),
        (assessment_text("polizy: random"), "models.animals.assessments.question.polizy"),
        (
            model_text(groupings="{g: {by: predicted_class, atribute: x}}"),
            "models.animals.groupings.g.atribute",
        ),
    ],
)
def test_an_unknown_key_is_named_by_its_path(tmp_path: Path, text: str, path: str) -> None:
    assert dict(refused(tmp_path, text).problems)[path].startswith("unknown key")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("log_level: info\n", "models"),
        ("models: {animals: {}}\n", "models.animals.classes"),
        (model_text(groupings="{g: {attribute: x}}"), "models.animals.groupings.g.by"),
        (model_text(assessments="{q: {}}"), "models.animals.assessments.q.budget"),
        (model_text(assessments="{q: {budget: {}}}"), "models.animals.assessments.q.budget.labels"),
    ],
)
def test_a_missing_key_is_named_by_its_path(tmp_path: Path, text: str, path: str) -> None:
    assert (path, "required, but missing; add it") in refused(tmp_path, text).problems


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (MODEL + "kafka: {bootstrap_servers: []}\n", "kafka.bootstrap_servers"),
        (MODEL + "kafka: {bootstrap_servers: broker}\n", "kafka.bootstrap_servers"),
        (MODEL + "kafka: {max_poll_records: 0}\n", "kafka.max_poll_records"),
        (MODEL + "kafka: {max_poll_records: 100001}\n", "kafka.max_poll_records"),
        (MODEL + "kafka: {flush_seconds: 0}\n", "kafka.flush_seconds"),
        (MODEL + "kafka: {flush_seconds: .inf}\n", "kafka.flush_seconds"),
        (MODEL + "kafka: {start: middle}\n", "kafka.start"),
        (MODEL + "kafka: {instance_id: 'a b'}\n", "kafka.instance_id"),
        (MODEL + "kafka: {metadata_seconds: 0}\n", "kafka.metadata_seconds"),
        (MODEL + "kafka: {topics: {labels: 'a b'}}\n", "kafka.topics.labels"),
        (MODEL + "kafka: {topics: {labels: same, predictions: same}}\n", "kafka.topics"),
        (MODEL + "redis: {timeout_seconds: -1}\n", "redis.timeout_seconds"),
        (MODEL + "redis: {prefix: ''}\n", "redis.prefix"),
        (MODEL + "http: {port: 65536}\n", "http.port"),
        (MODEL + "http: {port: -1}\n", "http.port"),
        (MODEL + "http: {port: 8401}\n", "monitoring.port"),
        (MODEL + "monitoring: {port: 8400}\n", "monitoring.port"),
        (MODEL + "bounds: {cells: 20000}\n", "bounds.cells"),
        (MODEL + "bounds: {attribute_values: 0}\n", "bounds.attribute_values"),
        (MODEL + "bounds: {table_bytes: 0}\n", "bounds.table_bytes"),
        (MODEL + "bounds: {pool_items: 0}\n", "bounds.pool_items"),
        (MODEL + "dead_letters: {pause_ratio: 1.5}\n", "dead_letters.pause_ratio"),
        (MODEL + "log_level: loud\n", "log_level"),
        (MODEL + "seed: -1\n", "seed"),
        ("models: {}\n", "models"),
        ("models: {'a b': {classes: [x, y]}}\n", "models.a b"),
        (model_text(classes="[cat]"), "models.animals.classes"),
        (model_text(classes="[cat, '']"), "models.animals.classes.1"),
        (model_text(classes="[cat, cat]"), "models.animals.classes"),
        (model_text(classes="[yes, cat]"), "models.animals.classes.0"),
        (model_text(score_bins="0"), "models.animals.score_bins"),
        (model_text(tensors="{colour: predict}"), "models.animals.tensors.colour"),
        (model_text(tensors="{score: ''}"), "models.animals.tensors.score"),
        (model_text(tensors="{score: max, time: max}"), "models.animals.tensors"),
        (model_text(tensors="{score: probabilities}"), "models.animals.tensors"),
        (model_text(tensors="{score: attributes.score}"), "models.animals.tensors"),
        (model_text(score_bins="-3"), "models.animals.score_bins"),
        (model_text(score_bins="100000000000000000000"), "models.animals.score_bins"),
        (model_text(score_bins="[0.5, 0.2]"), "models.animals.score_bins"),
        (model_text(score_bins="[0.5, 0.5]"), "models.animals.score_bins"),
        (model_text(score_bins="[0.0, 0.5]"), "models.animals.score_bins"),
        (model_text(score_bins="[0.5, 1.0]"), "models.animals.score_bins"),
        (model_text(score_bins="[0.5, .nan]"), "models.animals.score_bins"),
        (model_text(interval="0"), "models.animals.interval"),
        (model_text(interval="1"), "models.animals.interval"),
        (model_text(interval=".nan"), "models.animals.interval"),
        (model_text(traffic_half_life_days="0"), "models.animals.traffic_half_life_days"),
        (model_text(draw_half_life_hours="0"), "models.animals.draw_half_life_hours"),
        (model_text(draw_half_life_hours="soon"), "models.animals.draw_half_life_hours"),
        (model_text(label_half_life_days="-1"), "models.animals.label_half_life_days"),
        (model_text(forgetting="{run_length: 99}"), "models.animals.forgetting.run_length"),
        (model_text(prior="flat"), "models.animals.prior"),
        (model_text(alerts="{min_accuracy: 90}"), "models.animals.alerts.min_accuracy"),
        (model_text(groupings="{g: {by: colour}}"), "models.animals.groupings.g.by"),
        (model_text(groupings="{g: {by: attribute}}"), "models.animals.groupings.g"),
        (model_text(groupings="{g: {by: predicted_class, attribute: x}}"), "models.animals.groupings.g"),
        (model_text(groupings="{g: {by: superclass}}"), "models.animals.groupings.g"),
        (
            model_text(groupings="{g: {by: attribute, attribute: x, superclasses: {pet: [cat, dog]}}}"),
            "models.animals.groupings.g",
        ),
        (model_text(groupings="{all: {by: predicted_class}}"), "models.animals.groupings.all"),
        (model_text(groupings="{score_bin: {by: predicted_class}}"), "models.animals.groupings.score_bin"),
        (assessment_text("task: guessing"), "models.animals.assessments.question.task"),
        (assessment_text("task: identification, top_m: 0"), "models.animals.assessments.question.top_m"),
        (assessment_text("max_in_flight: 0"), "models.animals.assessments.question.max_in_flight"),
        (assessment_text("max_attempts: 101"), "models.animals.assessments.question.max_attempts"),
        (assessment_text("lease_seconds: 0"), "models.animals.assessments.question.lease_seconds"),
        (
            model_text(assessments="{q: {budget: {labels: 0}}}"),
            "models.animals.assessments.q.budget.labels",
        ),
        (
            model_text(assessments="{q: {budget: {labels: 1, per_days: 0}}}"),
            "models.animals.assessments.q.budget.per_days",
        ),
        ("models: {m: {classes: [a, b], drift: {window_hours: 0}}}", "models.m.drift.window_hours"),
        ("models: {m: {classes: [a, b], drift: {window_hours: .inf}}}", "models.m.drift.window_hours"),
        (
            "models: {m: {classes: [a, b], drift: {reference_predictions: 0}}}",
            "models.m.drift.reference_predictions",
        ),
        ("models: {m: {classes: [a, b], drift: {max_distance: 0}}}", "models.m.drift.max_distance"),
        ("models: {m: {classes: [a, b], drift: {max_distance: 1}}}", "models.m.drift.max_distance"),
        ("models: {m: {classes: [a, b], drift: {label_share: 1.1}}}", "models.m.drift.label_share"),
    ],
)
def test_an_impossible_value_is_named_by_its_path(tmp_path: Path, text: str, path: str) -> None:
    assert paths(refused(tmp_path, text)) == [path]


def test_a_score_bin_setting_that_is_neither_number_nor_edges_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, model_text(score_bins="many"))
    assert all(path.startswith("models.animals.score_bins") for path in paths(error))


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    error = refused(tmp_path, "log_level: loud\nhttp: {port: -1, colour: red}\nmodels: {}\n")
    assert sorted(paths(error)) == ["http.colour", "http.port", "log_level", "models"]


def test_the_message_names_the_file_and_every_key(tmp_path: Path) -> None:
    message = str(refused(tmp_path, MODEL + "http: {port: -1, colour: red}\n"))
    assert message.splitlines()[0] == f"{tmp_path / 'credence.yaml'} is not valid:"
    assert "  http.port (line 2): must be at least 0, but is -1" in message.splitlines()
    assert any(line.startswith("  http.colour (line 2): unknown key") for line in message.splitlines())


def test_the_lease_must_outlive_two_ticks(tmp_path: Path) -> None:
    error = refused(tmp_path, MODEL + "schedule: {tick_seconds: 5, lease_seconds: 9.9}\n")
    assert paths(error) == ["schedule"]
    assert "at least twice tick_seconds" in str(error)


def test_a_lease_of_two_ticks_is_enough(tmp_path: Path) -> None:
    settings = load(tmp_path, MODEL + "schedule: {tick_seconds: 5, lease_seconds: 10}\n")
    assert settings.schedule == ScheduleSettings(tick_seconds=5, lease_seconds=10)


# Classes, bins and half-lives


def test_numbers_as_classes_are_text(tmp_path: Path) -> None:
    settings = load(tmp_path, "models: {digits: {classes: [0, 1, '2']}}\n")
    assert settings.models["digits"].classes == ["0", "1", "2"]


def test_classes_that_are_the_same_as_text_are_refused(tmp_path: Path) -> None:
    assert paths(refused(tmp_path, "models: {digits: {classes: [1, '1']}}\n")) == ["models.digits.classes"]


def test_numbers_in_superclasses_are_text(tmp_path: Path) -> None:
    text = "models: {d: {classes: [0, 1], groupings: {g: {by: superclass, superclasses: {low: [0, 1]}}}}}\n"
    assert load(tmp_path, text).models["d"].groupings["g"].superclasses == {"low": ["0", "1"]}


def test_a_number_of_bins_makes_them_equally_wide() -> None:
    assert ModelSettings(classes=["a", "b"], score_bins=4).score_edges == (0.25, 0.5, 0.75)


def test_one_bin_has_no_inner_edges() -> None:
    assert ModelSettings(classes=["a", "b"], score_bins=1).score_edges == ()


def test_given_edges_are_kept() -> None:
    assert ModelSettings(classes=["a", "b"], score_bins=[0.5, 0.9]).score_edges == (0.5, 0.9)


def test_two_tensors_may_exchange_their_names() -> None:
    tensors = {"score": "probabilities", "probabilities": "score"}
    assert ModelSettings.model_validate({"classes": ["a", "b"], "tensors": tensors}).tensors == tensors


def test_a_half_life_halves() -> None:
    assert math.exp(-decay_per_second(7.0) * 7 * 86_400) == pytest.approx(0.5)


def test_without_a_half_life_nothing_decays(tmp_path: Path) -> None:
    never = model_text(traffic_half_life_days="null", draw_half_life_hours="null")
    model = load(tmp_path, never).models["animals"]
    assert (model.traffic_decay_per_second, model.label_decay_per_second) == (0.0, 0.0)
    assert model.draw_decay_per_second == 0.0


def test_draws_have_a_half_life_of_their_own(tmp_path: Path) -> None:
    model = load(tmp_path, model_text(traffic_half_life_days="30", draw_half_life_hours="6")).models[
        "animals"
    ]
    assert model.draw_decay_per_second == pytest.approx(math.log(2) / (6 * 3_600))
    assert model.traffic_decay_per_second == pytest.approx(math.log(2) / (30 * 86_400))


@pytest.mark.parametrize(
    ("forgetting", "run_length"),
    [("{}", 500), ("{run_length: 10_000}", 10_000), ("{after_change: false}", None)],
)
def test_changes_are_looked_for_unless_told_otherwise(
    tmp_path: Path, forgetting: str, run_length: float | None
) -> None:
    model = load(tmp_path, model_text(forgetting=forgetting)).models["animals"]
    assert model.change_run_length == run_length


@pytest.mark.parametrize(
    ("unrequested", "forgetting", "run_length"),
    [
        ("{items: census}", "{}", 5_000),
        ("{items: sampled, sampling_rate: 0.1}", "{after_change: true}", 5_000),
        ("{items: unknown}", "{}", 500),
        ("{items: census}", "{run_length: 700}", 700),
    ],
)
def test_labels_of_an_even_sample_of_traffic_have_a_longer_run_length_by_default(
    tmp_path: Path, unrequested: str, forgetting: str, run_length: int
) -> None:
    text = model_text(unrequested_labels=unrequested, forgetting=forgetting)
    assert load(tmp_path, text).models["animals"].change_run_length == run_length


# Groupings and assessments


def test_an_unknown_grouping_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    text = model_text(
        groupings="{region: {by: attribute, attribute: region}}",
        assessments="{q: {grouping: regoin, budget: {labels: 1}}}",
    )
    assert refused(tmp_path, text).problems == [
        (
            "models.animals.assessments.q.grouping",
            "unknown grouping 'regoin'; this model has all, score_bin, region",
        )
    ]


@pytest.mark.parametrize("grouping", [ALL, SCORE_BIN])
def test_the_groupings_that_are_always_there_can_be_assessed(tmp_path: Path, grouping: str) -> None:
    settings = load(tmp_path, assessment_text(f"grouping: {grouping}"))
    assert settings.models["animals"].assessments["question"].grouping == grouping


def test_identification_among_a_single_group_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, assessment_text("task: identification, grouping: all"))
    assert error.problems == [
        ("models.animals.assessments.question.grouping", "identification requires more than one group")
    ]


def superclass_problems(directory: Path, superclasses: str) -> list[tuple[str, str]]:
    text = model_text(groupings=f"{{g: {{by: superclass, superclasses: {superclasses}}}}}")
    return refused(directory, text).problems


def test_a_superclass_of_an_unknown_class_is_refused(tmp_path: Path) -> None:
    assert superclass_problems(tmp_path, "{pet: [cat, dog, cow]}") == [
        ("models.animals.groupings.g.superclasses", "'cow' is not a class of the model")
    ]


def test_a_class_without_a_superclass_is_refused(tmp_path: Path) -> None:
    assert superclass_problems(tmp_path, "{pet: [cat]}") == [
        ("models.animals.groupings.g.superclasses", "class 'dog' is in 0 superclasses; it must be in one")
    ]


def test_a_class_in_two_superclasses_is_refused(tmp_path: Path) -> None:
    assert superclass_problems(tmp_path, "{pet: [cat, dog], feline: [cat]}") == [
        ("models.animals.groupings.g.superclasses", "class 'cat' is in 2 superclasses; it must be in one")
    ]


BY_REGION = model_text(groupings="{region: {by: attribute, attribute: where}}")
TABLE_BYTES = 2 * 10 * 24 + 12 * 10 * 24
"""All traffic by two classes and ten score bins, and ten values and the two reserved ones by score bin."""


def test_tables_that_do_not_fit_their_bound_are_refused_with_what_to_change(tmp_path: Path) -> None:
    text = f"bounds: {{attribute_values: 10, table_bytes: {TABLE_BYTES - 1}}}\n" + BY_REGION
    [(path, problem)] = refused(tmp_path, text).problems
    assert path == "bounds.table_bytes"
    assert f"'animals' take up to {TABLE_BYTES:,} bytes in one partition" in problem
    assert f"raise it to {TABLE_BYTES}, lower bounds.attribute_values, or use fewer score bins" in problem


def test_the_bound_on_tables_may_be_filled(tmp_path: Path) -> None:
    text = f"bounds: {{attribute_values: 10, table_bytes: {TABLE_BYTES}}}\n" + BY_REGION
    assert load(tmp_path, text).cell_space("animals").bounds.attribute_values == 10


def test_the_space_of_a_model_has_its_groupings_and_the_two_that_are_always_there(tmp_path: Path) -> None:
    region = "region: {by: attribute, attribute: where}"
    kind = "kind: {by: superclass, superclasses: {pet: [cat, dog]}}"
    settings = load(tmp_path, model_text(groupings=f"{{{region}, {kind}}}"))
    space = settings.cell_space("animals")
    assert list(space.groupings) == [ALL, SCORE_BIN, "region", "kind"]
    assert space.attributes == ("where",)
    assert space.groupings["kind"].superclasses == {"cat": "pet", "dog": "pet"}


# The environment


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    settings = load(tmp_path, MODEL + "http: {port: 1}\n", {"CREDENCE_HTTP__PORT": "2"})
    assert settings.http.port == 2


def test_the_environment_adds_to_the_file(tmp_path: Path) -> None:
    environment = {"CREDENCE_KAFKA__TOPICS__LABELS": "answers"}
    assert load(tmp_path, MODEL, environment).kafka.topics.labels == "answers"


def test_the_environment_fills_a_section_that_the_file_leaves_empty(tmp_path: Path) -> None:
    settings = load(tmp_path, MODEL + "redis:\n", {"CREDENCE_REDIS__PREFIX": "other"})
    assert settings.redis.prefix == "other"


def test_a_variable_may_hold_a_list(tmp_path: Path) -> None:
    settings = load(tmp_path, MODEL, {"CREDENCE_KAFKA__BOOTSTRAP_SERVERS": "[one:9092, two:9092]"})
    assert settings.kafka.bootstrap_servers == ["one:9092", "two:9092"]


def test_a_variable_may_hold_null(tmp_path: Path) -> None:
    settings = load(tmp_path, MODEL, {"CREDENCE_MODELS__ANIMALS__TRAFFIC_HALF_LIFE_DAYS": "null"})
    assert settings.models["animals"].traffic_half_life_days is None


def test_an_address_in_the_environment_is_text_as_it_stands(tmp_path: Path) -> None:
    url = "redis://:a%23b: {c}@redis:6379/0"
    assert load(tmp_path, MODEL, {"CREDENCE_REDIS__URL": url}).redis.url.get_secret_value() == url


def test_a_hash_key_of_digits_in_the_environment_is_text(tmp_path: Path) -> None:
    settings = load(tmp_path, MODEL, {"CREDENCE_HASH_KEY": "0" * 31 + "1"})
    assert settings.hash_key_bytes() == bytes(15) + b"\x01"


@pytest.mark.parametrize(
    ("variable", "path"),
    [
        ("CREDENCE_COLOUR", "colour"),
        ("CREDENCE_REDIS__ULR", "redis.ulr"),
        ("CREDENCE_REDIS_URL", "redis_url"),
        ("CREDENCE_MODELS__ANIMALS__INTERVALL", "models.animals.intervall"),
    ],
)
def test_a_variable_that_spells_no_key_is_refused_by_the_path_it_spells(
    tmp_path: Path, variable: str, path: str
) -> None:
    assert f"  {path} ({variable}): unknown key" in str(refused(tmp_path, MODEL, {variable: "x"}))


def test_a_variable_with_an_impossible_value_is_refused_by_its_path(tmp_path: Path) -> None:
    assert paths(refused(tmp_path, MODEL, {"CREDENCE_HTTP__PORT": "many"})) == ["http.port"]


def test_a_variable_below_a_plain_value_is_refused_by_its_name(tmp_path: Path) -> None:
    error = refused(tmp_path, MODEL + "log_level: info\n", {"CREDENCE_LOG_LEVEL__X": "1"})
    assert paths(error) == ["CREDENCE_LOG_LEVEL__X"]


def test_a_variable_that_is_no_yaml_is_refused_by_its_name(tmp_path: Path) -> None:
    assert paths(refused(tmp_path, MODEL, {"CREDENCE_LOG_LEVEL": "["})) == ["CREDENCE_LOG_LEVEL"]


# How Kafka is reached


def security_text(keys: str) -> str:
    return MODEL + f"kafka: {{security: {{{keys}}}}}\n"


@pytest.mark.parametrize(
    "keys",
    [
        "protocol: plaintext",
        "protocol: ssl",
        "protocol: ssl, ca_file: ca.pem, certificate_file: me.pem, key_file: me.key, key_password: word",
        "protocol: sasl_plaintext, mechanism: PLAIN, username: me, password: word",
        "protocol: sasl_ssl, ca_file: ca.pem, mechanism: SCRAM-SHA-512, username: me, password: word",
    ],
)
def test_security_that_makes_sense_is_accepted(tmp_path: Path, keys: str) -> None:
    assert load(tmp_path, security_text(keys)).kafka.security.protocol in keys


@pytest.mark.parametrize(
    ("keys", "at"),
    [
        ("ca_file: ca.pem", ["ca_file"]),
        ("protocol: sasl_plaintext, ca_file: ca.pem", ["ca_file", "mechanism"]),
        ("protocol: sasl_plaintext, mechanism: PLAIN", ["username", "password"]),
        ("protocol: sasl_ssl, mechanism: PLAIN, username: me", ["password"]),
        ("username: me", ["username"]),
        ("protocol: ssl, username: me", ["username"]),
        ("protocol: ssl, certificate_file: me.pem", ["key_file"]),
        ("protocol: ssl, key_file: me.key", ["certificate_file"]),
        ("protocol: ssl, key_password: word", ["key_file"]),
        ("protocol: tls", ["protocol"]),
        ("protocol: sasl_ssl, mechanism: GSSAPI, username: me, password: word", ["mechanism"]),
    ],
)
def test_security_that_cannot_work_is_refused_by_its_keys(tmp_path: Path, keys: str, at: list[str]) -> None:
    assert paths(refused(tmp_path, security_text(keys))) == [f"kafka.security.{key}" for key in at]


def test_a_variable_of_a_key_that_names_a_file_is_not_read_from_it(tmp_path: Path) -> None:
    environment = {"CREDENCE_KAFKA__SECURITY__PROTOCOL": "ssl", "CREDENCE_KAFKA__SECURITY__CA_FILE": "ca.pem"}
    assert load(tmp_path, MODEL, environment).kafka.security.ca_file == "ca.pem"


def test_a_password_of_digits_in_the_environment_or_in_a_file_is_text(tmp_path: Path) -> None:
    (tmp_path / "word").write_text("0123\n", encoding="utf-8")
    login = "protocol: sasl_ssl, mechanism: PLAIN, username: me"
    for environment in (
        {"CREDENCE_KAFKA__SECURITY__PASSWORD": "0123"},
        {"CREDENCE_KAFKA__SECURITY__PASSWORD_FILE": str(tmp_path / "word")},
    ):
        password = load(tmp_path, security_text(login), environment).kafka.security.password
        assert password is not None
        assert password.get_secret_value() == "0123"


# How Redis is reached


@pytest.mark.parametrize("url", ["redis://redis", "rediss://redis:6380/", "redis://redis:6379/0"])
def test_a_cluster_is_reached_by_the_address_of_a_node(tmp_path: Path, url: str) -> None:
    assert load(tmp_path, MODEL + f"redis: {{cluster: true, url: '{url}'}}\n").redis.cluster


@pytest.mark.parametrize("url", ["redis://redis:6379/1", "unix:///run/redis.sock"])
def test_a_cluster_has_no_other_database_and_no_socket(tmp_path: Path, url: str) -> None:
    assert paths(refused(tmp_path, MODEL + f"redis: {{cluster: true, url: '{url}'}}\n")) == ["redis.url"]


# Variables


def test_variables_of_others_are_left_alone(tmp_path: Path) -> None:
    assert load(tmp_path, MODEL, {"PATH": "/bin", "credence_log_level": "x", "XCREDENCE_A": "y"})


def test_the_variable_that_names_the_file_is_no_setting(tmp_path: Path) -> None:
    assert load(tmp_path, MODEL, {"CREDENCE_CONFIG": "/etc/credence.yaml"})


def test_the_environment_may_bring_a_model_of_its_own(tmp_path: Path) -> None:
    settings = load(tmp_path, "log_level: info\n", {"CREDENCE_MODELS__DIGITS__CLASSES": "[0, 1]"})
    assert settings.models["digits"].classes == ["0", "1"]


def test_a_value_may_be_read_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("redis://:word@redis:6379/0\n", encoding="utf-8")
    settings = load(tmp_path, MODEL, {"CREDENCE_REDIS__URL_FILE": str(secret)})
    assert settings.redis.url.get_secret_value() == "redis://:word@redis:6379/0"


def test_a_variable_and_its_file_together_are_refused(tmp_path: Path) -> None:
    environment = {"CREDENCE_REDIS__PREFIX": "plain", "CREDENCE_REDIS__PREFIX_FILE": str(tmp_path / "prefix")}
    assert paths(refused(tmp_path, MODEL, environment)) == ["CREDENCE_REDIS__PREFIX_FILE"]


def test_a_value_that_fits_no_type_is_told_once_by_its_key(tmp_path: Path) -> None:
    error = refused(tmp_path, "models: {animals: {classes: [cat, dog], score_bins: many}}")
    assert paths(error) == ["models.animals.score_bins"]


def test_looking_for_as_many_groups_as_there_are_is_refused(tmp_path: Path) -> None:
    text = """
models:
  animals:
    classes: [cat, dog]
    groupings: {class: {by: predicted_class}}
    assessments: {worst: {task: identification, grouping: class, top_m: 2, budget: {labels: 1}}}
"""
    assert paths(refused(tmp_path, text)) == ["models.animals.assessments.worst.top_m"]


def test_a_secret_file_that_is_missing_is_named_by_its_variable(tmp_path: Path) -> None:
    error = refused(tmp_path, MODEL, {"CREDENCE_REDIS__URL_FILE": str(tmp_path / "absent")})
    assert error.problems == [
        ("CREDENCE_REDIS__URL_FILE", "names a file that cannot be read: No such file or directory")
    ]


def test_a_secret_file_that_is_no_text_is_named_by_its_variable(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    error = refused(tmp_path, MODEL, {"CREDENCE_REDIS__URL_FILE": str(tmp_path / "binary")})
    assert paths(error) == ["CREDENCE_REDIS__URL_FILE"]


# Tasks and metrics

ANIMALS = """
models:
  animals:
    classes: [cat, dog, owl]
    groupings:
      class: {{by: predicted_class}}
      kind: {{by: superclass, superclasses: {{pet: [cat, dog], bird: [owl]}}}}
      region: {{by: attribute, attribute: region}}
    {costs}
    assessments: {{ask: {{budget: {{labels: 9}}, {keys}}}}}
"""
COSTS = "costs: {mistakes: [{true: cat, predicted: dog, cost: 10}]}"


@pytest.mark.parametrize(
    "keys",
    [
        "metric: overall_accuracy",
        "metric: calibration, grouping: region",
        "metric: confusion, grouping: class",
        "task: identification, metric: cost, grouping: class, top_m: 2",
        "task: identification, metric: calibration, extreme: lowest, grouping: kind",
        "task: comparison, between: [pet, bird], grouping: kind",
        "task: comparison, between: [north, south], region: 0.1, grouping: region",
        "task: comparison, between: ['[0,0.1)', '[0.9,1]'], grouping: score_bin",
    ],
)
def test_what_makes_sense_is_accepted(tmp_path: Path, keys: str) -> None:
    assert load(tmp_path, ANIMALS.format(costs=COSTS, keys=keys))


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ("task: comparison, grouping: class", "between"),
        ("between: [cat, dog], grouping: class", "between"),
        ("task: comparison, between: [cat, yak], grouping: class", "between"),
        ("task: comparison, between: [pet, cat], grouping: kind", "between"),
        ("task: comparison, between: [cat, cat], grouping: class", "between"),
        ("task: comparison, between: [cat, dog]", "grouping"),
        ("task: comparison, between: [cat], grouping: class", "between"),
        ("task: comparison, between: [cat, dog], region: 0, grouping: class", "region"),
        ("task: comparison, metric: cost, between: [cat, dog], grouping: class", "metric"),
        ("task: identification, metric: confusion, grouping: class", "metric"),
        ("task: identification, metric: overall_accuracy", "metric"),
        ("metric: cost, grouping: class", "metric"),
        ("task: identification, metric: cost, grouping: region", "grouping"),
        ("metric: confusion, grouping: kind", "grouping"),
        ("metric: confusion", "grouping"),
        ("metric: overall_accuracy, grouping: class", "grouping"),
        ("extreme: lowest, grouping: class", "extreme"),
        ("task: identification, grouping: class, top_m: 4", "top_m"),
        ("policy: greedy", "policy"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_key(tmp_path: Path, keys: str, path: str) -> None:
    error = refused(tmp_path, ANIMALS.format(costs=COSTS, keys=keys))
    assert paths(error) == [f"models.animals.assessments.ask.{path}"]


def test_cost_without_costs_is_refused(tmp_path: Path) -> None:
    keys = "task: identification, metric: cost, grouping: class"
    error = refused(tmp_path, ANIMALS.format(costs="", keys=keys))
    assert error.problems == [("models.animals.assessments.ask.metric", "cost requires the model's `costs`")]


@pytest.mark.parametrize(
    ("mistakes", "path"),
    [
        ("[{true: yak, predicted: dog, cost: 1}]", "mistakes.0.true"),
        ("[{true: dog, predicted: yak, cost: 1}]", "mistakes.0.predicted"),
        ("[{true: dog, predicted: dog, cost: 1}]", "mistakes.0"),
        ("[{true: dog, predicted: cat, cost: 1}, {true: dog, predicted: cat, cost: 2}]", "mistakes.1"),
        ("[{true: dog, predicted: cat, cost: -1}]", "mistakes.0.cost"),
    ],
)
def test_costs_of_what_is_no_mistake_are_refused(tmp_path: Path, mistakes: str, path: str) -> None:
    error = refused(tmp_path, ANIMALS.format(costs=f"costs: {{mistakes: {mistakes}}}", keys=""))
    assert paths(error) == [f"models.animals.costs.{path}"]


def test_costs_without_a_grouping_by_predicted_class_are_refused(tmp_path: Path) -> None:
    assert paths(refused(tmp_path, model_text(costs="{default: 2}"))) == ["models.animals.costs"]


def test_confusion_of_very_many_classes_is_refused(tmp_path: Path) -> None:
    classes = ", ".join(f"c{i}" for i in range(1_001))
    keys = "{ask: {metric: confusion, grouping: class, budget: {labels: 1}}}"
    text = model_text(classes=f"[{classes}]", groupings="{class: {by: predicted_class}}", assessments=keys)
    assert paths(refused(tmp_path, text)) == ["models.animals.assessments.ask.metric"]


@pytest.mark.parametrize(("metric", "end"), [("accuracy", "lowest"), ("calibration", "highest")])
def test_the_end_that_is_looked_for_is_the_worse_one_by_default(
    tmp_path: Path, metric: str, end: str
) -> None:
    keys = f"task: identification, metric: {metric}, grouping: class"
    settings = load(tmp_path, ANIMALS.format(costs="", keys=keys))
    assert settings.models["animals"].assessments["ask"].end == end


# Secrets


def test_a_hash_key_is_sixteen_bytes(tmp_path: Path) -> None:
    key = "000102030405060708090a0b0c0d0e0f"
    assert load(tmp_path, MODEL + f"hash_key: '{key}'\n").hash_key_bytes() == bytes(range(16))


def test_without_a_hash_key_there_are_no_bytes(tmp_path: Path) -> None:
    assert load(tmp_path, MODEL).hash_key_bytes() is None


@pytest.mark.parametrize("key", ["00", "0" * 31, "0" * 34, "g" * 32])
def test_another_hash_key_is_refused_by_its_path(tmp_path: Path, key: str) -> None:
    error = refused(tmp_path, MODEL + f"hash_key: '{key}'\n")
    assert error.problems == [("hash_key", "must be 32 hexadecimal digits")]


def test_secrets_do_not_show_in_the_settings(tmp_path: Path) -> None:
    key = "00112233445566778899aabbccddeeff"
    settings = load(tmp_path, MODEL + f"hash_key: {key}\nredis: {{url: 'redis://:{PASSWORD}@redis'}}\n")
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert PASSWORD not in shown
        assert key not in shown


@pytest.mark.parametrize(
    "text",
    [
        f"{MODEL}redis: {{url: 'redis://:{PASSWORD}@redis\n",
        f"{MODEL}redis:\n  url: 'redis://:{PASSWORD}@redis'\n  url: 'redis://:{PASSWORD}@redis'\n",
        f"{MODEL}redis: {{url: ['redis://:{PASSWORD}@redis']}}\n",
        f"{MODEL}redis: {{url: 'redis://:{PASSWORD}@redis', colour: red}}\n",
        f"{MODEL}redis: 'redis://:{PASSWORD}@redis'\n",
        f"{MODEL}hash_key: {PASSWORD}\n",
        f"{MODEL}hash_key: [{PASSWORD}]\n",
    ],
)
def test_secrets_do_not_show_when_the_file_is_refused(tmp_path: Path, text: str) -> None:
    error = refused(tmp_path, text)
    assert PASSWORD not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("variable", ["CREDENCE_HASH_KEY", "CREDENCE_REDIS__URL__X", "CREDENCE_REDIS__ULR"])
def test_secrets_do_not_show_when_the_environment_is_refused(tmp_path: Path, variable: str) -> None:
    error = refused(tmp_path, MODEL + "redis: {url: 'redis://redis'}\n", {variable: PASSWORD})
    assert PASSWORD not in "".join(traceback.format_exception(error))


# The page


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page(), flags=re.DOTALL)


def every_model(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        for inner in models_in(field.annotation):
            yield from every_model(inner)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def test_the_example_of_the_page_loads(tmp_path: Path) -> None:
    assert load(tmp_path, code_blocks("yaml")[0]).models["animals"].assessments


def test_the_example_of_the_page_shows_every_section(tmp_path: Path) -> None:
    shown = load(tmp_path, code_blocks("yaml")[0]).model_fields_set
    optional = {name for name, field in Settings.model_fields.items() if field.default is None}
    assert shown == set(Settings.model_fields) - optional


def test_the_example_of_the_page_shows_the_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, code_blocks("yaml")[0])
    assert settings.kafka == KafkaSettings()
    assert settings.redis == RedisSettings(url=SecretStr("redis://127.0.0.1:6379/0"))


def test_the_faulty_example_of_the_page_gives_the_message_beside_it(tmp_path: Path) -> None:
    message = str(refused(tmp_path, code_blocks("yaml")[1]))
    assert message.replace(f"{tmp_path}/", "") == code_blocks("text")[0].rstrip("\n")


@pytest.mark.parametrize(
    "model", [pytest.param(m, id=m.__name__) for m in dict.fromkeys(every_model(Settings))]
)
def test_every_setting_is_described(model: type[BaseModel]) -> None:
    rows = [line.split(" | ") for line in page().splitlines() if line.startswith("| `")]
    meanings = {row[0].strip("|` ").rsplit(".", 1)[-1]: row[3].strip("| ") for row in rows}
    assert [name for name in model.model_fields if not meanings.get(name)] == []


def test_required_settings_are_marked() -> None:
    assert "| `models.<name>.classes` | list" in page()
    assert "| **required** | all classes, in order |" in page()


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1}, "integer (>= 1)"),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "number (> 0, < 1)"),
        ({"type": "integer", "maximum": 65_535}, "integer (<= 65,535)"),
        ({"enum": ["a", "b"], "type": "string"}, "`a`, `b`"),
        ({"const": "a", "type": "string"}, "`a`"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer or null"),
        ({"type": "array", "minItems": 2, "items": {"type": "string"}}, "list (>= 2 entries) of string"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "map of string to string"),
        ({"type": "string", "format": "password"}, "secret"),
        ({"type": "string", "pattern": "^x$", "maxLength": 9}, "name (<= 9 characters)"),
        ({"$ref": "#/$defs/Inner"}, "Inner"),
        ({}, "any JSON"),
    ],
)
def test_a_schema_is_put_in_words(schema: dict[str, object], words: str) -> None:
    assert in_words(schema) == words


def test_the_committed_page_is_current() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == page()
