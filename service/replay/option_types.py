"""Types of the options of `credence replay`: words to numbers. Light: it imports no library."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import fields
from math import isfinite, nan
from typing import Any


def positive(text: str, least: int = 1) -> int:
    """A whole number of 1 or more."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise ArgumentTypeError(f"'{text}' is not a whole number of {least} or more")
    return number


def natural(text: str) -> int:
    """A whole number of 0 or more."""
    return positive(text, least=0)


def positive_number(text: str) -> float:
    """A number above 0."""
    number = _number(text)
    if not (isfinite(number) and number > 0):
        raise ArgumentTypeError(f"'{text}' is not a number above 0")
    return number


def share(text: str) -> float:
    """A number between 0 and 1."""
    number = _number(text)
    if not 0 < number < 1:
        raise ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return number


def real(text: str) -> float:
    """Any number."""
    number = _number(text)
    if not isfinite(number):
        raise ArgumentTypeError(f"'{text}' is not a number")
    return number


def counts(text: str) -> tuple[int, ...]:
    """Whole numbers of 1 or more, in rising order."""
    return tuple(sorted({positive(part) for part in text.split(",")}))


def class_or_all(text: str) -> int | str:
    """The number of a class, or `all`."""
    if text == "all":
        return text
    try:
        return natural(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"'{text}' is neither the number of a class nor 'all'") from error


def target(text: str) -> Any:
    """What a threshold has to reach, as in `precision=0.8,recall=0.9`."""
    # With numpy, which other options do not need.
    from service.statistics.binary.performance import Target  # noqa: PLC0415

    names = [field.name for field in fields(Target)]
    wanted: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        number = _number(value)
        if name not in names or not 0 <= number <= 1:
            raise ArgumentTypeError(
                f"'{part}' is no target; write NAME=SHARE, with one of {', '.join(names)}"
            )
        if name in wanted:
            raise ArgumentTypeError(f"{name} is given twice")
        wanted[name] = number
    return Target(**wanted)


def _number(text: str) -> float:
    """Not a number (NaN), which is within no bounds, where the text is none."""
    try:
        return float(text)
    except ValueError:
        return nan
