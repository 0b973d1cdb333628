"""Settings of those who send predictions over HTTP; frozen."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.config.types import Frozen, Name, matching
from service.config.vendors import Sha256

SenderName = Annotated[
    str,
    matching(
        r"(?=.{1,64}\Z)[a-z0-9]+(?:[_-][a-z0-9]+)*",
        "a sender's name must be at most 64 lower-case letters and digits, with single - or _ between "
        "them, so that environment variables can contain it",
    ),
]


class SenderSettings(Frozen):
    """One sender of predictions over HTTP, such as the service that runs a model."""

    models: list[Name] = Field(min_length=1)
    """models whose predictions it may send"""
    token_sha256: list[Sha256] = Field(min_length=1)
    """SHA-256 hashes of the sender's bearer tokens for `POST /v1/predictions`; any of them is valid"""
