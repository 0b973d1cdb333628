"""What is expensive to make, and asked for by many tests in the same words."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")


def made_once(make: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
    """Make a thing once for equal arguments, which need not be hashable; every caller has a copy of its own.

    Args:
        make: gives the same whenever it gets the same.
    """
    made: dict[bytes, Made] = {}

    @wraps(make)
    def copied(*args: Arguments.args, **options: Arguments.kwargs) -> Made:
        key = pickle.dumps((args, sorted(options.items())))
        if key not in made:
            made[key] = make(*args, **options)
        return deepcopy(made[key])

    return copied
