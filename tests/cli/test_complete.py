"""What words are completed to, and what the shell does besides."""

from __future__ import annotations

import io
from pathlib import Path

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.support.cli import opener_of
from trioformer.cli._commands import COMMANDS
from trioformer.cli._main import run_command
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import ConfigMap, Namespace, Pod
from trioformer.models.rbac_v1 import Role
from trioformer.testing import APIServer

BREAKS = " \t\n\"'><=;|&(:"
"""``COMP_WORDBREAKS`` of bash."""


@pytest.fixture
def server(api_server: APIServer) -> APIServer:
    """Create a few objects."""
    api_server.create(Namespace(metadata=ObjectMeta(name="shop")))
    for name in ("web-1", "web-2", "db-0"):
        spec = {"initContainers": [{"name": "setup"}], "containers": [{"name": "main"}, {"name": "side"}]}
        api_server.create(from_dict(Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": spec}))
    selector = {"matchLabels": {"app": "web"}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}
    web = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": selector, "template": template}}
    api_server.create(from_dict(Deployment, web))
    api_server.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace="shop")))
    return api_server


async def complete(server: APIServer, *arguments: str, environ: dict[str, str] | None = None) -> list[str]:
    """Return what the shell does besides, and the candidates."""
    out, err = io.StringIO(), io.StringIO()
    code = await run_command(["__complete", *arguments], out, err, environ or {}, opener_of(server.http_transport()))
    assert (code, err.getvalue()) == (0, "")
    return out.getvalue().split("\n")[:-1]


async def complete_line(server: APIServer, line: str) -> list[str]:
    return await complete(
        server, "bash", BREAKS, line.replace("trioformer", f"trioformer -s {server.config.server}", 1)
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("trioformer nonsense ", [""]),
        ("A=1 B=2 trioformer ev", ["", "events"]),
        ("trioformer help ev", ["", "events"]),
        ("trioformer get --field", ["", "--field-selector"]),
        ("trioformer get deploy", ["", "deployments"]),
        ("trioformer get pods,deploy", ["", "pods,deployments"]),
        ("trioformer get pods ", ["", "db-0", "web-1", "web-2"]),
        ('trioformer get "po" w', ["", "web-1", "web-2"]),
        ("trioformer get pods -o yaml w", ["", "web-1", "web-2"]),
        ("trioformer get pod/w", ["", "pod/web-1", "pod/web-2"]),
        ("trioformer get pod/web-1 deploy", ["nospace", "deployments/"]),
        ("trioformer -nshop get cm ", ["", "settings"]),
        ("trioformer get -An sh", ["", "shop"]),
        ("trioformer get --namespace=sh", ["", "shop"]),
        ("trioformer get pods --output=w", ["", "wide"]),
        ("trioformer get pods --no-such-flag w", [""]),
        ("trioformer get --kubeconfig /et", ["files"]),
        ("trioformer logs w", ["", "web-1", "web-2"]),
        ("trioformer logs d", ["nospace", "db-0", "daemonsets/", "deployments/"]),
        ("trioformer logs deploy/", ["", "deploy/web"]),
        ("trioformer logs -f web-1 -c s", ["", "side", "setup"]),
        ("trioformer exec -c m", [""]),
        ("trioformer exec web-1 -- ca", ["files"]),
        ("trioformer completion ", ["", "bash", "zsh"]),
    ],
)
async def test_words_are_completed(server: APIServer, line: str, found: list[str]) -> None:
    assert await complete_line(server, line) == found


@pytest.mark.parametrize(
    ("last", "found"),
    [
        ("'aaa$(", [r"aaa\$\(touch\$\{IFS\}x\)"]),
        ("bbb:", [r"\;\ \`c\`\&\|\<\>\#\~\*\?\!\'\"\\d"]),
        ("role/b", [r"role/bbb:\;\ \`c\`\&\|\<\>\#\~\*\?\!\'\"\\d"]),
        ("\u00e9", ["\u00e9.A-_@+=,"]),
        ("c", []),
    ],
)
async def test_names_are_quoted_for_bash_as_by_kubectl_and_none_has_control_characters(
    server: APIServer, last: str, found: list[str]
) -> None:
    for name in (
        "aaa$(touch${IFS}x)",
        "bbb:; `c`&|<>#~*?!'\"\\d",
        "\u00e9.A-_@+=,",
        "c\x1b[2J",
        "c\u202e",
    ):
        server.create(Role(metadata=ObjectMeta(name=name, namespace="default")))
    words = "" if last.startswith("role/") else "roles "
    assert (await complete_line(server, f"trioformer get {words}{last}"))[1:] == found


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
async def test_the_flags_and_arguments_of_each_command_are_completed(server: APIServer, command: object) -> None:
    name = command.name  # type: ignore[attr-defined]  # a Command; pytest does not say so
    assert "--namespace" in await complete_line(server, f"trioformer {name} --")
    assert (await complete_line(server, f"trioformer {name} "))[0] in ("", "nospace", "files")


async def test_names_of_the_kubeconfig_are_completed(server: APIServer, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("clusters: [{name: c1}]\ncontexts: [{name: a1}, {name: b1}]\nusers: [{name: u1}]\n")
    environ = {"KUBECONFIG": str(config)}
    assert await complete(server, "zsh", "--context", "", environ=environ) == ["", "a1", "b1"]
    config.write_text("[")
    assert await complete(server, "zsh", "--context", "", environ=environ) == [""]


async def test_zsh_gets_descriptions_and_whole_words(server: APIServer) -> None:
    arguments = ["--server", server.config.server]
    assert await complete(server, "zsh", *arguments, "get", "configm") == ["", "configmaps\tConfigMap"]
    assert await complete(server, "zsh", *arguments, "get", "--namespace=sh") == ["", "--namespace=shop"]


@pytest.mark.parametrize("arguments", [[], ["fish"], ["bash", "x"], ["bash", "", ""]])
async def test_what_no_script_asks_is_not_answered(server: APIServer, arguments: list[str]) -> None:
    out = io.StringIO()
    assert await run_command(["__complete", *arguments], out, io.StringIO(), {}) == 1
    assert out.getvalue() == ""


async def test_a_cluster_that_does_not_respond_has_no_names(autojump_clock: MockClock) -> None:
    async def never(_: httpx.Request) -> httpx.Response:
        await trio.sleep_forever()
        raise AssertionError

    out, err = io.StringIO(), io.StringIO()
    opener = opener_of(httpx.MockTransport(never))
    line = "trioformer -s http://cluster.example get pods "
    assert await run_command(["__complete", "bash", BREAKS, line], out, err, {}, opener) == 0
    assert (out.getvalue(), err.getvalue()) == ("\n", "")


async def test_without_a_configuration_there_are_no_names(server: APIServer) -> None:
    assert await complete(server, "bash", BREAKS, "trioformer get pods ") == [""]
