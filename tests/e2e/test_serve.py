"""client-go and kubectl with the kubeconfig that ``serve`` writes, before and after a restart."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio

from tests.e2e.recovery.subjects import THEIRS, programs_of, run_subject
from tests.support.processes import Program, running


@asynccontextmanager
async def serve(directory: Path, bind: str, *more: str) -> AsyncIterator[Program]:
    options = (
        *more,
        f"--bind={bind}",
        f"--state={directory / 'state'}",
        f"--write-kubeconfig={directory / 'kubeconfig'}",
    )
    async with running("-m", "trioformer.testing", "serve", *options) as program:
        await program.wait_for(bool)
        yield program


async def kubectl_of(assets: Path, kubeconfig: Path, *arguments: str) -> str:
    """Run kubectl, and return its output and errors."""
    command = [str(assets / "kubectl"), f"--kubeconfig={kubeconfig}", *arguments]
    done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    return (done.stdout + done.stderr).decode()


async def test_a_pod_behaves_as_if_its_image_were_empty(assets: Path, tmp_path: Path) -> None:
    kubectl = partial(kubectl_of, assets, tmp_path / "kubeconfig")
    with trio.fail_after(60):
        async with serve(tmp_path, "127.0.0.1:0", "--controllers"), trio.open_nursery() as nursery:
            await kubectl("run", "web", "--image=web:1")
            await kubectl("wait", "--for=condition=Ready", "pod/web")
            assert '"ls": executable file not found' in await kubectl("exec", "web", "--", "ls")
            assert '"tar": executable file not found' in await kubectl("cp", "web:/etc/hosts", str(tmp_path / "hosts"))
            for command in ("attach", "logs"):
                nursery.start_soon(kubectl, command, "web", *(["-f"] if command == "logs" else []))
            await trio.sleep(1)
            await kubectl("delete", "pod", "web")  # ends both


async def test_clients_continue_after_a_restart(assets: Path, tmp_path: Path) -> None:
    kubeconfig, command = tmp_path / "kubeconfig", programs_of(assets, THEIRS)[THEIRS]
    kubectl = partial(kubectl_of, assets, kubeconfig)
    with trio.fail_after(60):
        async with serve(tmp_path, "127.0.0.1:0") as first:
            url = first.lines[0]
            async with run_subject(THEIRS, command, url, kubeconfig, "default", 1, tmp_path / "log") as informer:
                assert "created" in await kubectl("create", "configmap", "before")
                first.process.send_signal(signal.SIGTERM)
                assert await first.wait_until_over() == 0
                async with serve(tmp_path, url.removeprefix("https://")):
                    assert "created" in await kubectl("create", "configmap", "after")
                    (state,) = await informer.states()
                    while "default/after" not in state.replay:
                        await trio.sleep(0.1)
                        (state,) = await informer.states()
                    assert "default/before" in state.cache
                    assert state.cache == state.replay
                    assert state.illegal == []
                    kubeconfig.write_text(re.sub("token: .*", "token: another", kubeconfig.read_text()))
                    assert "must be logged in" in await kubectl("get", "configmaps")
