"""Fixtures of the tests of examples."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from trioformer.client import Client
from trioformer.testing import APIServer


@pytest.fixture
async def client(api_server: APIServer) -> AsyncIterator[Client]:
    """The client of an operator, whose permissions tests/examples/test_roles.py compares."""
    async with api_server.open_client(field_manager="tests", operator=True) as opened:
        yield opened
