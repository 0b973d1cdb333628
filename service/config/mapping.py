"""Settings of mappings: where the fields of messages are in records of another shape."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from service.config.types import Frozen, Name
from service.domain.field_mapping import FieldRule, RecordMapping, TimeUnit
from service.domain.record_paths import parse_path


def _is_path(text: str) -> str:
    parse_path(text)
    return text


def _as_text(value: Any) -> Any:
    """YAML reads 0 and 1 as numbers and yes and no as booleans; classes are always text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


def _differ(names: Any) -> Any:
    if isinstance(names, dict):
        texts = [_as_text(name) for name in names]
        for text in texts:
            if texts.count(text) > 1:
                raise ValueError(f"{text!r} is given more than once, as they are text; remove one of them")
    return names


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _as_rule(value: Any) -> Any:
    """A path alone, or several, stand for a rule."""
    return {"path": value} if isinstance(value, str | list) else value


_Path = Annotated[str, AfterValidator(_is_path)]
_Text = Annotated[str, BeforeValidator(_as_text), Field(min_length=1, max_length=2_048)]


class MappedField(Frozen):
    """Where one field is. A path alone stands for `{path: ...}`."""

    path: Annotated[list[_Path], BeforeValidator(_as_list)] | None = Field(default=None, min_length=1)
    """path in the record, such as `$.output.label`, `$headers.region` or `$key`; of several, the first that
    leads to something counts"""
    value: _Text | None = None
    """a constant, instead of a path"""
    names: Annotated[dict[_Text, _Text], BeforeValidator(_differ)] = Field(default={})
    """for classes: the name of a class, by what is in the record; what is not listed stays as it is. Quote
    `yes`, `no`, `on` and `off`, which YAML reads as true and false"""
    unit: TimeUnit | None = None
    """for times that are numbers: `s`, `ms`, `us` or `ns` since the epoch; default: text as in RFC 3339"""
    required: bool | None = None
    """whether a record without this field is refused; default: true for `model`, `item_id`,
    `predicted_class`, `score`, `probabilities` and `true_class`"""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.path is None) == (self.value is None):
            raise ValueError("requires either `path` or `value`")
        return self

    def rule(self, field: str) -> FieldRule:
        """The rule for a field of this name."""
        return FieldRule(
            tuple(map(parse_path, self.path or ())),
            self.value,
            self.names,
            self.unit,
            field in _REQUIRED if self.required is None else self.required,
        )


Mapped = Annotated[MappedField, BeforeValidator(_as_rule)]

_REQUIRED = frozenset({"model", "item_id", "predicted_class", "score", "probabilities", "true_class"})


class _Mapping(Frozen):
    """Rules by field."""

    def rules(self) -> dict[str, MappedField]:
        """Rules of single fields, without those of attributes by name."""
        found = {field: getattr(self, field) for field in type(self).model_fields}
        return {field: rule for field, rule in found.items() if isinstance(rule, MappedField)}

    def _field_rules(self) -> dict[str, FieldRule]:
        return {
            field: rule.rule(field)
            for field, rule in self.rules().items()
            if not field.endswith("attributes")
        }


class PredictionMapping(_Mapping):
    """Where the fields of predictions are in the records of the predictions topic.

    Records whose header `ce_type` is that of a prediction are native all the same.
    """

    model: Mapped
    """name of the model; often a constant, `{value: sorter}`"""
    item_id: Mapped
    """id of the item; a whole number stands for its digits"""
    predicted_class: Mapped | None = None
    """predicted class; a whole number stands for its digits, unless `names` says otherwise"""
    score: Mapped | None = None
    """probability of the predicted class"""
    probabilities: Mapped | None = None
    """list in the order of the model's `classes`, or an object by class name"""
    time: Mapped | None = None
    """when it was predicted"""
    attributes: dict[Name, Mapped] = Field(default={})
    """attributes, by their names"""
    all_attributes: Mapped | None = None
    """an object all of whose texts, numbers and booleans are attributes"""
    votes: dict[Name, Mapped] = Field(default={})
    """classes that a challenger or the members of an ensemble predict, by their names"""
    payload: Mapped | None = None
    """what a labeller sees; any JSON value"""
    payload_uri: Mapped | None = None
    """where a labeller finds the item"""

    def mapping(self) -> RecordMapping:
        """The rules as the decoder uses them."""
        return RecordMapping(
            self._field_rules(),
            {name: rule.rule("attributes") for name, rule in self.attributes.items()},
            {name: rule.rule("votes") for name, rule in self.votes.items()},
            None if self.all_attributes is None else self.all_attributes.rule("attributes"),
        )


class LabelMapping(_Mapping):
    """Where the fields of labels are in the records of the labels topic.

    Records whose header `ce_type` is that of a label are native all the same.
    """

    model: Mapped
    """name of the model"""
    item_id: Mapped
    """id of the item; a whole number stands for its digits"""
    request_id: Mapped | None = None
    """id of the label request; absent for labels that nobody requested"""
    true_class: Mapped | None = None
    """true class; a whole number stands for its digits, unless `names` says otherwise"""
    kind: Mapped | None = None
    """`answer`, `skip`, `correction` or `retraction`; `names` translates other words"""
    annotator: Mapped | None = None
    """who labelled it"""
    time: Mapped | None = None
    """when it was labelled"""
    probability: Mapped | None = None
    """probability with which the item was chosen for a label that nobody requested"""

    def mapping(self) -> RecordMapping:
        """The rules as the decoder uses them."""
        return RecordMapping(self._field_rules())
