"""What arguments of the command may say; argparse names the argument in front of what is wrong with it."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import fields
from math import isfinite
from typing import Any


def positive(text: str) -> int:
    """A whole number of 1 or more."""
    return _at_least(1, text)


def natural(text: str) -> int:
    """A whole number of 0 or more."""
    return _at_least(0, text)


def share(text: str) -> float:
    """A number between 0 and 1."""
    number = _number(text)
    if number is None or not 0 < number < 1:
        raise ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return number


def real(text: str) -> float:
    """Any number."""
    number = _number(text)
    if number is None:
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
    from service.statistics.binary.thresholds import Target  # noqa: PLC0415

    names = [field.name for field in fields(Target)]
    wanted: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        number = _number(value)
        if name not in names or number is None or not 0 <= number <= 1:
            raise ArgumentTypeError(
                f"'{part}' is no target; write NAME=SHARE, with one of {', '.join(names)}"
            )
        if name in wanted:
            raise ArgumentTypeError(f"{name} is given twice")
        wanted[name] = number
    return Target(**wanted)


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise ArgumentTypeError(f"'{text}' is not a whole number of {least} or more")
    return number


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None
