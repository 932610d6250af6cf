"""``examples/pod_logger.py`` as a user runs it: its lines, exit codes, and one line for all that can be wrong."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from tests.support.loopback_server import Exchange, LoopbackServer
from tests.support.processes import HERE_OR_AS_PROCESS, POD_LOGGER, Result, running, serving_in_a_thread

LOGGER = str(POD_LOGGER)


@pytest.fixture(params=HERE_OR_AS_PROCESS)
def result(request: pytest.FixtureRequest) -> Result:
    """Runs a program that ends by itself."""
    return request.param  # type: ignore[no-any-return]  # pytest does not know


NEWS = ("New Pod Added to Store: ", " Pod Updated to ", "Pod Deleted from Store: ")


async def test_the_embedded_cluster_shows_all_three_lines_until_ctrl_c() -> None:
    with trio.fail_after(30):
        async with running(LOGGER, "--embedded") as logger:
            for part in NEWS:
                await logger.wait_for(lambda lines, part=part: any(part in line for line in lines))  # type: ignore[misc]  # bound early
            assert await logger.interrupt() == 0
    assert logger.errors == []


def test_it_ends_after_the_given_seconds_and_three_show_all_three_lines(result: Result) -> None:
    code, lines, errors = result(LOGGER, "--embedded", "--for", "3", "--resync", "0", is_virtual=True)
    assert (code, errors) == (0, [])
    assert [any(part in line for line in lines) for part in NEWS] == [True] * 3


def test_each_line_begins_with_the_time_as_in_gos_log(result: Result) -> None:
    _, lines, _ = result(LOGGER, "--embedded", "--for", "3", is_virtual=True)
    line = re.compile(
        r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d "
        r"(New Pod Added to Store: [-a-z0-9]+|([-a-z0-9]+) Pod Updated to \2|Pod Deleted from Store: [-a-z0-9]+)"
    )
    assert [each for each in lines if not line.fullmatch(each)] == []


def test_an_updated_pod_is_named_twice_in_its_line(result: Result) -> None:
    _, lines, _ = result(LOGGER, "--embedded", "--no-time", "--for", "3", is_virtual=True)
    line = next(line for line in lines if " Pod Updated to " in line)
    name, _, again = line.partition(" Pod Updated to ")
    assert name == again


def told_in_one_line(code: int, lines: list[str], errors: list[str]) -> str:
    assert (code, lines) == (1, [])
    assert len(errors) == 1, errors
    assert errors[0].startswith("pod_logger: ")
    assert errors[0].endswith("; try --embedded for a cluster inside this process")
    return errors[0]


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: there, user: me}}}}]
clusters: [{{name: there, cluster: {{server: "{server}"{cluster}}}}}]
users: [{{name: me, user: {{{user}}}}}]
"""


def kubeconfig(tmp_path: Path, server: str = "http://127.0.0.1:1", *, cluster: str = "", user: str = "") -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG.format(server=server, cluster=cluster, user=user))
    return str(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "does not exist"),
        (KUBECONFIG.format(server="https://127.0.0.1:1", cluster="", user="exec: {command: aws}"), "exec"),
    ],
    ids=["missing", "exec plugin"],
)
def test_a_wrong_kubeconfig_is_told_with_file_and_reason(
    tmp_path: Path, content: str | None, expected: str, result: Result
) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    line = told_in_one_line(*result(LOGGER, "--kubeconfig", str(path)))
    assert str(path) in line
    assert expected in line


def test_a_server_that_is_not_there_is_told_with_its_address(tmp_path: Path, result: Result) -> None:
    line = told_in_one_line(*result(LOGGER, "--kubeconfig", kubeconfig(tmp_path)))
    assert "127.0.0.1:1" in line


STATUS = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%b","reason":"%b","code":%d}'


def status(code: int, reason: str, message: str) -> Callable[[Exchange], Awaitable[None]]:
    async def answer(exchange: Exchange) -> None:
        await exchange.respond(STATUS % (message.encode(), reason.encode(), code), code)

    return answer


async def html(exchange: Exchange) -> None:
    await exchange.respond(b"<html><body>Welcome to the hotel's network</body></html>", content_type="text/html")


async def closed_at_once(exchange: Exchange) -> None:
    await exchange.stream.aclose()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (status(403, "Forbidden", 'pods is forbidden: User \\"me\\" cannot list'), "pods is forbidden"),
        (html, "not JSON"),
        (closed_at_once, "127.0.0.1"),
    ],
    ids=["403", "html", "closed at once"],
)
def test_a_server_that_answers_wrongly_is_told_in_one_line(
    tmp_path: Path, script: Callable[[Exchange], Awaitable[None]], expected: str, result: Result
) -> None:
    server = LoopbackServer(script)
    with serving_in_a_thread(server.run):
        line = told_in_one_line(*result(LOGGER, "--kubeconfig", kubeconfig(tmp_path, server.url)))
    assert expected in line
