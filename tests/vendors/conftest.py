"""Vendor APIs of tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from office import Caller, Office, Open

from service.store.connection import Connection


@pytest.fixture
def open_office(connection: Connection, bootstrap_servers: str) -> Iterator[Open]:
    """Opens vendor APIs with settings of their own."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(Office(connection, bootstrap_servers, **options))


@pytest.fixture
def office(open_office: Open) -> Office:
    """A vendor API with the usual settings, and some requests for both vendors."""
    office = open_office()
    office.ask(20)
    return office


@pytest.fixture
def acme(office: Office) -> Caller:
    return office.caller("acme")


@pytest.fixture
def bolt(office: Office) -> Caller:
    return office.caller("bolt")
