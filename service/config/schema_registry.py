"""Settings of the schema registry that describes values of Avro, Protobuf and JSON Schema."""

from __future__ import annotations

from pydantic import Field, SecretStr

from service.config.types import Frozen, PositiveSeconds


class SchemaRegistrySettings(Frozen):
    """A schema registry with the REST API of Confluent's. Files are PEM."""

    url: str = Field(min_length=1)
    """URL of the registry, such as https://registry:8081; of Apicurio, with the path /apis/ccompat/v7"""
    username: str | None = Field(default=None, min_length=1)
    """username, for basic authentication"""
    password: SecretStr | None = None
    """password, for basic authentication"""
    token_file: str | None = None
    """file with a bearer token, instead of username and password; read again for every request"""
    ca_file: str | None = None
    """with `https://`: CA certificates that verify the registry; default: those of the system"""
    certificate_file: str | None = None
    """with `https://`: client certificate, followed by its intermediate certificates"""
    key_file: str | None = None
    """private key of the client certificate"""
    key_password: SecretStr | None = None
    """password of the private key, if it is encrypted"""
    timeout_seconds: PositiveSeconds = 5.0
    """timeout for connecting and for each reply"""
    cached_schemas: int = Field(default=1_000, ge=1)
    """maximum number of schemas that are kept in memory"""
