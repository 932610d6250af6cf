"""Real programs of a control plane as clients of the embedded API server, in place of kube-apiserver."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from trioformer.testing import APIServer, serve_http
from trioformer.testing.control_plane._certificates import Certificates, issue_certificates
from trioformer.testing.control_plane._cluster import make_component, make_controller_manager, make_kwok
from trioformer.testing.control_plane._process import Program, start_on_free_ports

DELETED: Final = (
    r"(namespaces|pods|serviceaccounts|endpoints|resourcequotas|persistentvolumeclaims|\w+\.(apps|batch|policy)"
    r'|endpointslices\.discovery\.k8s\.io) \\?"\S+" not found|Error getting updated StatefulSet'
)
EXPECTED: Final = {
    r"The manifest file is empty, ignoring": "kube-controller-manager has no static admission webhooks",
    r"as new as written version": "a controller does not see its last write yet, and tries again",
    r"the object has been modified": "two controllers have changed an object, and one of them tries again",
    r"because it is being terminated": "the namespace was deleted while a controller worked in it",
    DELETED: "an object was deleted while a controller worked on it",
    r"legacy-service-account-token-tracking": "only kube-apiserver has this ConfigMap, which counts uses of old tokens",
}
"""The errors that the programs may log, and the reasons.  With kube-apiserver, kube-controller-manager logs the first
four as well."""


@asynccontextmanager
async def kubeconfig_of(
    server: APIServer, directory: Path, certificates: Certificates | None = None
) -> AsyncIterator[Path]:
    """Serve on loopback, with TLS if there are certificates, and write a kubeconfig."""
    arguments = (
        {} if certificates is None else {"certificate": certificates.server_certificate, "key": certificates.server_key}
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        url: str = await nursery.start(functools.partial(serve_http, server, **arguments))
        path = directory / "kubeconfig"
        path.write_text(json.dumps(kubeconfig(url) if certificates is None else certificates.kubeconfig(url)))
        path.chmod(0o600)
        yield path
        nursery.cancel_scope.cancel()


def kubeconfig(url: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "embedded", "cluster": {"server": url}}],
        "contexts": [{"name": "embedded", "context": {"cluster": "embedded"}}],
        "current-context": "embedded",
    }


MAKERS: Final = {
    "kube-controller-manager": make_controller_manager,
    "kube-scheduler": functools.partial(make_component, "kube-scheduler"),
    "kwok": make_kwok,
}


@asynccontextmanager
async def programs_on(
    server: APIServer, assets: Path, directory: Path, names: Iterable[str]
) -> AsyncIterator[list[Program]]:
    """Serve on loopback with TLS, and run the named programs as clients."""
    (directory / "logs").mkdir()
    certificates = issue_certificates(directory)
    async with kubeconfig_of(server, directory, certificates), AsyncExitStack() as stack:
        programs: list[Program] = []
        for name in names:
            make = MAKERS[name]
            programs.append(await start_on_free_ports(lambda make=make: make(assets, directory, certificates)))  # type: ignore[misc]
            stack.push_async_callback(programs[-1].stop)
        yield programs


def problems_of(program: Program) -> list[str]:
    """Return the errors and panics in a program's log, except those in :data:`EXPECTED`, and its unexpected end."""
    lines = program.log.read_text(errors="replace").splitlines()
    found = [line for line in lines if re.match(r"[EF]\d{4} |panic|goroutine |fatal error", line)]
    ended = [] if program.pid is not None else [f"{program.name} has ended"]
    return ended + [line for line in found if not any(re.search(each, line) for each in EXPECTED)]


async def until_nothing(missing: Callable[[], object], seconds: float) -> None:
    """Wait until a function returns an empty value, and fail with its last value."""
    with trio.move_on_after(seconds):
        while missing():  # noqa: ASYNC110  # the state of a server
            await trio.sleep(0.1)
    assert not (last := missing()), last


async def results_of_checks(
    run: Callable[..., Awaitable[object]], seconds: float, disturb: Callable[[str], Awaitable[None]]
) -> dict[str, str]:
    """Run a program that writes a line of JSON for each check; returns the error of each, which is empty if it passed.

    Args:
        run: `trio.run_process` with its command and its folder.
        seconds: The time limit.
        disturb: A function that is called with a fault that the program asks for, and waits for.
    """
    results: dict[str, str] = {}
    with trio.fail_after(seconds):
        async with trio.open_nursery() as nursery:
            pipes = functools.partial(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            process: trio.Process = await nursery.start(pipes)
            assert process.stdin is not None
            assert process.stdout is not None
            rest = b""
            async for data in process.stdout:
                *lines, rest = (rest + data).split(b"\n")
                for line in map(json.loads, lines):
                    if (fault := line.get("do")) is not None:
                        await disturb(fault)
                        await process.stdin.send_all(b"\n")
                    else:
                        results[line["name"]] = line["error"]
    return results
