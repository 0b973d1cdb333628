"""Settings of the labelling vendors, and of the API that they use; frozen."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints

from service.config.types import Frozen, Host, Name, Port, PositiveSeconds, matching

VendorName = Annotated[
    str,
    matching(
        r"(?=.{1,64}\Z)[a-z0-9]+(?:[_-][a-z0-9]+)*",
        "a vendor's name is of lower-case letters and digits, with single - or _ between them, and has "
        "64 characters at most, so that variables of the environment can spell it",
    ),
]
Sha256 = Annotated[
    str,
    StringConstraints(to_lower=True),
    matching(
        r"[0-9a-f]{64}",
        "must be the SHA-256 of a token, 64 hexadecimal digits; `credence vendors token` makes one",
    ),
]
LabelKey = Annotated[
    SecretStr,
    matching(
        r"[A-Za-z0-9+/=_.~-]{32,1024}",
        "must have at least 32 characters (at most 1024) of base64 or hexadecimal; "
        "`credence vendors key` makes one",
    ),
]


class VendorSettings(Frozen):
    """One labelling vendor: people who answer label requests, behind a tool of their own."""

    models: list[Name] | None = Field(default=None, min_length=1)
    """whose requests it may be asked; those of all models if absent"""
    share: float = Field(default=1.0, gt=0, le=1_000_000, allow_inf_nan=False)
    """weight among the vendors of a model"""
    token_sha256: list[Sha256] = Field(default=[])
    """SHA-256 of its bearer tokens for the vendor API, each valid; needed for that alone"""
    label_keys: list[LabelKey] = Field(min_length=1)
    """secrets that sign its labels on Kafka; each is accepted, and the first one signs what the vendor API
    writes"""
    topic: Name | None = None
    """its requests are published here, not on `kafka.topics.label_requests`"""

    def label_key_bytes(self) -> list[bytes]:
        """The label keys as HMAC takes them, the one that signs first."""
        return [key.get_secret_value().encode() for key in self.label_keys]


class VendorApiSettings(Frozen):
    """Where vendors with a token get and answer their requests. Loopback alone, unless you say otherwise."""

    host: Host = "127.0.0.1"
    port: Port = 8402
    body_bytes: int = Field(default=65_536, ge=1_024)
    """longest body of a vendor's request; a webhook of Label Studio carries the payload, maybe with a
    character written as six: give some times bounds.payload_bytes"""
    requests_per_second: float = Field(default=20.0, gt=0, le=100_000)
    """of one vendor, in the long run"""
    burst: int = Field(default=40, ge=1)
    """requests that a vendor may make at once before that holds"""
    wait_seconds: float = Field(default=30.0, ge=0, le=600)
    """longest time that a vendor may wait for requests to come"""
    lease_seconds: PositiveSeconds = 300.0
    """a claimed request is the claimer's for so long, unless it asks for another time"""
    most: int = Field(default=100, ge=1, le=1_000)
    """requests that one call may claim"""
    waits: int = Field(default=10, ge=0, le=1_000)
    """calls of one vendor that may wait for requests at the same time"""
    annotations_bytes: int = Field(default=16_777_216, ge=1_024)
    """longest export of Label Studio that is imported at once"""
    connections: int = Field(default=500, ge=10, le=50_000)
    """that are open at the same time; further ones are refused with a time to retry"""
    certificate_file: str | None = None
    """PEM: the certificate to show, and those above it; plain HTTP if absent"""
    key_file: str | None = None
    """PEM: the certificate's private key, not encrypted"""
