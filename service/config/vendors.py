"""Settings of the labelling vendors, and of the API that they use; frozen."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr, StringConstraints

from service.config.types import Frozen, Host, Name, Port, PositiveSeconds, matching


def naming(caller: str) -> AfterValidator:
    """The rule for names of those who call an API, such as `a vendor`."""
    return matching(
        r"(?=.{1,64}\Z)[a-z0-9]+(?:[_-][a-z0-9]+)*",
        f"{caller}'s name must be at most 64 lower-case letters and digits, with single - or _ between "
        "them, so that environment variables can contain it",
    )


VendorName = Annotated[str, naming("a vendor")]
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


Origin = Annotated[
    str,
    matching(
        r"https?://(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?::[0-9]{1,5})?",
        "must be an origin in lower case, without a path: scheme, host and perhaps port, such as "
        "https://images.example",
    ),
]


class VendorSettings(Frozen):
    """One labelling vendor: an organization that answers label requests with its own tool."""

    models: list[Name] | None = Field(default=None, min_length=1)
    """models whose requests the vendor may get; default: all"""
    share: float = Field(default=1.0, gt=0, le=1_000_000, allow_inf_nan=False)
    """relative weight of this vendor when a request is assigned"""
    token_sha256: list[Sha256] = Field(default=[])
    """SHA-256 hashes of the vendor's bearer tokens for the vendor API; any of them is valid"""
    label_keys: list[LabelKey] = Field(min_length=1)
    """secrets that sign the vendor's labels on Kafka. A label signed with any of them is accepted; the vendor
    API signs with the first"""
    labelling_page: bool = False
    """whether people can label for this vendor in the browser, at `/label/` of the vendor API. They log in
    with its token"""
    topic: Name | None = None
    """topic for this vendor's requests, instead of `kafka.topics.label_requests`"""

    def label_key_bytes(self) -> list[bytes]:
        """The label keys as HMAC takes them, the one that signs first."""
        return [key.get_secret_value().encode() for key in self.label_keys]


class VendorApiSettings(Frozen):
    """Listener and limits of the vendor API; by default on loopback only."""

    host: Host = "127.0.0.1"
    port: Port = 8402
    body_bytes: int = Field(default=65_536, ge=1_024)
    """maximum size of a request body. Webhooks of Label Studio contain the payload, with escapes of up to six
    bytes per character: set several times `bounds.payload_bytes`"""
    requests_per_second: float = Field(default=20.0, gt=0, le=100_000)
    """rate limit per vendor"""
    burst: int = Field(default=40, ge=1)
    """requests that a vendor may send at once before the rate limit applies"""
    wait_seconds: float = Field(default=30.0, ge=0, le=600)
    """maximum duration of a long poll for new requests"""
    lease_seconds: PositiveSeconds = 300.0
    """how long a claim lasts, unless the vendor asks for another duration"""
    most: int = Field(default=100, ge=1, le=1_000)
    """maximum number of requests per claim"""
    waits: int = Field(default=10, ge=0, le=1_000)
    """maximum number of concurrent long polls per vendor"""
    annotations_bytes: int = Field(default=16_777_216, ge=1_024)
    """maximum size of a Label Studio export in one import"""
    image_origins: list[Origin] = Field(default=[])
    """origins of images that the labelling page shows, such as `https://images.example`; images of other
    origins are links"""
    session_hours: float = Field(default=12.0, gt=0, le=8_760)
    """how long a login to the labelling page lasts"""
    connections: int = Field(default=500, ge=10, le=50_000)
    """maximum number of open connections; further ones are refused with `Retry-After`"""
    certificate_file: str | None = None
    """server certificate in PEM format, followed by its intermediate certificates; default: plain HTTP"""
    key_file: str | None = None
    """private key of the certificate in PEM format, not encrypted"""
