"""``watch``: the live table of an informer's cache, and its health."""

from __future__ import annotations

import io

import pytest
import trio

from tests.support.cli import opener_of, run
from trioformer.cli._main import run_command
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer


async def watched(server: APIServer, *arguments: str) -> list[list[str]]:
    """Return the words of each line of the last picture."""
    for name in ("a", "b", "c"):
        server.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))
    out = io.StringIO()
    with trio.move_on_after(5):
        given = ["watch", *arguments, "-s", server.config.server]
        await run_command(given, out, io.StringIO(), {}, opener_of(server.http_transport()))
    return [line.split() for line in out.getvalue().splitlines()]


async def test_the_table_has_the_cache_and_its_health(api_server: APIServer, autojump_clock: object) -> None:
    lines = await watched(api_server, "cm", "--rows", "2")
    assert lines[0][:5] == ["3", "configmaps", "in", "default", "·"]
    assert [line[0] for line in lines[1:4]] == ["NAME", "a", "b"]
    assert lines[4] == ["and", "1", "more"]


async def test_the_table_of_all_namespaces_has_the_namespace(api_server: APIServer, autojump_clock: object) -> None:
    lines = await watched(api_server, "cm", "-A", "-o", "wide")
    assert lines[0][:5] == ["3", "configmaps", "in", "all", "namespaces"]
    assert lines[1][:2] == ["NAMESPACE", "NAME"]
    assert lines[2][:2] == ["default", "a"]


@pytest.mark.parametrize(
    ("arguments", "keyword"),
    [
        ([], "one kind"),
        (["pods/web"], "one kind"),
        (["all"], "one kind"),
        (["foos"], '"foos"'),
        (["pods", "--rows=x"], "--rows"),
        (["pods", "-o", "json"], '"json"'),
    ],
)
async def test_mistakes_are_named(api_server: APIServer, arguments: list[str], keyword: str) -> None:
    result = await run(api_server, "watch", *arguments)
    assert (result.code, result.out) == (1, "")
    assert keyword in result.err
