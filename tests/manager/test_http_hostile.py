"""What whoever reaches a manager's HTTP port can do to it: nothing that its controllers notice."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trio.testing
import trustme
from prometheus_client.core import GaugeMetricFamily, Metric

from tests.support.controllers import errors_of
from tests.support.managers import Worker, initializing
from tests.support.raw_http import connection, exchange, read_to_end, status_of
from trioformer import Client
from trioformer._listeners import listen
from trioformer.errors import ConfigError
from trioformer.manager import HTTPOptions, run_controllers
from trioformer.manager import _http as manager_http
from trioformer.manager._health import HealthCheck
from trioformer.metrics import Metrics

HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
CLOSE = b"connection: close\r\n\r\n"


@asynccontextmanager
async def manager(client: Client, **options: Any) -> AsyncIterator[str]:
    """Run a manager with HTTP and metrics during the block; yields its URL."""
    options = {"http": "127.0.0.1:0", "metrics": Metrics(), **options}
    async with trio.open_nursery() as nursery:
        yield await nursery.start(partial(run_controllers, client, initializing(Worker("works", [])), **options))
        nursery.cancel_scope.cancel()


# --- connections ---


async def test_200_clients_that_hold_requests_leave_descriptors_and_the_probes_are_served(client: Client) -> None:
    async with manager(client) as url, AsyncExitStack() as clients:
        before = len(os.listdir("/proc/self/fd"))
        for number in range(200):
            stream = await clients.enter_async_context(connection(url))
            # Half of them hold a request whose body is not complete.
            await stream.send_all(HEALTH + b"content-length: 9\r\n\r\n1" if number % 2 else b"G")
        await trio.testing.wait_all_tasks_blocked(0.05)
        servers = len(os.listdir("/proc/self/fd")) - before - 200
        assert servers <= 65
        for _ in range(3):
            assert status_of(await exchange(url, HEALTH + CLOSE)) == 200


async def test_a_head_that_takes_longer_than_10_s_ends_its_connection(
    client: Client, mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    async with manager(client) as url, connection(url) as stream:
        received: list[bytes] = []

        async def read() -> None:
            received.append(await read_to_end(stream))

        nursery.start_soon(read)
        await stream.send_all(HEALTH)
        for _ in range(9):
            await trio.testing.wait_all_tasks_blocked(0.01)
            mock_clock.jump(1)
            await stream.send_all(b"x: y\r\n")
        assert received == []
        mock_clock.jump(1.5)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert received == [b""]


# --- protocols ---


@pytest.mark.parametrize(
    "upgrade",
    [
        b"upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\nconnection: upgrade, http2-settings, close\r\n\r\n",
        b"upgrade: websocket\r\nsec-websocket-version: 13\r\nconnection: upgrade, close\r\n\r\n",
        b"upgrade: TLS/1.0\r\nconnection: upgrade, close\r\n\r\n",
    ],
    ids=["h2c", "websocket", "tls"],
)
async def test_no_other_protocol_is_granted(client: Client, upgrade: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with manager(client) as url:
        with trio.fail_after(10):
            response = await exchange(url, HEALTH + upgrade)
    assert status_of(response) == 200
    assert response.endswith(b"\r\n\r\nok")
    assert errors_of(caplog) == []


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03secret-of-a-client\r\n\r\n", 400),
        (b"GET /healthz\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\nsecret-of-a-client\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\na: \x00secret-of-a-client\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: frob\r\n\r\n", 501),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\nsecret-of-a-client: " + b"x" * 100_000, 431),
        (b"CONNECT /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 405),
        (b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n" + b"x" * 1_000_000, 413),
        (b"GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nfrob\r\n", 400),
        (b"GET /healthz?exclude=%ff%00%0a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 200),
        (b"GET /%2e%2e/%ff%00 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 404),
    ],
)
async def test_a_request_that_is_not_valid_is_refused_and_not_quoted(
    client: Client, request_: bytes, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with manager(client) as url:
        with trio.fail_after(10):
            response = await exchange(url, request_)
        assert status_of(response) == code
        assert b"secret-of-a-client" not in response
        assert b"connection: close" in response.lower()
        assert status_of(await exchange(url, HEALTH + CLOSE)) == 200
    assert errors_of(caplog) == []
    assert "secret-of-a-client" not in caplog.text


@pytest.mark.parametrize(
    "accept",
    [
        "application/openmetrics-text; version=abc",
        "text/plain;version=" + "9" * 5_000,
        "application/openmetrics-text" + ";a=b" * 2_500,
    ],
    ids=lambda accept: accept[:40],
)
async def test_a_bad_accept_header_is_answered_with_a_known_format(
    client: Client, accept: str, caplog: pytest.LogCaptureFixture
) -> None:
    known = {"text/plain; version=0.0.4; charset=utf-8"}
    if accept.startswith("application/openmetrics-text"):  # prometheus-client 0.21 does not read the version
        known.add("application/openmetrics-text; version=1.0.0; charset=utf-8")
    async with manager(client) as url, httpx.AsyncClient(base_url=url) as http:
        response = await http.get("/metrics", headers={"accept": accept})
    assert response.status_code == 200
    assert response.headers["content-type"] in known
    assert errors_of(caplog) == []


# --- errors of the program ---


class FailingCollector:
    """A collector of the program with a bug."""

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("fine", "Fine.", 1)
        raise KeyError("secret of the program")


async def test_an_error_of_a_collector_is_a_500_and_is_logged_once(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    metrics.registry.register(FailingCollector())
    async with manager(client, metrics=metrics) as url, httpx.AsyncClient(base_url=url) as http:
        for _ in range(3):
            response = await http.get("/metrics")
            assert (response.status_code, response.text) == (500, "500 internal server error\n")
        assert (await http.get("/healthz")).text == "ok"
    assert errors_of(caplog) == ["a collector of /metrics failed"]


async def test_an_error_of_a_health_check_is_a_500_and_is_logged_once(
    caplog: pytest.LogCaptureFixture, nursery: trio.Nursery
) -> None:
    is_broken = True

    def broken() -> str:
        if is_broken:
            raise KeyError("secret of the program")
        return ""

    app = manager_http.Endpoints({"/readyz": lambda: {"works": broken}}, None, HTTPOptions(":0"))
    url = await nursery.start(manager_http.serve, app, await listen("127.0.0.1:0"))
    async with httpx.AsyncClient(base_url=url) as http:
        for _ in range(3):
            assert (await http.get("/readyz")).text == "[-]works failed: reason withheld\nreadyz check failed\n"
            response = await http.get("/readyz/works")
            assert (response.status_code, response.text) == (
                500,
                "internal server error: the check raised KeyError\n",
            )
        assert errors_of(caplog) == ["health check works failed"]
        is_broken = False
        assert (await http.get("/readyz")).text == "ok"
        is_broken = True
        assert (await http.get("/readyz")).status_code == 500
    assert len(errors_of(caplog)) == 2
    nursery.cancel_scope.cancel()


async def test_an_error_while_the_checks_are_collected_is_a_500(
    caplog: pytest.LogCaptureFixture, nursery: trio.Nursery
) -> None:
    def broken() -> dict[str, HealthCheck]:
        raise KeyError("secret of the program")

    app = manager_http.Endpoints({"/readyz": broken}, None, HTTPOptions(":0"))
    url = await nursery.start(manager_http.serve, app, await listen("127.0.0.1:0"))
    async with httpx.AsyncClient(base_url=url) as http:
        response = await http.get("/readyz")
    assert (response.status_code, response.text) == (500, "500 internal server error\n")
    assert errors_of(caplog) == ["a health check failed"]
    nursery.cancel_scope.cancel()


# --- TLS and authentication ---


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, ssl.SSLContext]:
    """A server's certificate and key, and the context of a client that trusts it."""
    directory = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(directory / "both.pem")
    issued.cert_chain_pems[0].write_to_path(directory / "server.crt")
    issued.private_key_pem.write_to_path(directory / "server.key")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return directory / "server.crt", directory / "server.key", context


async def test_metrics_need_the_token_and_health_does_not(
    client: Client, certificates: tuple[Path, Path, ssl.SSLContext], caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key, context = certificates
    options = HTTPOptions("127.0.0.1:0", certificate=certificate, key=key, metrics_token="t0k3n")
    assert "t0k3n" not in repr(options)
    async with manager(client, http=options) as url, httpx.AsyncClient(base_url=url, verify=context) as http:
        assert url.startswith("https://")
        assert (await http.get("/healthz")).text == "ok"
        assert (await http.get("/readyz")).text == "ok"
        for headers in ([], ["Bearer"], ["Bearer t0k3"], ["Basic t0k3n"], ["Bearer t0k3n", "Bearer t0k3n"]):
            refused = await http.get("/metrics", headers=[("authorization", value) for value in headers])
            assert (refused.status_code, refused.text) == (401, "401 unauthorized\n")
            assert refused.headers["www-authenticate"] == "Bearer"
        for value in ("Bearer t0k3n", "bearer t0k3n"):
            assert (await http.get("/metrics", headers={"authorization": value})).status_code == 200
    assert errors_of(caplog) == []


async def test_a_function_decides_which_tokens_may_read_the_metrics(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async def check(token: str) -> bool:
        if token == "fails":
            raise OSError("no TokenReview")
        return token == "good"

    options = HTTPOptions("127.0.0.1:0", check_metrics_token=check)
    async with manager(client, http=options) as url, httpx.AsyncClient(base_url=url) as http:
        codes = [
            (await http.get("/metrics", headers={"authorization": f"Bearer {token}"})).status_code
            for token in ("bad", "good", "fails", "fails")
        ]
        assert codes == [401, 200, 500, 500]
        assert (await http.get("/metrics")).status_code == 401
    assert errors_of(caplog) == ["check_metrics_token failed"]


async def test_a_check_that_is_not_async_lets_nobody_in_and_is_named(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    options = HTTPOptions("127.0.0.1:0", check_metrics_token=lambda token: True)  # type: ignore[arg-type,return-value]  # the mistake
    async with manager(client, http=options) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/metrics", headers={"authorization": "Bearer x"})).status_code == 500
    assert errors_of(caplog) == ["check_metrics_token failed"]
    assert "TypeError: check_metrics_token must be an async function" in caplog.text


async def test_plain_http_to_a_tls_port_costs_only_its_own_connection(
    client: Client, certificates: tuple[Path, Path, ssl.SSLContext], caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key, context = certificates
    options = HTTPOptions("127.0.0.1:0", certificate=certificate, key=key)
    async with manager(client, http=options) as url:
        for request in (b"\0\r\n\r\n", HEALTH + CLOSE):
            assert not (await exchange(url, request)).startswith(b"HTTP")
        with pytest.raises(httpx.ConnectError):  # it does not trust the certificate
            await httpx.AsyncClient(base_url=url).get("/healthz")
        async with httpx.AsyncClient(base_url=url, verify=context) as http:
            assert (await http.get("/healthz")).text == "ok"
    assert errors_of(caplog) == []


@pytest.mark.parametrize("how", ["metrics_token", "check_metrics_token"])
async def test_a_token_that_others_could_read_on_its_way_is_warned_of_once(
    how: str, client: Client, certificates: tuple[Path, Path, ssl.SSLContext], caplog: pytest.LogCaptureFixture
) -> None:
    async def check(token: str) -> bool:
        return True

    certificate, key, _ = certificates
    token: dict[str, Any] = {how: "t0k3n" if how == "metrics_token" else check}
    for options in (
        HTTPOptions("127.0.0.1:0", **token),
        HTTPOptions(":0"),
        HTTPOptions(":0", certificate=certificate, key=key, **token),
    ):
        async with manager(client, http=options):
            pass
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []
    async with manager(client, http=HTTPOptions("0.0.0.0:0", **token)) as url:
        pass
    (warning,) = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert warning.name == "trioformer.manager"
    assert warning.getMessage().startswith(f"{url} has no TLS")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"certificate": "x"}, "TLS needs both certificate= and key="),
        ({"key": "x"}, "TLS needs both certificate= and key="),
        ({"metrics_token": "a b"}, "metrics_token= must be printable"),
        ({"metrics_token": "x", "check_metrics_token": print}, "not both"),
    ],
)
def test_options_that_contradict_each_other_raise(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        HTTPOptions("127.0.0.1:0", **options)


async def test_a_certificate_that_cannot_be_read_is_an_ungrouped_error(client: Client, tmp_path: Path) -> None:
    options = HTTPOptions("127.0.0.1:0", certificate=tmp_path / "none", key=tmp_path / "none")
    with pytest.raises(ConfigError) as raised:
        await run_controllers(client, {}, http=options)
    problem = "HTTPOptions.certificate: cannot be read: No such file or directory"
    assert str(raised.value) == f"{tmp_path / 'none'}: {problem}"
