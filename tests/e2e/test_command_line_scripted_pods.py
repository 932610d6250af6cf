"""``logs``, ``exec`` and ``attach`` beside kubectl, on pods of the embedded server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import trio

from tests.e2e.kubectl_programs import PAGE, Programs, config_of, write_kubeconfig
from tests.support.kubectl_pods import OF_PODS, create_pods
from trioformer.testing import APIServer, serve_http

DIFFERENCES: Final = {
    "logs one -n none": "``logs`` in a namespace that does not exist says that the pod does not.",
}
"""What is answered differently, each with the reason, which docs/howto/command-line.rst has too."""


async def test_logs_and_processes_are_those_of_kubectl(assets: Path, tmp_path: Path) -> None:
    server = APIServer()
    create_pods(server)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_http, server)
        programs = Programs(assets / "kubectl", write_kubeconfig(tmp_path / "config", config_of(url), "default"))
        found = await programs.compare_all(OF_PODS)
        unexpected = [f"{each}\n{text}" for each, text in sorted(found.items()) if each not in DIFFERENCES]
        assert not unexpected, f"{len(unexpected)} differ:\n\n" + "\n\n".join(unexpected)
        assert found.keys() == DIFFERENCES.keys()
        nursery.cancel_scope.cancel()


def test_every_difference_is_in_the_documentation() -> None:
    page = " ".join(PAGE.read_text().split())
    assert [reason for reason in DIFFERENCES.values() if reason not in page] == []
