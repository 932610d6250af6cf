"""``delete``: names, files, selectors, waiting and dry runs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import httpx
import pytest
import trio

from tests.support.cli import Result, opener_of, run
from trioformer.cli._main import run_command
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.testing import APIServer

FILE = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nope, namespace: shop}
"""


@pytest.fixture
def server(api_server: APIServer) -> APIServer:
    for namespace in ("shop", "other"):
        api_server.create(Namespace(metadata=ObjectMeta(name=namespace)))
        for name in ("a", "b"):
            api_server.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels={"app": name})))
    return api_server


async def left(server: APIServer) -> list[str]:
    """Return what ConfigMaps there are."""
    form = "custom-columns=N:.metadata.namespace,M:.metadata.name"
    return (await run(server, "get", "cm", "-A", "--no-headers", "-o", form)).out.split()


async def test_objects_with_names_are_deleted(server: APIServer) -> None:
    result = await run(server, "delete", "cm", "a", "b", "-n", "shop")
    assert (result.code, result.err) == (0, "")
    assert result.out == 'configmap "a" deleted from shop namespace\nconfigmap "b" deleted from shop namespace\n'
    assert await left(server) == ["other", "a", "other", "b"]
    assert (await run(server, "delete", "cm/a", "-n", "other", "-o", "name")).out == "configmap/a\n"
    assert (await run(server, "delete", "ns", "shop")).out == 'namespace "shop" deleted\n'


async def test_what_is_missing_is_an_error_after_the_others(server: APIServer) -> None:
    result = await run(server, "delete", "cm", "x", "a", "-n", "shop")
    assert (result.code, result.out) == (1, 'configmap "a" deleted from shop namespace\n')
    assert result.err == 'Error from server (NotFound): configmaps "x" not found\n'
    result = await run(server, "delete", "cm", "x", "-n", "shop", "--ignore-not-found")
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-l", "app=a", "-n", "shop"], ["other", "a", "other", "b", "shop", "b"]),
        (["-l", "app=a", "-A"], ["other", "b", "shop", "b"]),
        (["--all", "-n", "shop"], ["other", "a", "other", "b"]),
        (["--field-selector", "metadata.name=b", "-n", "shop"], ["other", "a", "other", "b", "shop", "a"]),
        (["--all", "-A"], []),
    ],
)
async def test_what_a_selector_selects_is_deleted(server: APIServer, arguments: list[str], expected: list[str]) -> None:
    assert (await run(server, "delete", "cm", *arguments)).code == 0
    assert await left(server) == expected


async def test_nothing_to_delete_is_said(server: APIServer) -> None:
    assert await run(server, "delete", "cm", "-l", "x=y") == Result(0, "No resources found\n", "")


async def test_objects_of_files_are_deleted_and_their_namespace_last(
    server: APIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(FILE)
    result = await run(server, "delete", "-f", "shop.yaml")
    assert result.code == 1
    assert result.out == 'configmap "a" deleted from shop namespace\nnamespace "shop" deleted\n'
    assert result.err == (
        'Error from server (NotFound): error when deleting "shop.yaml": configmaps "nope" not found\n'
    )
    result = await run(server, "delete", "-f", "shop.yaml", "--ignore-not-found")
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize(("where", "suffix"), [("client", "dry run"), ("server", "server dry run")])
async def test_a_dry_run_deletes_nothing(server: APIServer, where: str, suffix: str) -> None:
    result = await run(server, "delete", "cm", "a", "-n", "shop", f"--dry-run={where}")
    assert result.out == f'configmap "a" deleted from shop namespace ({suffix})\n'
    assert len(await left(server)) == 8


async def test_the_tool_waits_until_an_object_is_gone_unless_told_otherwise(
    server: APIServer, autojump_clock: object
) -> None:
    def held(name: str) -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name=name, finalizers=("x.io/hold",)))

    server.create(held("c"))
    start = trio.current_time()
    assert (await run(server, "delete", "cm", "c", "--wait=false")).code == 0
    result = await run(server, "delete", "cm", "c", "--timeout=5s")
    assert (result.code, result.out) == (1, 'configmap "c" deleted from default namespace\n')
    assert result.err == "error: timed out waiting for the condition on configmaps/c\n"
    assert 5 <= trio.current_time() - start < 7

    async def release() -> None:
        await trio.sleep(30)
        async with server.open_client() as client:
            await client.api(ConfigMap, "default").patch("c", {"metadata": {"finalizers": None}})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(release)
        assert (await run(server, "delete", "cm", "c")).code == 0
    assert trio.current_time() - start > 30


class RecordingTransport(httpx.AsyncBaseTransport):
    """Keeps the bodies of what is deleted."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self.inner = inner
        self.deletions: list[dict[str, object]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE":
            self.deletions.append(json.loads(request.content))
        return await self.inner.handle_async_request(request)


@pytest.mark.parametrize(
    ("flags", "period", "policy", "done"),
    [
        ([], None, "Background", "deleted"),
        (["--grace-period=7", "--cascade=orphan"], 7, "Orphan", "deleted"),
        (["--grace-period=0"], 1, "Background", "deleted"),
        (["--now", "--cascade=foreground"], 1, "Foreground", "deleted"),
        (["--force", "--cascade"], 0, "Background", "force deleted"),
    ],
)
async def test_grace_period_and_cascade_are_sent(
    server: APIServer, flags: list[str], period: int | None, policy: str, done: str
) -> None:
    transport = RecordingTransport(server.http_transport())
    out, err = io.StringIO(), io.StringIO()
    arguments = ["-s", server.config.server, "delete", "cm", "a", "-n", "shop", "--wait=false", *flags]
    assert await run_command(arguments, out, err, {}, opener_of(transport)) == 0
    assert out.getvalue() == f'configmap "a" {done} from shop namespace\n'
    assert err.getvalue().startswith("Warning: Immediate deletion does not wait" if period == 0 else "")
    [options] = transport.deletions
    assert (options.get("gracePeriodSeconds"), options["propagationPolicy"]) == (period, policy)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "error: You must provide one or more resources by argument or filename."),
        (["cm"], "error: resource(s) were provided, but no name was specified\n"),
        (["cm", "a", "--all"], "error: name cannot be provided when a selector is specified\n"),
        (["cm", "--all", "-l", "a=b"], "error: setting 'all' parameter but found a non empty selector. \n"),
        (["cm", "a", "-o", "yaml"], "error: unexpected -o output mode: yaml. We only support '-o name'\n"),
        (["cm", "a", "--now", "--grace-period=3"], "error: --now and --grace-period cannot be specified together\n"),
        (
            ["cm", "a", "--force", "--grace-period=3"],
            "error: --force and --grace-period greater than 0 cannot be specified together\n",
        ),
        (
            ["cm", "a", "--cascade=x"],
            'error: invalid cascade value (x). Must be "background", "foreground", or "orphan"\n',
        ),
        (["cm", "a", "--grace-period=x"], 'error: invalid argument "x" for "--grace-period" flag: strconv.ParseInt'),
    ],
)
async def test_wrong_arguments_are_errors_and_delete_nothing(
    server: APIServer, arguments: list[str], error: str
) -> None:
    result = await run(server, "delete", *arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(error)
    assert len(await left(server)) == 8
