"""Validation of settings across keys, except those of models."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from service.config.mapping_validation import mapping_problems
from service.config.schema_registry import SchemaRegistrySettings
from service.config.settings import KafkaSecurity, RedisSettings, Settings
from service.config.types import Problems

_TLS_KEYS = ("ca_file", "certificate_file", "key_file", "key_password")
_PASSWORD_KEYS = ("username", "password")
_ENDPOINT_KEYS = ("client_id", "client_secret")
_TOKEN_KEYS = ("token_file", "token_endpoint", "token_ca_file", *_ENDPOINT_KEYS, "scope")
_TOGETHER = (("certificate_file", "key_file"), ("key_file", "certificate_file"), ("key_password", "key_file"))
"""Of each pair, the first key makes no sense without the second."""

_REDIS_SCHEMES = ("redis", "rediss", "unix")


def deployment_problems(settings: Settings) -> Problems:
    """Keys that conflict with another key or lack one, by path, with the problem."""
    return [
        *kafka_problems(settings.kafka.security),
        *registry_problems(settings.kafka.schema_registry),
        *mapping_problems(settings),
        *_redis_problems(settings.redis),
        *_listener_problems(settings),
        *_incomplete_pairs("vendor_api", settings.vendor_api),
        *_vendor_problems(settings),
    ]


def kafka_problems(security: KafkaSecurity) -> Problems:
    """Keys of `kafka.security` that conflict with another key or lack one, by path, with the problem."""
    at, protocol = "kafka.security", security.protocol
    problems: Problems = []
    if "ssl" not in protocol:
        problems += _rejected(
            at, security, _TLS_KEYS, "requires ssl in `protocol`; add ssl, or remove this key"
        )
    if "sasl" not in protocol:
        keys = ("mechanism", *_PASSWORD_KEYS, *_TOKEN_KEYS)
        problems += _rejected(at, security, keys, "requires sasl in `protocol`; add sasl, or remove this key")
    elif security.mechanism is None:
        problems.append((f"{at}.mechanism", f"required with `protocol: {protocol}`"))
    elif security.mechanism == "OAUTHBEARER":
        problems += _rejected(
            at, security, _PASSWORD_KEYS, "not accepted with `mechanism: OAUTHBEARER`; remove it"
        )
        problems += _token_problems(at, security)
    else:
        problems += _rejected(at, security, _TOKEN_KEYS, "requires `mechanism: OAUTHBEARER`; remove it")
        problems += _required(
            at, security, _PASSWORD_KEYS, f"required with `mechanism: {security.mechanism}`"
        )
    return problems + _incomplete_pairs(at, security)


def registry_problems(registry: SchemaRegistrySettings | None) -> Problems:
    """Keys of `kafka.schema_registry` that conflict with another key or lack one, with the problem."""
    if registry is None:
        return []
    at, url = "kafka.schema_registry", _parts(registry.url)
    problems: Problems = []
    has_login = registry.username is not None or registry.token_file is not None
    if url is None or not url.hostname or url.scheme not in ("http", "https"):
        problems.append((f"{at}.url", "must be a URL that begins with https:// or http://"))
    elif url.username is not None or url.password is not None:
        problems.append((f"{at}.url", "contains a login; set `username` and `password` instead"))
    elif not registry.url.isascii() or not registry.url.isprintable() or " " in registry.url:
        problems.append((f"{at}.url", "contains a space or a special character; percent-encode it"))
    elif url.query or url.fragment:
        problems.append((f"{at}.url", "must end with the path; remove what begins with ? or #"))
    elif url.scheme == "http":
        problems += _rejected(at, registry, _TLS_KEYS, "requires https:// in `url`")
        if has_login and not _is_loopback(url.hostname):
            problems.append((f"{at}.url", "must begin with https://, because it receives secrets"))
    if (registry.username is None) != (registry.password is None):
        given, lacking = _PASSWORD_KEYS if registry.password is None else _PASSWORD_KEYS[::-1]
        problems.append((f"{at}.{lacking}", f"required with `{given}`"))
    if registry.token_file is not None:
        problems += _rejected(at, registry, _PASSWORD_KEYS, "not accepted with `token_file`; remove it")
    return problems + _incomplete_pairs(at, registry)


def _redis_problems(redis: RedisSettings) -> Problems:
    url = _parts(redis.url.get_secret_value())
    if url is None:
        # The error quotes what it took for the port, which may be part of the password.
        problem = "cannot be parsed; percent-encode special characters of a password, or set `redis.password`"
        return [("redis.url", problem)]
    if url.scheme not in _REDIS_SCHEMES:
        return [("redis.url", "must begin with redis://, rediss:// or unix://")]
    problems: Problems = []
    if redis.cluster and (url.scheme == "unix" or url.path not in ("", "/", "/0")):
        problem = "with `cluster: true`: must name a host, and database 0, the only one of a cluster"
        problems.append(("redis.url", problem))
    if url.scheme != "rediss":
        problems += _rejected("redis", redis, _TLS_KEYS, "requires rediss:// in `url`")
    if redis.password is not None and url.password:
        problems.append(("redis.password", "`url` contains one too; set only one of them"))
    if redis.username is not None and url.username:
        problems.append(("redis.username", "`url` contains one too; set only one of them"))
    if redis.username is not None and redis.password is None and not url.password:
        problems.append(("redis.password", "required with `username`"))
    return problems + _incomplete_pairs("redis", redis)


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _token_problems(at: str, security: KafkaSecurity) -> Problems:
    if (security.token_file is None) == (security.token_endpoint is None):
        problem = "`mechanism: OAUTHBEARER` requires either `token_file` or `token_endpoint`"
        return [(f"{at}.token_file", problem)]
    if security.token_endpoint is None:
        keys = ("token_ca_file", *_ENDPOINT_KEYS, "scope")
        return _rejected(at, security, keys, "requires `token_endpoint`; remove it")
    problems = _required(at, security, _ENDPOINT_KEYS, "required with `token_endpoint`")
    url = _parts(security.token_endpoint)
    if url is None or not url.hostname or url.scheme not in ("http", "https"):
        problems.append((f"{at}.token_endpoint", "must be a URL that begins with https://"))
    elif url.username is not None or url.password is not None:
        problems.append(
            (f"{at}.token_endpoint", "contains a login; set `client_id` and `client_secret` instead")
        )
    elif url.scheme == "http" and not _is_loopback(url.hostname):
        problems.append((f"{at}.token_endpoint", "must begin with https://, because it receives secrets"))
    elif url.scheme == "http" and security.token_ca_file is not None:
        problems.append((f"{at}.token_ca_file", "requires https:// in `token_endpoint`"))
    return problems


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _rejected(at: str, settings: Any, keys: Iterable[str], problem: str) -> Problems:
    return [(f"{at}.{key}", problem) for key in keys if getattr(settings, key) is not None]


def _required(at: str, settings: Any, keys: Iterable[str], problem: str) -> Problems:
    return [(f"{at}.{key}", problem) for key in keys if getattr(settings, key) is None]


def _incomplete_pairs(at: str, settings: Any) -> Problems:
    """Keys of a certificate that are missing although another key requires them."""
    return [
        (f"{at}.{other}", f"required with `{key}`")
        for key, other in _TOGETHER
        if getattr(settings, key, None) is not None and getattr(settings, other) is None
    ]


def _listener_problems(settings: Settings) -> Problems:
    taken: dict[int, str] = {}
    problems: Problems = []
    for name in ("http", "monitoring", *(["vendor_api"] if settings.has_http_apis else [])):
        port = getattr(settings, name).port
        if port and port in taken:
            problems.append((f"{name}.port", f"is already the port of `{taken[port]}`; choose another one"))
        taken[port] = name
    return problems


def _vendor_problems(settings: Settings) -> Problems:
    problems: Problems = []
    if settings.has_vendor_api and settings.vendor_api.body_bytes <= settings.bounds.payload_bytes:
        problem = "must be more than `bounds.payload_bytes`: webhooks of Label Studio contain the payload"
        problems.append(("vendor_api.body_bytes", problem))
    tokens: set[str] = set()
    for name, sender in settings.senders.items():
        at = f"senders.{name}"
        problems += _unknown_models(at, sender.models, settings)
        problems += _repeated(f"{at}.token_sha256", sender.token_sha256, tokens, "a token")
        if name in settings.vendors:
            problems.append((at, "is also the name of a vendor; choose another one"))
    label_keys: set[bytes] = set()
    topics = set(settings.kafka.topics.model_dump().values())
    for name, vendor in settings.vendors.items():
        at = f"vendors.{name}"
        problems += _unknown_models(at, vendor.models or (), settings)
        problems += _repeated(f"{at}.token_sha256", vendor.token_sha256, tokens, "a token")
        # With a shared key, one vendor could sign labels in the name of the other.
        problems += _repeated(f"{at}.label_keys", vendor.label_key_bytes(), label_keys, "a label key")
        if vendor.labelling_page and not vendor.token_sha256:
            problem = "required with `labelling_page`: people log in with the token"
            problems.append((f"{at}.token_sha256", problem))
        if vendor.topic is not None and vendor.topic in topics:
            problems.append((f"{at}.topic", "must differ from the four topics and from every other vendor's"))
        topics.add(vendor.topic)
    for model, model_settings in settings.models.items():
        if settings.vendors and model_settings.assessments and not settings.vendors_of(model):
            problem = "no vendor gets requests for this model; add it to `vendors.….models`"
            problems.append((f"models.{model}.assessments", problem))
    return problems


def _unknown_models(at: str, models: Iterable[str], settings: Settings) -> Problems:
    return [
        (f"{at}.models.{i}", f"unknown model {model!r}; the models are {', '.join(settings.models)}")
        for i, model in enumerate(models)
        if model not in settings.models
    ]


def _repeated(at: str, values: Iterable[Any], seen: set[Any], what: str) -> Problems:
    """Problems of values in `seen`; adds all values to it."""
    problems = []
    for i, value in enumerate(values):
        if value in seen:
            problems.append(
                (f"{at}.{i}", f"{what} belongs to one vendor or sender; this one is already in use")
            )
        seen.add(value)
    return problems
