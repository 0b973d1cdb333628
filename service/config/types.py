"""Types of settings: names, numbers with limits, and the base class of all sections."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
Name = Annotated[str, Field(pattern=_NAME_PATTERN, max_length=128)]
# YAML reads 0, 1, 2 as numbers and yes, no as booleans; classes are always text on the wire.
ClassName = Annotated[
    str, BeforeValidator(lambda v: str(v) if type(v) is int else v), Field(min_length=1, max_length=256)
]
Probability = Annotated[float, Field(ge=0, le=1)]
Host = Annotated[str, Field(description="address to listen on; 0.0.0.0 is all interfaces")]
_HIGHEST_PORT = 65_535
Port = Annotated[int, Field(ge=0, le=_HIGHEST_PORT, description="port to listen on; 0 chooses a free port")]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

Problems = list[tuple[str, str]]
"""What is wrong with settings: paths of keys, and sentences."""


def matching(pattern: str, problem: str) -> AfterValidator:
    """Refuses text or secrets that are not of this pattern, with a sentence that says what they must be."""

    def check(value: Any) -> Any:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if not re.fullmatch(pattern, text):
            raise ValueError(problem)
        return value

    return AfterValidator(check)


def _is_server(value: str) -> str:
    address = re.fullmatch(r"(?:[^\s:/,@\[\]]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?", value)
    if address is None:
        raise ValueError("must be one server as host:port, such as kafka:9092; a list has one per entry")
    if address[1] is None:
        raise ValueError(f"the port is missing; write host:port, such as {value}:9092")
    if not 0 < int(address[1]) <= _HIGHEST_PORT:
        raise ValueError(f"the port must be from 1 to {_HIGHEST_PORT}, but is {address[1]}")
    return value


Server = Annotated[str, AfterValidator(_is_server)]
"""A server as host:port; an IPv6 address is in brackets."""


class Frozen(BaseModel):
    """Cannot be changed, and takes no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
