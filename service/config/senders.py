"""Settings of those who send predictions over HTTP; frozen."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.config.types import Frozen, Name
from service.config.vendors import Sha256, naming

SenderName = Annotated[str, naming("a sender")]


class SenderSettings(Frozen):
    """One sender of predictions over HTTP, such as the service that runs a model."""

    models: list[Name] = Field(min_length=1)
    """models whose predictions it may send"""
    token_sha256: list[Sha256] = Field(min_length=1)
    """SHA-256 hashes of the sender's bearer tokens for `POST /v1/predictions`; any of them is valid"""
