"""Settings of a schema registry and of mappings: errors name the key, and what to do."""

from __future__ import annotations

import pytest
from problem_lines import problem_lines

from service.config.document import parse_document
from service.config.loader import settings_of
from service.config.settings import Settings

MODELS = "models: {m: {classes: [a, b]}}\n"


def load(kafka: str, environment: dict[str, str] | None = None) -> Settings:
    text = f"kafka: {{{kafka}}}\n{MODELS}"
    return settings_of(parse_document(text, "credence.yaml"), "credence.yaml", environment or {})


def problems(kafka: str) -> str:
    return "\n".join(problem_lines(f"kafka: {{{kafka}}}\n{MODELS}"))


@pytest.mark.parametrize(
    ("registry", "problem"),
    [
        ("url: registry:8081", "kafka.schema_registry.url (line 1): must be a URL that begins with https://"),
        ('url: "ftp://registry"', "must be a URL that begins with https:// or http://"),
        ('url: "https://a:b@registry"', "kafka.schema_registry.url (line 1): contains a login"),
        ('url: "https://registry/?a=b"', "must end with the path"),
        ('url: "https://registry", username: a', "kafka.schema_registry.password (line 1): required with"),
        ('url: "https://registry", password: a', "kafka.schema_registry.username (line 1): required with"),
        (
            'url: "https://registry", token_file: t, username: a, password: b',
            "kafka.schema_registry.username (line 1): not accepted with `token_file`",
        ),
        ('url: "http://registry", token_file: t', "must begin with https://, because it receives secrets"),
        ('url: "https://registry/a b"', "contains a space or a special character; percent-encode it"),
        ('url: "http://registry", ca_file: c', "kafka.schema_registry.ca_file (line 1): requires https://"),
        ('url: "https://registry", certificate_file: c', "kafka.schema_registry.key_file (line 1): required"),
        ("username: a", "kafka.schema_registry.url (line 1): required, but missing"),
    ],
)
def test_a_registry_that_cannot_work_is_an_error_of_its_key(registry: str, problem: str) -> None:
    assert problem in problems(f"schema_registry: {{{registry}}}")


@pytest.mark.parametrize(
    "registry",
    [
        'url: "https://registry:8081"',
        'url: "http://registry:8081/apis/ccompat/v7"',
        'url: "https://registry", username: a, password: b, ca_file: c',
        'url: "http://localhost:8081", username: a, password: b',
        'url: "https://registry", token_file: t, certificate_file: c, key_file: k',
    ],
)
def test_a_registry_that_makes_sense_is_accepted(registry: str) -> None:
    assert load(f"schema_registry: {{{registry}}}").kafka.schema_registry is not None


def test_the_password_of_a_registry_may_come_from_the_environment() -> None:
    environment = {"CREDENCE_KAFKA__SCHEMA_REGISTRY__PASSWORD": "0123"}
    registry = load('schema_registry: {url: "https://r", username: a}', environment).kafka.schema_registry
    assert registry is not None
    assert registry.password is not None
    assert registry.password.get_secret_value() == "0123"
    assert "0123" not in repr(registry)


GOOD = "model: {value: m}, item_id: $.id, predicted_class: $.c, score: $.s"


@pytest.mark.parametrize(
    ("mapping", "problem"),
    [
        ("model: {value: m}, item_id: $.id", "kafka.mapping.predicted_class (line 1): required without"),
        ("model: {value: m}, item_id: $.id, predicted_class: $.c", "kafka.mapping.score (line 1): required"),
        ("item_id: $.id, probabilities: $.p", "kafka.mapping.model (line 1): required, but missing"),
        (f"{GOOD}, time: ts", "kafka.mapping.time.path.0 (line 1): must be a path that begins with $"),
        (f"{GOOD}, time: $.a..b", "cannot be read from character 4; write .name, [0] or ['a name']"),
        (f'{GOOD}, time: "$.a[x]"', "cannot be read from character 4"),
        (f"{GOOD}, time: $headers", "must name one header"),
        (f"{GOOD}, time: $headers.a.b", "must name one header"),
        (f"{GOOD}, time: $key.a", "the key of a record is taken whole"),
        (f"{GOOD}, time: {{path: $.t, unit: h}}", "kafka.mapping.time.unit (line 1): must be"),
        (f"{GOOD}, time: {{path: $.t, value: x}}", "kafka.mapping.time (line 1): requires either `path` or"),
        (f"{GOOD}, time: {{}}", "kafka.mapping.time (line 1): requires either `path` or `value`"),
        (f"{GOOD}, payload: {{path: $.t, unit: s}}", "kafka.mapping.payload.unit (line 1): not accepted"),
        (f"{GOOD}, payload: {{path: $.t, names: {{a: b}}}}", "kafka.mapping.payload.names (line 1)"),
        (f"{GOOD}, attributes: {{a: {{path: $.t, unit: s}}}}", "kafka.mapping.attributes.a.unit (line 1)"),
        (f"{GOOD}, votes: {{v: {{path: $.t, unit: s}}}}", "kafka.mapping.votes.v.unit (line 1)"),
        (f"{GOOD}, votes: {{v: {{path: $.t, names: {{0: c}}}}}}", "kafka.mapping.votes.v.names.0 (line 1)"),
        (
            f"{GOOD}, all_attributes: {{value: x}}",
            "kafka.mapping.all_attributes.value (line 1): not accepted",
        ),
        (
            f"{GOOD}, all_attributes: {{path: $.a, required: true}}",
            "kafka.mapping.all_attributes.required (line 1): not accepted",
        ),
        (f"{GOOD}, probabilities: {{value: x}}", "kafka.mapping.probabilities.value (line 1): not accepted"),
        (GOOD.replace("$.s", "{value: abc}"), "kafka.mapping.score.value (line 1): must be a number from 0"),
        (GOOD.replace("$.s", '{value: "2"}'), "kafka.mapping.score.value (line 1): must be a number from 0"),
        (GOOD.replace("value: m", "value: n"), "unknown model 'n'; the models are m"),
        (
            GOOD.replace("$.c", "{path: $.c, names: {0: c}}"),
            "kafka.mapping.predicted_class.names.0 (line 1): 'c' is no class; must be one of a, b",
        ),
        (GOOD.replace("$.c", "{value: c}"), "kafka.mapping.predicted_class.value (line 1): 'c' is no class"),
        (
            GOOD.replace("$.c", "{path: $.c, names: {0: a, '0': b}}"),
            "kafka.mapping.predicted_class.names (line 1): '0' is given more than once",
        ),
        (f"{GOOD}, atributes: {{}}", "unknown key; did you mean `kafka.mapping.attributes`?"),
    ],
)
def test_a_mapping_that_cannot_work_is_an_error_of_its_key(mapping: str, problem: str) -> None:
    assert problem in problems(f"mapping: {{{mapping}}}")


@pytest.mark.parametrize(
    "path",
    [
        "$.a.b[0]",
        "$['x y'].b",
        '$["x y"][12]',
        r"$['it\'s']",
        "$headers.region",
        "$headers['x-region']",
        "$key",
        "$",
        "$.with-dash",
    ],
)
def test_a_path_that_makes_sense_is_accepted(path: str) -> None:
    quoted = path.replace("'", "''")
    assert load(f"mapping: {{{GOOD}, payload: '{quoted}'}}").kafka.mapping is not None


def test_classes_that_yaml_reads_as_numbers_or_booleans_are_text() -> None:
    mapping = load(
        "mapping: {model: {value: m}, item_id: $.id, score: $.s, "
        "predicted_class: {path: $.c, names: {0: a, yes: b}}}"
    ).kafka.mapping
    assert mapping is not None
    assert mapping.predicted_class is not None
    assert mapping.predicted_class.names == {"0": "a", "true": "b"}


def test_a_mapping_of_labels_is_checked_too() -> None:
    found = problems("label_mapping: {model: {value: m}, item_id: $.id, annotator: {path: $.a, unit: s}}")
    assert "kafka.label_mapping.annotator.unit (line 1): not accepted here" in found


def test_kinds_of_labels_are_those_of_the_contract() -> None:
    found = problems("label_mapping: {model: {value: m}, item_id: $.id, kind: {path: $.k, names: {x: y}}}")
    assert "kafka.label_mapping.kind.names.x (line 1): 'y' is no kind; must be one of answer, skip" in found


def test_tensors_that_a_mapping_leaves_unused_are_an_error() -> None:
    models = "models: {m: {classes: [a, b], tensors: {score: p}}}\n"
    found = problem_lines(f"kafka: {{mapping: {{{GOOD}}}}}\n{models}")
    assert "models.m.tensors (line 2): has no effect with `kafka.mapping`" in "\n".join(found)


def test_a_mapping_is_not_blamed_for_the_model_that_is_invalid() -> None:
    found = problem_lines(f"kafka: {{mapping: {{{GOOD}}}}}\nmodels: {{m: {{classes: 5}}}}\n")
    assert [line for line in found if "kafka" in line] == []
