"""The commands that change something, beside kubectl: each program in a namespace, or on a server, of its own.

They must print the same and leave the same objects, with the same owners of fields.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import attrs
import trio
import yaml

from tests.e2e.kubectl_programs import PAGE, Printed, Programs, config_of, difference_of, write_kubeconfig
from tests.e2e.workloads import make_namespace
from tests.support.kubectl_changes import CHANGES, DIFFERENT_CHANGES, needs_cluster, write_files
from trioformer import open_client
from trioformer.testing import APIServer, ControlPlane, serve_http

RANDOM: Final = re.compile(
    r"cli-\d+-\d+"  # the namespace
    r"|(?<=web-)[0-9a-f]{6,10}(-\w{5})?"  # pods and ReplicaSets
    r"|/\S*/(LIVE|MERGED)-\w+/"  # what diff compares
    r"|\d{4}-\d\d-\d\d[T ][\d:.]+(Z| [+-]\d{4})"
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # uids
    r'|(?<=resourceVersion: ")\d+|(?<="resourceVersion":")\d+'
)
LAST: Final = "get cm,secret,svc -o yaml --show-managed-fields"


@attrs.frozen
class Both:
    """The two programs, and what each has printed."""

    kubectl: Programs
    tool: Programs
    directory: Path

    async def compare(self, invocations: list[str]) -> dict[str, str]:
        """Run all invocations in order with each program, and return the differences."""
        printed: dict[str, list[Printed]] = {"kubectl": [], "tool": []}

        async def run(name: str) -> None:
            programs = self.kubectl if name == "kubectl" else self.tool
            for invocation in invocations:
                arguments = shlex.split(invocation.replace("FILES", str(self.directory)))
                done = await (programs.run_kubectl if name == "kubectl" else programs.run_tool)(arguments)
                output, errors = (RANDOM.sub("RANDOM", text) for text in done[1:])
                if invocation.startswith("rollout status"):
                    output = output[output[:-1].rfind("\n") + 1 :]  # what it waits for depends on how fast it is
                printed[name].append((done[0], output, errors))

        with trio.fail_after(300):
            async with trio.open_nursery() as nursery:
                for name in printed:
                    nursery.start_soon(run, name)
        found = {}
        for index, invocation in enumerate(invocations):
            if difference := difference_of(printed["kubectl"][index], printed["tool"][index]):
                found[f"{index + 1}. {invocation}"] = difference
        return found


def check(found: dict[str, str]) -> None:
    unexpected = [f"{each}\n{text}" for each, text in found.items() if each.partition(". ")[2] not in DIFFERENT_CHANGES]
    assert not unexpected, f"{len(unexpected)} differ:\n\n" + "\n\n".join(unexpected)
    # What was mended is no difference any more.
    assert {each.partition(". ")[2] for each in found} == DIFFERENT_CHANGES.keys()


async def test_changes_on_kube_apiserver_are_those_of_kubectl(
    cluster: ControlPlane, assets: Path, tmp_path: Path
) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    programs: list[Programs] = []
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        for name in ("kubectl", "tool"):
            namespace = await make_namespace(client, "cli")
            home = tmp_path / name
            home.mkdir()
            programs.append(Programs(assets / "kubectl", write_kubeconfig(home / "config", config, namespace)))
    both = Both(*programs, write_files(tmp_path / "files"))
    check(await both.compare([*CHANGES, LAST]))


async def test_changes_on_the_embedded_server_are_those_of_kubectl(assets: Path, tmp_path: Path) -> None:
    programs: list[Programs] = []
    async with trio.open_nursery() as nursery:
        for name in ("kubectl", "tool"):
            url = await nursery.start(serve_http, APIServer())
            home = tmp_path / name
            home.mkdir()
            programs.append(Programs(assets / "kubectl", write_kubeconfig(home / "config", config_of(url), "default")))
        both = Both(*programs, write_files(tmp_path / "files"))
        check(await both.compare([each for each in [*CHANGES, LAST] if not needs_cluster(each)]))
        nursery.cancel_scope.cancel()


def test_every_difference_is_in_the_documentation() -> None:
    page = " ".join(PAGE.read_text().split())
    assert [reason for reason in DIFFERENT_CHANGES.values() if reason not in page] == []
