"""The frame of all commands: help, unknown commands and flags, errors and exit codes."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from typing import NoReturn

import pytest

from tests.support.cli import run, run_alone
from trioformer.cli._commands import COMMANDS
from trioformer.cli._main import run_command
from trioformer.errors import TrioformerError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.testing import APIServer


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"]])
async def test_the_help_lists_all_commands(arguments: list[str]) -> None:
    result = await run_alone(*arguments)
    assert (result.code, result.err) == (0, "")
    assert [name for name in (each.name for each in COMMANDS) if f"  {name} " not in result.out] == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
async def test_each_command_has_help_and_refuses_unknown_flags(command: object) -> None:
    words = command.name.split()  # type: ignore[attr-defined]  # a Command; pytest does not say so
    helped = await run_alone(*words, "--help")
    assert helped.code == 0
    assert f"usage: trioformer {' '.join(words)}" in helped.out
    refused = await run_alone(*words, "--no-such-flag")
    name = f"trioformer {' '.join(words)}"
    assert "--no-such-flag" in refused.err
    assert f"'{name} --help'" in refused.err
    assert refused.code == 1
    assert (await run_alone("help", *words)).out.startswith(f"usage: {name}")


async def test_an_unknown_command_is_an_error_with_a_suggestion() -> None:
    result = await run_alone("gett", "pods")
    assert result.code == 1
    assert result.err == "error: unknown command 'gett' for trioformer; did you mean get?\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-n", "other", "get", "configmaps", "-oname"],
        ["get", "-o", "name", "--namespace", "other", "configmaps"],
        ["get", "configmaps", "-n=other", "--output=name"],
    ],
)
async def test_flags_stand_anywhere_and_have_every_form(api_server: APIServer, arguments: list[str]) -> None:
    api_server.create(Namespace(metadata=ObjectMeta(name="other")))
    for namespace in ("default", "other"):
        api_server.create(config_map("settings-" + namespace, namespace))
    result = await run(api_server, *arguments)
    assert result.out == "configmap/settings-other\n"


def config_map(name: str, namespace: str = "default") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace))


async def test_without_a_configuration_there_is_one_line_and_no_traceback() -> None:
    result = await run_alone("get", "pods")
    assert result.code == 1
    assert result.err.startswith("error: no cluster configuration found; tried ")
    assert result.err.count("\n") == 1


async def test_a_server_that_is_not_there_is_named() -> None:
    result = await run_alone("get", "pods", "-s", "http://127.0.0.1:1")
    assert result.code == 1
    assert (
        result.err == "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n"
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("--namespace=sh op", "--namespace: must be a DNS label"),
        ("--certificate-authority=/nonexistent", "--certificate-authority: file '/nonexistent' does not exist"),
    ],
)
async def test_a_wrong_flag_of_the_connection_is_named_as_it_was_given(given: str, problem: str) -> None:
    result = await run_alone("get", "pods", "--server=https://cluster.example", given)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {problem}")
    assert "overrides" not in result.err


def test_the_version_of_the_client_loads_neither_client_nor_models() -> None:
    program = (
        "import sys; from trioformer.cli import main; main(['version', '--client']);"
        "print([name for name in ('httpx', 'yaml', 'rich', 'trioformer.client', 'trioformer.models') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


async def test_the_version_of_the_server_is_printed(api_server: APIServer) -> None:
    result = await run(api_server, "version")
    client, server = result.out.splitlines()
    assert client.startswith("client: ")
    assert server.startswith("server: v1.")


@pytest.mark.parametrize(("verbosity", "level"), [("1", logging.INFO), ("4", logging.DEBUG), ("0", logging.CRITICAL)])
async def test_verbosity_is_the_level_of_the_log(verbosity: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("trioformer")
    before = logger.level
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    try:
        assert (await run_alone("version", "--client", "-v", verbosity)).code == 0
        assert logger.level == level
    finally:
        logger.setLevel(before)


@pytest.mark.parametrize(
    "error", [ValueError("of the program"), ExceptionGroup("both", [TrioformerError("x"), KeyError("of the program")])]
)
async def test_an_error_of_the_program_is_raised(error: Exception) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    with pytest.raises(type(error)) as caught:
        await run_command(["--server", "http://server", "get", "pods"], io.StringIO(), io.StringIO(), {}, fail)
    assert caught.value is error


async def test_an_argument_that_is_not_utf_8_is_named(api_server: APIServer) -> None:
    result = await run(api_server, "get", "configmaps", "-l", "\udcff")
    assert (result.code, result.out, result.err) == (1, "", "error: an argument is not valid UTF-8: b'\\xff'\n")


@pytest.mark.parametrize(
    ("arguments", "keyword"),
    [
        (["get", "pods", "-o", "xml"], "xml"),
        (["logs", "one", "--tail=x"], "--tail"),
        (["logs", "one", "--since=10"], "10"),
        (["--kubeconfig", "x"], "command"),
    ],
)
async def test_a_wrong_flag_is_an_error_that_names_it(arguments: list[str], keyword: str) -> None:
    result = await run_alone(*arguments)
    assert (result.code, result.out) == (1, "")
    assert keyword in result.err
