"""Problems of a configuration as the command line prints them."""

from __future__ import annotations

import pytest

from service.config.document import parse_document
from service.config.loader import settings_of
from service.domain.errors import ConfigurationError


def problem_lines(text: str, environment: dict[str, str] | None = None) -> list[str]:
    """The lines of the message about an invalid configuration, without the first one."""
    with pytest.raises(ConfigurationError) as caught:
        settings_of(parse_document(text, "credence.yaml"), "credence.yaml", environment or {})
    return str(caught.value).splitlines()[1:]
