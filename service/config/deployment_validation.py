"""What does not fit together in the settings of a deployment, but for its models."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

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
    """Every key that does not go with another key, by its path, and what is wrong."""
    return [
        *_kafka_problems(settings.kafka.security),
        *_redis_problems(settings.redis),
        *_listener_problems(settings),
        *_incomplete_pairs("vendor_api", settings.vendor_api),
        *_vendor_problems(settings),
    ]


def _kafka_problems(security: KafkaSecurity) -> Problems:
    at, protocol = "kafka.security", security.protocol
    problems: Problems = []
    if "ssl" not in protocol:
        problems += _meaningless(
            at, security, _TLS_KEYS, "with ssl in `protocol` alone; leave it out, or add ssl"
        )
    if "sasl" not in protocol:
        keys = ("mechanism", *_PASSWORD_KEYS, *_TOKEN_KEYS)
        problems += _meaningless(
            at, security, keys, "with sasl in `protocol` alone; leave it out, or add sasl"
        )
    elif security.mechanism is None:
        problems.append((f"{at}.mechanism", f"is needed with `protocol: {protocol}`"))
    elif security.mechanism == "OAUTHBEARER":
        problems += _meaningless(at, security, _PASSWORD_KEYS, "with another mechanism alone; leave it out")
        problems += _token_problems(at, security)
    else:
        problems += _meaningless(
            at, security, _TOKEN_KEYS, "with `mechanism: OAUTHBEARER` alone; leave it out"
        )
        problems += _needed(at, security, _PASSWORD_KEYS, f"is needed with `mechanism: {security.mechanism}`")
    return problems + _incomplete_pairs(at, security)


def _redis_problems(redis: RedisSettings) -> Problems:
    url = _parts(redis.url.get_secret_value())
    if url is None:
        # Its text would tell what was taken for the port: a part of the password.
        problem = (
            "cannot be read; percent-encode what is special in a password, or give it as `redis.password`"
        )
        return [("redis.url", problem)]
    if url.scheme not in _REDIS_SCHEMES:
        return [("redis.url", "begins with redis://, rediss:// or unix://")]
    problems: Problems = []
    if redis.cluster and (url.scheme == "unix" or url.path not in ("", "/", "/0")):
        problem = "of a cluster: must name a host, and database 0, as there is no other one"
        problems.append(("redis.url", problem))
    if url.scheme != "rediss":
        problems += _meaningless("redis", redis, _TLS_KEYS, "with rediss:// in `url` alone")
    if redis.password is not None and url.password:
        problems.append(("redis.password", "`url` holds one too; give one of them"))
    if redis.username is not None and url.username:
        problems.append(("redis.username", "`url` holds one too; give one of them"))
    if redis.username is not None and redis.password is None and not url.password:
        problems.append(("redis.password", "is needed with `username`"))
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
        problem = "with `mechanism: OAUTHBEARER`, give either `token_file` or `token_endpoint`"
        return [(f"{at}.token_file", problem)]
    if security.token_endpoint is None:
        keys = ("token_ca_file", *_ENDPOINT_KEYS, "scope")
        return _meaningless(at, security, keys, "with `token_endpoint` alone; leave it out")
    problems = _needed(at, security, _ENDPOINT_KEYS, "is needed with `token_endpoint`")
    url = _parts(security.token_endpoint)
    if url is None or not url.hostname or url.scheme not in ("http", "https"):
        problems.append((f"{at}.token_endpoint", "must be a URL that begins with https://"))
    elif url.username is not None or url.password is not None:
        problems.append((f"{at}.token_endpoint", "holds a login; give it as `client_id` and `client_secret`"))
    elif url.scheme == "http" and not _is_loopback(url.hostname):
        problems.append((f"{at}.token_endpoint", "must begin with https://, as secrets go there"))
    elif url.scheme == "http" and security.token_ca_file is not None:
        problems.append((f"{at}.token_ca_file", "has a meaning with https:// in `token_endpoint` alone"))
    return problems


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _meaningless(at: str, settings: Any, keys: Iterable[str], where: str) -> Problems:
    return [(f"{at}.{key}", f"has a meaning {where}") for key in keys if getattr(settings, key) is not None]


def _needed(at: str, settings: Any, keys: Iterable[str], why: str) -> Problems:
    return [(f"{at}.{key}", why) for key in keys if getattr(settings, key) is None]


def _incomplete_pairs(at: str, settings: Any) -> Problems:
    """Keys of a certificate that are absent though another one needs them."""
    return [
        (f"{at}.{other}", f"is needed with `{key}`")
        for key, other in _TOGETHER
        if getattr(settings, key, None) is not None and getattr(settings, other) is None
    ]


def _listener_problems(settings: Settings) -> Problems:
    taken: dict[int, str] = {}
    problems: Problems = []
    for name in ("http", "monitoring", *(["vendor_api"] if settings.has_vendor_api else [])):
        port = getattr(settings, name).port
        if port and port in taken:
            problems.append((f"{name}.port", f"is that of `{taken[port]}`; each has its own"))
        taken[port] = name
    return problems


def _vendor_problems(settings: Settings) -> Problems:
    problems: Problems = []
    if settings.has_vendor_api and settings.vendor_api.body_bytes <= settings.bounds.payload_bytes:
        problem = "must be over `bounds.payload_bytes`: a webhook of Label Studio carries the payload"
        problems.append(("vendor_api.body_bytes", problem))
    tokens: set[str] = set()
    label_keys: set[bytes] = set()
    topics = set(settings.kafka.topics.model_dump().values())
    for name, vendor in settings.vendors.items():
        at = f"vendors.{name}"
        problems += [
            (f"{at}.models.{i}", f"unknown model {model!r}; there are {', '.join(settings.models)}")
            for i, model in enumerate(vendor.models or ())
            if model not in settings.models
        ]
        problems += _repeated(f"{at}.token_sha256", vendor.token_sha256, tokens, "a token")
        # Whoever holds a key can sign with it under the name of every vendor that has it.
        problems += _repeated(f"{at}.label_keys", vendor.label_key_bytes(), label_keys, "a label key")
        if vendor.topic is not None and vendor.topic in topics:
            problems.append((f"{at}.topic", "must differ from the four topics and from every other vendor's"))
        topics.add(vendor.topic)
    for model, model_settings in settings.models.items():
        if settings.vendors and model_settings.assessments and not settings.vendors_of(model):
            problem = "no vendor may be asked; name the model in `vendors.….models`"
            problems.append((f"models.{model}.assessments", problem))
    return problems


def _repeated(at: str, values: Iterable[Any], seen: set[Any], what: str) -> Problems:
    """Values that were seen before are problems; all are seen from now on."""
    problems = []
    for i, value in enumerate(values):
        if value in seen:
            problems.append((f"{at}.{i}", f"{what} is one vendor's alone; this one is there already"))
        seen.add(value)
    return problems
