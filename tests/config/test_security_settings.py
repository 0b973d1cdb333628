"""Settings of logins and certificates: what goes together, and errors for what does not."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.config.loader import load_settings
from service.config.settings import Settings
from service.domain.errors import ConfigurationError

SECRET = "hunter2-hunter2"
BY_TOKEN = {"protocol": "sasl_ssl", "mechanism": "OAUTHBEARER"}
BY_ENDPOINT = BY_TOKEN | {
    "token_endpoint": "https://issuer.example/token",
    "client_id": "credence",
    "client_secret": SECRET,
}


def load(folder: Path, environment: dict[str, str] | None = None, **sections: Any) -> Settings:
    path = folder / "credence.yaml"
    path.write_text(yaml.safe_dump({"models": {"animals": {"classes": ["cat", "dog"]}}} | sections))
    return load_settings(path, environment or {})


def refused(folder: Path, **sections: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load(folder, **sections)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return caught.value


def paths(error: ConfigurationError) -> list[str]:
    return [path for path, _ in error.problems]


@pytest.mark.parametrize(
    "security",
    [
        BY_TOKEN | {"token_file": "/var/run/token"},
        BY_ENDPOINT,
        BY_ENDPOINT | {"scope": "kafka other", "token_ca_file": "ca.pem"},
        BY_ENDPOINT | {"token_endpoint": "http://127.0.0.1:8080/token"},
        BY_ENDPOINT | {"token_endpoint": "http://[::1]/token", "protocol": "sasl_plaintext"},
        BY_ENDPOINT | {"token_endpoint": "http://localhost/token"},
    ],
)
def test_a_login_by_token_that_makes_sense_is_accepted(tmp_path: Path, security: dict[str, str]) -> None:
    assert load(tmp_path, kafka={"security": security}).kafka.security.mechanism == "OAUTHBEARER"


@pytest.mark.parametrize(
    ("security", "at"),
    [
        (BY_TOKEN, ["token_file"]),
        (BY_ENDPOINT | {"token_file": "/var/run/token"}, ["token_file"]),
        (BY_TOKEN | {"token_file": "t", "username": "me", "password": SECRET}, ["username", "password"]),
        (BY_TOKEN | {"token_file": "t", "client_secret": SECRET, "scope": "s"}, ["client_secret", "scope"]),
        (BY_TOKEN | {"token_endpoint": "https://i/t"}, ["client_id", "client_secret"]),
        (BY_ENDPOINT | {"token_endpoint": "http://issuer.example/token"}, ["token_endpoint"]),
        (BY_ENDPOINT | {"token_endpoint": "http://10.0.0.1/token"}, ["token_endpoint"]),
        (BY_ENDPOINT | {"token_endpoint": "ftp://127.0.0.1/token"}, ["token_endpoint"]),
        (BY_ENDPOINT | {"token_endpoint": "https://"}, ["token_endpoint"]),
        (BY_ENDPOINT | {"token_endpoint": f"https://me:{SECRET}/1@i/t"}, ["token_endpoint"]),
        (BY_ENDPOINT | {"token_endpoint": f"https://me:{SECRET}@i/t"}, ["token_endpoint"]),
        (
            BY_ENDPOINT | {"token_endpoint": "http://localhost/token", "token_ca_file": "ca.pem"},
            ["token_ca_file"],
        ),
        (
            {
                "protocol": "sasl_ssl",
                "mechanism": "PLAIN",
                "username": "me",
                "password": "x",
                "token_file": "t",
            },
            ["token_file"],
        ),
        ({"protocol": "ssl", "client_secret": SECRET}, ["client_secret"]),
    ],
)
def test_a_login_by_token_that_cannot_work_is_refused_by_its_keys(
    tmp_path: Path, security: dict[str, str], at: list[str]
) -> None:
    assert paths(refused(tmp_path, kafka={"security": security})) == [f"kafka.security.{key}" for key in at]


@pytest.mark.parametrize(
    "redis",
    [
        {"username": "me", "password": SECRET},
        {"password": SECRET},
        {"url": "redis://me@redis:6379", "password": SECRET},
        {"url": "rediss://redis", "ca_file": "ca.pem", "username": "me", "password": SECRET},
        {"url": "rediss://redis", "certificate_file": "c", "key_file": "k", "key_password": SECRET},
        {"url": "unix:///run/redis.sock", "password": SECRET},
        {"url": f"redis://me:{SECRET}@redis:6379/0"},
    ],
)
def test_a_way_to_redis_that_makes_sense_is_accepted(tmp_path: Path, redis: dict[str, str]) -> None:
    assert load(tmp_path, redis=redis).redis


@pytest.mark.parametrize(
    ("redis", "at"),
    [
        ({"username": "me"}, ["password"]),
        ({"url": f"redis://:{SECRET}@redis", "password": SECRET}, ["password"]),
        ({"url": f"redis://me:{SECRET}@redis", "username": "me"}, ["username"]),
        ({"ca_file": "ca.pem"}, ["ca_file"]),
        ({"url": "unix:///run/redis.sock", "ca_file": "ca.pem"}, ["ca_file"]),
        ({"url": "rediss://redis", "certificate_file": "c"}, ["key_file"]),
        ({"url": "rediss://redis", "key_file": "k"}, ["certificate_file"]),
        ({"url": "rediss://redis", "key_password": SECRET}, ["key_file"]),
        ({"url": "https://redis"}, ["url"]),
        ({"url": f"redis://:{SECRET}/{SECRET}@redis:6379"}, ["url"]),
        ({"url": f"redis://:{SECRET}#1@redis:6379"}, ["url"]),
        ({"url": "redis://redis:66666"}, ["url"]),
    ],
)
def test_a_way_to_redis_that_cannot_work_is_refused_by_its_keys(
    tmp_path: Path, redis: dict[str, str], at: list[str]
) -> None:
    assert paths(refused(tmp_path, redis=redis)) == [f"redis.{key}" for key in at]


def test_secrets_may_stand_in_files_and_names_of_files_are_taken_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("0123\n")
    secret = str(tmp_path / "secret")
    settings = load(
        tmp_path,
        {
            "CREDENCE_REDIS__URL": "rediss://redis",
            "CREDENCE_REDIS__USERNAME": "007",
            "CREDENCE_REDIS__PASSWORD_FILE": secret,
            "CREDENCE_REDIS__CA_FILE": "ca.pem",
            "CREDENCE_KAFKA__SECURITY__CLIENT_ID": "008",
            "CREDENCE_KAFKA__SECURITY__CLIENT_SECRET_FILE": secret,
            "CREDENCE_KAFKA__SECURITY__TOKEN_CA_FILE": "issuer.pem",
        },
        kafka={"security": BY_TOKEN | {"token_endpoint": "https://issuer.example/token"}},
    )
    redis, security = settings.redis, settings.kafka.security
    assert redis.password is not None
    assert security.client_secret is not None
    assert redis.password.get_secret_value() == security.client_secret.get_secret_value() == "0123"
    assert (redis.username, redis.ca_file) == ("007", "ca.pem")
    assert (security.client_id, security.token_ca_file) == ("008", "issuer.pem")


def test_the_name_of_the_token_file_may_stand_in_a_variable(tmp_path: Path) -> None:
    environment = {"CREDENCE_KAFKA__SECURITY__TOKEN_FILE": "/var/run/token"}
    settings = load(tmp_path, environment, kafka={"security": BY_TOKEN})
    assert settings.kafka.security.token_file == "/var/run/token"
