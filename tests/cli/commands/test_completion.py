"""``completion``: the scripts, in real shells with a terminal, on a server on a socket."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio

from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.models.rbac_v1 import Role
from trioformer.testing import APIServer, serve_http

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: test, cluster: {{server: "{url}"}}}}]
contexts: [{{name: test-context, context: {{cluster: test}}}}]
current-context: test-context
"""
# The echo of these lines must not look like the prompt that they set.
START = {
    "bash": "source <(trioformer completion bash); PS1='REA''DY '\n",
    "zsh": "autoload -U compinit; compinit -D; bindkey -e; source <(trioformer completion zsh); PROMPT='REA''DY '\n",
}
ARGUMENTS = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}


@attrs.frozen
class Shell:
    """A shell; the test is at its keyboard."""

    keyboard: int

    async def expect(self, pattern: str) -> str:
        shown = ""
        while (found := re.search(pattern, shown)) is None:
            await trio.lowlevel.wait_readable(self.keyboard)
            shown += os.read(self.keyboard, 4096).decode().replace("\r\n", "")
        return found[0]

    async def complete(self, line: str) -> str:
        """Press Tab at the end of a line, and return its words then."""
        # Then Ctrl-A, and a command that prints the words.
        os.write(self.keyboard, f"{line}\t\x01printf '<%s>' \r".encode())
        return await self.expect(r"<trioformer>(<[^<>]*>)*(?=[^<]*READY )")


@asynccontextmanager
async def open_shell(name: str, url: str, directory: Path) -> AsyncIterator[Shell]:
    program = directory / "trioformer"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trioformer "$@"\n')
    program.chmod(0o755)
    config = directory / "kubeconfig"
    config.write_text(KUBECONFIG.format(url=url))
    config.chmod(0o600)
    environ = os.environ | {
        "KUBECONFIG": str(config),
        "PATH": f"{directory}{os.pathsep}{os.environ['PATH']}",
        "TERM": "dumb",
        "HISTFILE": "",
        "HOME": str(directory),
    }
    (directory / "files").mkdir()
    keyboard, screen = os.openpty()
    shell = partial(
        trio.run_process,
        [name, *ARGUMENTS[name]],
        stdin=screen,
        stdout=screen,
        stderr=subprocess.STDOUT,
        check=False,
        env=environ,
        cwd=directory,
        start_new_session=True,
    )
    try:
        async with trio.open_nursery() as nursery:
            process = await nursery.start(shell)
            try:
                opened = Shell(keyboard)
                os.write(keyboard, START[name].encode())
                await opened.expect("READY ")
                yield opened
            finally:
                process.kill()  # which a shell at a terminal must be
    finally:
        os.close(keyboard)
        os.close(screen)


@pytest.mark.parametrize(
    "name",
    [
        "bash",
        pytest.param("zsh", marks=pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")),
    ],
)
async def test_words_are_completed_at_a_tab(
    api_server: APIServer, nursery: trio.Nursery, tmp_path: Path, name: str
) -> None:
    api_server.create(Namespace(metadata=ObjectMeta(name="shop")))
    api_server.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace="shop")))
    url = await nursery.start(serve_http, api_server)
    async with open_shell(name, url, tmp_path) as shell:
        for line, words in [
            ("trioformer get configm", "<trioformer><get><configmaps>"),
            ("trioformer --namespace=sh", "<trioformer><--namespace=shop>"),
            ("trioformer -n shop get cm/s", "<trioformer><-n><shop><get><cm/settings>"),
            ("trioformer --kubeconfig fil", "<--kubeconfig><files>"),
        ]:
            assert (await shell.complete(line)).replace("/>", ">").endswith(words)


@pytest.mark.parametrize("opening", ["", "'"])
async def test_bash_does_not_run_the_name_of_an_object(
    api_server: APIServer, nursery: trio.Nursery, tmp_path: Path, opening: str
) -> None:
    api_server.create(Role(metadata=ObjectMeta(name="aaa$(touch${IFS}x)", namespace="default")))
    url = await nursery.start(serve_http, api_server)
    with trio.fail_after(20):
        async with open_shell("bash", url, tmp_path) as shell:
            words = await shell.complete(f"trioformer get roles {opening}aaa")
    assert not (tmp_path / "x").exists()  # a test may wait for its file system
    assert words.startswith("<trioformer><get><roles><aaa")
    assert opening or words.endswith("<aaa$(touch${IFS}x)>")
