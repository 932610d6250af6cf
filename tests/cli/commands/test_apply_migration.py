"""What the client has applied and what the server applies then: conflicts, and failures that are warnings."""

from __future__ import annotations

import io
from pathlib import Path

import httpx
import pytest

from tests.support.cli import Result, opener_of, run
from trioformer.cli._main import run_command
from trioformer.models import to_dict
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: '1'}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "web.yaml"
    path.write_text(CONFIG)
    return path


async def apply_refused(server: APIServer, file: Path, code: int, times: int) -> Result:
    """Apply by the server, which refuses the first changes of the managers."""
    served, reason = server.http_transport(), {409: "Conflict", 403: "Forbidden"}[code]
    left = times

    class Refuses(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            nonlocal left
            if left and request.headers.get("Content-Type") == "application/json-patch+json":
                left -= 1
                status = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": "refused"}
                return httpx.Response(code, json=status)
            return await served.handle_async_request(request)

    assert (await run(server, "apply", "-f", str(file))).code == 0
    out, err = io.StringIO(), io.StringIO()
    arguments = ["-s", server.config.server, "apply", "-f", str(file), "--server-side"]
    result = await run_command(arguments, out, err, {}, opener_of(Refuses()))
    return Result(result, out.getvalue(), err.getvalue())


def managers(server: APIServer) -> set[tuple[str, str]]:
    entries = to_dict(server.get(ConfigMap, "web"))["metadata"]["managedFields"]
    return {(entry["manager"], entry["operation"]) for entry in entries}


async def test_a_conflict_is_tried_again(api_server: APIServer, file: Path) -> None:
    result = await apply_refused(api_server, file, 409, 4)
    assert (result.code, result.out, result.err) == (0, "configmap/web serverside-applied\n", "")
    assert managers(api_server) == {("kubectl", "Apply"), ("kubectl-last-applied", "Apply")}


@pytest.mark.parametrize(("code", "times"), [(409, 5), (403, 1)])
async def test_what_is_refused_is_only_a_warning(api_server: APIServer, file: Path, code: int, times: int) -> None:
    result = await apply_refused(api_server, file, code, times)
    assert (result.code, result.out) == (0, "configmap/web serverside-applied\n")
    assert result.err.startswith("Warning: failed to migrate the managed fields of ")
    assert " to server-side apply: " in result.err
    assert result.err.count("\n") == 1
    assert ("kubectl-client-side-apply", "Update") in managers(api_server)
