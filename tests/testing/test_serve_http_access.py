"""Who may use the embedded server on its socket: not pages in a browser, and not other machines by accident."""

from __future__ import annotations

import logging
import re
import ssl
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trustme

from tests.support.kubeconfigs import load_kubeconfig
from tests.support.processes import running
from tests.support.raw_requests import CONFIG_MAPS, config_map, failure_of
from trioformer import open_client
from trioformer.models.core_v1 import Namespace
from trioformer.testing import APIServer, serve_http
from trioformer.testing.__main__ import main
from trioformer.testing._serving._guard import host_of


@asynccontextmanager
async def served(bind: str = "127.0.0.1:0", **options: Any) -> AsyncIterator[str]:
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            yield await nursery.start(partial(serve_http, APIServer(), bind, **options))
            nursery.cancel_scope.cancel()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A server's certificate with its authority's, and its key."""
    directory = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    chain = issued.cert_chain_pems[0].bytes() + authority.cert_pem.bytes()
    (directory / "server.crt").write_bytes(chain)
    issued.private_key_pem.write_to_path(directory / "server.key")
    return directory / "server.crt", directory / "server.key"


# --- pages in a browser ---


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "[::1]", "localhost:80", "a.test"]
)
async def test_names_of_this_machine_and_allowed_ones_are_served(host: str) -> None:
    async with served(hosts=["A.test"]) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/version", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "0.0.0.0",
        "",
        "x@localhost",
        "local host",
        "[::1",
        "127.0.0.1,evil.example",
    ],
)
async def test_a_name_that_a_page_can_have_rebound_is_refused(host: str) -> None:
    async with served() as url, httpx.AsyncClient(base_url=url) as http:
        for method, path in (("GET", "/api/v1/namespaces"), ("GET", "/healthz"), ("POST", CONFIG_MAPS)):
            response = await http.request(method, path, headers={"host": host}, json=config_map())
            code, reason, message = failure_of(response)
            assert (code, reason) == (403, "Forbidden")
            given = host_of(host) or host  # without the port, as it is to be allowed
            assert message.startswith(f"the host {given!r} is not a name of this server; allow it with hosts=")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:3000", "https://{host}", ""])
async def test_a_request_of_another_sites_page_is_refused(origin: str) -> None:
    async with served() as url, httpx.AsyncClient(base_url=url) as http:
        headers = {"origin": origin.format(host=url.removeprefix("http://"))}
        response = await http.post(CONFIG_MAPS, json=config_map(), headers=headers)
        assert failure_of(response)[:2] == (403, "Forbidden")
        assert (await http.post(CONFIG_MAPS, json=config_map(), headers={"origin": url})).status_code == 201


@pytest.mark.parametrize("bind", ["127.0.0.2:0", "[::1]:0", "localhost:0"])
async def test_what_the_server_listens_on_is_served(bind: str) -> None:
    async with trio.open_nursery() as nursery:
        try:
            url = await nursery.start(serve_http, APIServer(), bind)
        except OSError:
            pytest.skip("no such address here")
        async with httpx.AsyncClient(base_url=url) as http:
            assert (await http.get("/version")).status_code == 200
            host = {"host": bind.rpartition(":")[0]}
            assert (await http.get("/version", headers=host)).status_code == 200
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("given", "host"),
    [
        ("My-Machine.", "my-machine"),
        ("my-machine", "my-machine."),
        ("fd00::1", "[FD00:0::1]"),
        ("[fd00::1]", "[fd00::1]"),
    ],
)
async def test_a_name_is_allowed_however_it_is_written(given: str, host: str) -> None:
    async with served(hosts=[given]) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/version", headers={"host": f"{host}:8741"})).status_code == 200


NO_NAMES = [
    "my-machine:8741",
    "http://my-machine",
    "*",
    "*.a.test",
    "a,b",
    ".a.test",
    "a..b",
    "",
    "a b",
    "[a]",
    "a/b",
    "ä",
]


@pytest.mark.parametrize("name", NO_NAMES)
async def test_a_name_that_could_never_match_is_refused(name: str) -> None:
    problem = "must be a host name or an IP address, without scheme, port and wildcard"
    with trio.fail_after(5), pytest.raises(ValueError, match=re.escape(f"(--allow-host): {name!r} {problem}")):
        await serve_http(APIServer(), hosts=["a.test", name])


def test_the_command_refuses_a_name_that_could_never_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--bind", "127.0.0.1:0", "--allow-host", "my-machine:8741"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: hosts= (--allow-host): 'my-machine:8741' must be a host name or an IP address")


# --- other machines ---


@pytest.mark.parametrize("missing", ["everything", "TLS", "token"])
async def test_other_machines_need_tls_and_a_token(missing: str, certificates: tuple[Path, Path]) -> None:
    certificate, key = certificates
    options = {
        "everything": {},
        "TLS": {"token": "t0k3n"},
        "token": {"certificate": certificate, "key": key},
    }[missing]
    for bind in (":0", "0.0.0.0:0"):
        with pytest.raises(ValueError, match="lets other machines read and change everything"):
            await serve_http(APIServer(), bind, **options)  # type: ignore[arg-type]  # of several types


async def test_other_machines_are_let_in_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with served("0.0.0.0:0", allow_insecure=True) as url:
        port = url.rpartition(":")[2]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            assert (await http.get("/version", headers={"host": "192.0.2.1"})).status_code == 200  # any address
            assert (await http.get("/version", headers={"host": "evil.example"})).status_code == 403
    (warning,) = [one for one in caplog.records if one.name == "trioformer.testing"]
    assert warning.levelno == logging.WARNING
    assert "listens on 0.0.0.0:0 without TLS and a token (allow_insecure)" in warning.getMessage()


async def test_tls_and_a_token(certificates: tuple[Path, Path], caplog: pytest.LogCaptureFixture) -> None:
    certificate, key = certificates
    trust = ssl.create_default_context(cafile=str(certificate))
    async with served("0.0.0.0:0", certificate=certificate, key=key, token="t0k3n", hosts=[]) as url:
        assert url.startswith("https://")
        base = f"https://127.0.0.1:{url.rpartition(':')[2]}"
        async with httpx.AsyncClient(base_url=base, verify=trust) as http:
            assert (await http.get("/healthz")).text == "ok"
            for value in (None, "Bearer", "Bearer t0k3", "Bearer t0k3n2", "Basic t0k3n"):
                headers = {} if value is None else {"authorization": value}
                assert failure_of(await http.get("/version", headers=headers)) == (401, "Unauthorized", "Unauthorized")
            assert (await http.get("/version", headers={"authorization": "Bearer t0k3n"})).status_code == 200
    assert [one for one in caplog.records if one.name.startswith("trioformer")] == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"certificate": "x"}, "TLS needs both"), ({"key": "x"}, "TLS needs both"), ({"token": ""}, "printable ASCII")],
)
async def test_options_that_contradict_each_other_raise(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        await serve_http(APIServer(), **options)


async def test_a_single_name_is_not_taken_for_a_collection_of_its_characters() -> None:
    with pytest.raises(TypeError, match="collection of names"):
        await serve_http(APIServer(), hosts="my-machine")


# --- the command ---


@pytest.mark.parametrize(
    ("bind", "names", "host"),
    [
        ("0.0.0.0:0", [], "localhost"),
        (":0", [], "localhost"),
        ("[::]:0", ["A.test.", "b.test"], "a.test"),
        ("0.0.0.0:0", ["fd00::1"], "[fd00::1]"),
        ("127.0.0.1:0", ["a.test"], "127.0.0.1"),
    ],
)
async def test_the_kubeconfigs_server_is_a_name_that_the_certificate_can_have(
    bind: str, names: list[str], host: str, certificates: tuple[Path, Path], tmp_path: Path
) -> None:
    certificate, key = certificates
    (tmp_path / "token").write_text("t0k3n")
    options = ["--bind", bind, "--certificate", certificate, "--key", key, "--token-file", tmp_path / "token"]
    options += ["--write-kubeconfig", tmp_path / "kubeconfig"]
    for name in names:
        options += ["--allow-host", name]
    with trio.fail_after(30):
        async with running("-m", "trioformer.testing", "serve", *map(str, options)) as program:
            await program.wait_for(lambda lines: bool(lines))
            port = program.lines[0].rpartition(":")[2]
            config = load_kubeconfig(tmp_path / "kubeconfig")
            assert config.server == f"https://{host}:{port}"
            if not names:
                async with open_client(kubeconfig=tmp_path / "kubeconfig") as client:
                    assert "default" in [one.name for one in (await client.api(Namespace).list()).items]
            assert await program.interrupt() == 0


def test_the_command_refuses_to_let_other_machines_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--bind", "0.0.0.0:0", "--insecure-http"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: listening on '0.0.0.0:0' lets other machines read and change everything")
    assert "--allow-insecure" in line


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "--token-file: {file} cannot be read: No such file or directory"),
        (b"\xff", "--token-file: {file} does not contain only ASCII characters"),
        (b"a b", "the token must consist"),
    ],
)
def test_a_token_file_that_is_not_valid_is_one_line(
    content: bytes | None, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    assert main(["serve", "--bind", "127.0.0.1:0", "--token-file", str(file)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {problem.format(file=file)}")


def test_a_certificate_that_cannot_be_used_is_one_line_with_its_path(
    certificates: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate, key = certificates
    gone = tmp_path / "gone"
    for option, path, problem in (
        ("--key", tmp_path, f"{tmp_path}: --key: cannot be read: Is a directory"),
        ("--certificate", gone, f"{gone}: --certificate: cannot be read: No such file or directory"),
        ("--token-file", tmp_path, f"--token-file: {tmp_path} cannot be read: Is a directory"),
    ):
        options = {"--certificate": certificate, "--key": key, option: path}
        given = [str(part) for pair in options.items() for part in pair]
        assert main(["serve", "--bind", "127.0.0.1:0", *given]) == 1
        assert capsys.readouterr().err == f"error: {problem}\n"


async def test_the_commands_kubeconfig_has_the_token_and_the_authority(
    certificates: tuple[Path, Path], tmp_path: Path
) -> None:
    certificate, key = certificates
    token, kubeconfig = tmp_path / "token", tmp_path / "kubeconfig"
    token.write_text("t0k3n:'\"#\n")
    kubeconfig.touch(mode=0o644)
    options = ["--bind", "127.0.0.1:0", "--certificate", certificate, "--key", key, "--token-file", token]
    options += ["--write-kubeconfig", kubeconfig]
    with trio.fail_after(30):
        async with running("-m", "trioformer.testing", "serve", *map(str, options)) as program:
            await program.wait_for(lambda lines: bool(lines))
            assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
            async with open_client(kubeconfig=kubeconfig) as client:
                assert "default" in [one.name for one in (await client.api(Namespace).list()).items]
            assert await program.interrupt() == 0
            assert program.errors == []
