"""TLS of clients: whom they trust and what they show, by files that are read anew for every connection.

So a certificate that is renewed in place counts from the next connection on, without a restart.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

from service.config.schema_registry import SchemaRegistrySettings
from service.config.settings import KafkaSecurity, RedisSettings
from service.domain.errors import ConfigurationError

TlsFiles = KafkaSecurity | RedisSettings | SchemaRegistrySettings
"""Settings of one side that Credence talks to."""


class FreshContext:
    """Stands in for a context where sockets are wrapped: made anew for every one of them.

    Args:
        files: what the context is made from.
        at: path of the settings' section.
        failure: makes what is raised when a file cannot be used any more, as the client that wraps sockets
            takes it for a connection that failed; from a sentence about it.

    Raises:
        ConfigurationError: a file cannot be used now.
    """

    def __init__(self, files: TlsFiles, *, at: str, failure: Callable[[str], Exception]) -> None:
        self._files = files
        self._at = at
        self._failure = failure
        client_context(files, at=at)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        """As a context does."""
        try:
            context = client_context(self._files, at=self._at)
        except ConfigurationError as error:
            [(key, problem), *_] = error.problems
            raise self._failure(f"{key} {problem}") from error
        return context.wrap_socket(*arguments, **options)


def client_context(files: TlsFiles, *, at: str) -> ssl.SSLContext:
    """A context that knows the other side by the configured certificates alone, if there are some.

    Raises:
        ConfigurationError: a file cannot be used; by its key in the settings' section `at`.
    """
    context = trusting(files.ca_file, at=f"{at}.ca_file")
    if files.certificate_file is not None:
        password = files.key_password
        try:
            context.load_cert_chain(
                files.certificate_file,
                files.key_file,
                # Never asked for at a terminal.
                (lambda: password.get_secret_value() if password else ""),
            )
        except OSError as error:
            problem = f"with key_file and key_password: {_unusable(error)}"
            raise ConfigurationError([(f"{at}.certificate_file", problem)]) from error
    return context


def trusting(ca_file: str | None, *, at: str) -> ssl.SSLContext:
    """A context that knows the other side by these certificates or the system's, and shows none itself.

    Raises:
        ConfigurationError: the file cannot be used; by its key `at`.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ConfigurationError([(at, _unusable(error))]) from error


def _unusable(error: OSError) -> str:
    """Why a file cannot be used; errors of the ssl module are of this class too."""
    return f"cannot be used: {getattr(error, 'reason', None) or error.strerror or type(error).__name__}"
