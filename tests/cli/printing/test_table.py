"""The server's tables as columns of text."""

from __future__ import annotations

import pytest

from tests.support.cli import run
from trioformer.models import from_dict
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer


def create(server: APIServer) -> None:
    server.create(from_dict(Pod, {"metadata": {"name": "web", "labels": {"a.example/app": "web", "b": "1"}}}))
    server.create(from_dict(Pod, {"metadata": {"name": "db"}}))
    server.create(from_dict(ConfigMap, {"metadata": {"name": "settings"}}))


@pytest.mark.parametrize(
    ("arguments", "header", "rows"),
    [
        (["pods", "--show-labels"], "NAME READY STATUS RESTARTS AGE LABELS", ["<none>", "a.example/app=web,b=1"]),
        (["pods", "-L", "a.example/app"], "NAME READY STATUS RESTARTS AGE APP", ["0s", "web"]),
        (["pods", "-A"], "NAMESPACE NAME READY STATUS RESTARTS AGE", ["0s", "0s"]),
        (["pods", "--no-headers"], "db 0/0 Pending 0 0s", ["0s"]),
    ],
)
async def test_flags_add_columns(
    api_server: APIServer, autojump_clock: object, arguments: list[str], header: str, rows: list[str]
) -> None:
    create(api_server)
    result = await run(api_server, "get", *arguments)
    first, *others = [line.split() for line in result.out.splitlines()]
    assert " ".join(first) == header
    assert [line[-1] for line in others] == rows
