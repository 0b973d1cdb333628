"""What a model passes to `Producer.log`, as the contract takes it; errors name the argument."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import index
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from service.config.problem_words import JSON, described
from service.domain.messages import Prediction

_ARGUMENTS = {"predicted_class": "predicted"}


class InvalidArgumentError(ValueError):
    """An argument does not fit the contract; the message names it, and does not quote it."""


def prediction_of(model: str, classes: Sequence[str] | None, fields: dict[str, Any]) -> Prediction:
    """A prediction with these fields of the contract; completes and checks classes if there are any.

    Raises:
        InvalidArgumentError: it is not valid; says which argument, and what it must be.
    """
    if classes is not None:
        _complete(fields, classes)
    try:
        return Prediction(model=model, **fields)
    except ValidationError as error:
        problems = described(error.errors(), JSON)
        texts = [f"{_ARGUMENTS.get(path, path)}: {problem}".lstrip(": ") for path, problem in problems]
        raise InvalidArgumentError("; ".join(texts)) from error


def _complete(fields: dict[str, Any], classes: Sequence[str]) -> None:
    probabilities, predicted = fields["probabilities"], fields["predicted_class"]
    if predicted is None and probabilities is not None:
        # By name, in case that the order of the classes is not that of the configuration.
        predicted = classes[max(range(len(probabilities)), key=probabilities.__getitem__)]
        fields["predicted_class"] = predicted
    if predicted is not None and predicted not in classes:
        raise InvalidArgumentError(f"predicted: must be one of these classes: {', '.join(classes)}")
    if fields["score"] is None and probabilities is not None:
        fields["score"] = probabilities[classes.index(predicted)]
    for name, vote in (fields["votes"] or {}).items():
        if vote not in classes:
            raise InvalidArgumentError(f"votes[{name!r}]: must be one of these classes: {', '.join(classes)}")


def probabilities_in_order(given: Any, classes: Sequence[str] | None) -> list[float]:
    """Probabilities in the order of the classes; those of a mapping or a pandas Series by class.

    Raises:
        InvalidArgumentError: they are not one number for each class, or have no order.
    """
    try:
        numbers = [number(value, "probabilities") for value in _listed(given, classes)]
    except InvalidArgumentError:
        raise
    except Exception as error:
        raise InvalidArgumentError(f"probabilities: reading them raises {type(error).__name__}") from error
    if classes is not None and len(numbers) != len(classes):
        raise InvalidArgumentError(f"probabilities: must be {len(classes)} numbers, but are {len(numbers)}")
    return numbers


def _listed(given: Any, classes: Sequence[str] | None) -> Iterable[Any]:
    by_class = given.to_dict() if hasattr(given, "to_dict") else given
    if isinstance(by_class, Mapping):
        return _by_class(by_class, len(given), classes)
    listed: Any = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(listed, str | AbstractSet) or not isinstance(listed, Iterable):
        raise InvalidArgumentError(
            "probabilities: must be one number per class: a list or array in the order of the classes, or a "
            "mapping by class"
        )
    return listed


def _by_class(given: Mapping[Any, Any], count: int, classes: Sequence[str] | None) -> list[Any]:
    if classes is None:
        raise InvalidArgumentError(
            "probabilities: if they are by class, make the producer with `classes`, "
            "as in models.….classes of Credence's configuration"
        )
    by_name = {text(name, "probabilities"): value for name, value in given.items()}
    # A Series may have an index twice.
    if by_name.keys() != set(classes) or count != len(classes):
        raise InvalidArgumentError(f"probabilities: must have these classes: {', '.join(classes)}")
    return [by_name[name] for name in classes]


def json_value(value: Any, argument: str) -> Any:
    """A value that each reader of JSON understands, as it is.

    Raises:
        InvalidArgumentError: JSON has no such value, or its readers refuse it.
    """
    try:
        from_json(json.dumps(value), allow_inf_nan=False)
    except Exception as error:
        raise InvalidArgumentError(
            f"{argument}: must be JSON: text, finite numbers, true, false, null, lists, and objects, "
            "not nested too deeply"
        ) from error
    return value


def number(value: Any, argument: str) -> float:
    """A number as a float.

    Raises:
        InvalidArgumentError: it is none, or too large for a float.
    """
    try:
        return float(value)
    except OverflowError as error:
        raise InvalidArgumentError(f"{argument}: must be a number from 0 to 1, but is far larger") from error
    except Exception as error:
        kind = type(value).__name__
        raise InvalidArgumentError(f"{argument}: must be a number, but is of type {kind}") from error


def texts(values: Any, argument: str) -> dict[str, str]:
    """A mapping with values as `text` gives them.

    Raises:
        InvalidArgumentError: it is no mapping, or has another value.
    """
    if not isinstance(values, Mapping):
        kind = type(values).__name__
        raise InvalidArgumentError(f"{argument}: must be a mapping by name, but is of type {kind}")
    try:
        return {name: text(value, f"{argument}[{name!r}]") for name, value in values.items()}
    except InvalidArgumentError:
        raise
    except Exception as error:
        raise InvalidArgumentError(f"{argument}: reading it raises {type(error).__name__}") from error


def text(value: object, argument: str) -> str:
    """Text as it is; a whole number by its digits, as classes and ids often are numbers.

    Raises:
        InvalidArgumentError: it is something else, or text that is not Unicode.
    """
    try:
        if isinstance(value, str):
            value.encode()
            return str(value)
        if hasattr(value, "__index__") and not isinstance(value, bool):
            return str(index(value))
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{argument}: must be text in Unicode") from error
    except Exception as error:
        raise InvalidArgumentError(_no_text(value, argument)) from error
    raise InvalidArgumentError(_no_text(value, argument))


def _no_text(value: object, argument: str) -> str:
    return f"{argument}: must be text or a whole number, but is of type {type(value).__name__}"
