"""HTTPS_PROXY, HTTP_PROXY and NO_PROXY; the end-to-end tests ask Go about the same environments."""

from __future__ import annotations

import pytest

from tests.support.proxy_environments import DIRECT, ERROR, ROWS, Row
from trioformer.errors import ConfigError
from trioformer.transport._proxy._environment import find_in_environment, find_route


def test_the_table_has_rows_for_everything() -> None:
    assert len(ROWS) >= 40
    assert {row.expected for row in ROWS} >= {DIRECT, ERROR}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.environment} {row.server}")
def test_the_proxy_is_the_one_that_go_uses(row: Row) -> None:
    if row.expected == ERROR:
        with pytest.raises(ConfigError, match=r"REQUEST_METHOD is set"):
            find_route(row.server, None, source="test", variable=row.environment.get)
        return
    route = find_route(row.server, None, source="test", variable=row.environment.get)
    if row.expected == DIRECT:
        assert route is None
        return
    assert route is not None
    scheme, _, place = row.expected.partition("://")
    assert route.proxy.scheme == scheme.replace("socks5h", "socks5")
    assert str(route.proxy).startswith(f"{route.proxy.scheme}://{place.rpartition('@')[2]}")


def test_the_value_of_a_variable_is_not_shown() -> None:
    found = find_in_environment("https://api.test", {"HTTPS_PROXY": "http://anna:planted@proxy"}.get)
    assert "planted" not in repr(found)
