"""What others can make a manager's HTTP port wait for, and repeat: nothing that keeps the probes out."""

from __future__ import annotations

import logging
import math

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.controllers import errors_of
from tests.support.raw_http import connection, exchange, status_of
from trioformer._listeners import listen
from trioformer.manager import HTTPOptions
from trioformer.manager import _http as manager_http
from trioformer.metrics import Metrics

HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
CLOSE = b"connection: close\r\n\r\n"


# --- checks of tokens ---


@attrs.define(eq=False)
class Review:
    """A check of tokens that asks a server: it accepts "good", and takes as long as it is told to."""

    seconds: float = 0.0
    asked: list[str] = attrs.field(factory=list)
    running: int = 0

    async def __call__(self, token: str) -> bool:
        self.asked.append(token)
        self.running += 1
        try:
            await trio.sleep(self.seconds)
        finally:
            self.running -= 1
        return token == "good"


async def serve_with(check: Review, nursery: trio.Nursery) -> str:
    """Serve health and metrics whose tokens are checked; returns the URL."""
    health = {"/healthz": lambda: {"ping": lambda: ""}}
    app = manager_http.Endpoints(health, Metrics(), HTTPOptions(":0", check_metrics_token=check))
    url: str = await nursery.start(manager_http.serve, app, await listen("127.0.0.1:0"))
    return url


def scrape(token: str) -> bytes:
    return f"GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n".encode()


async def settled() -> None:
    await trio.testing.wait_all_tasks_blocked(0.05)


async def test_64_token_checks_that_hang_do_not_keep_the_probes_out(
    mock_clock: trio.testing.MockClock, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    check = Review(seconds=math.inf)
    url = await serve_with(check, nursery)
    responses: list[bytes] = []

    async def collect(*parts: bytes) -> None:
        responses.append(await exchange(url, *parts))

    for number in range(64):
        nursery.start_soon(collect, scrape(f"token{number}"), CLOSE)
    await settled()
    assert check.running == 8
    assert {status_of(response) for response in responses} == {503}
    assert len(responses) == 64 - 8
    assert all(b"\r\nretry-after: 5\r\n" in response for response in responses)
    responses.clear()
    nursery.start_soon(collect, HEALTH, CLOSE)
    await settled()
    assert [status_of(response) for response in responses] == [200]
    responses.clear()
    mock_clock.jump(5)
    await settled()
    assert check.running == 0
    assert [status_of(response) for response in responses] == [503] * 8
    assert errors_of(caplog) == ["check_metrics_token failed"]
    nursery.cancel_scope.cancel()


async def test_a_token_check_ends_when_its_client_disconnects(
    mock_clock: trio.testing.MockClock, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    check = Review(seconds=math.inf)
    url = await serve_with(check, nursery)
    async with connection(url) as stream:
        await stream.send_all(scrape("a") + b"\r\n")
        await settled()
        assert check.running == 1
    await settled()
    assert check.running == 0
    assert errors_of(caplog) == []
    nursery.cancel_scope.cancel()


async def test_the_answer_about_a_token_is_kept_for_10_s(
    mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    check = Review()
    url = await serve_with(check, nursery)
    for _ in range(3):
        assert status_of(await exchange(url, scrape("good"), CLOSE)) == 200
        assert status_of(await exchange(url, scrape("bad"), CLOSE)) == 401
    assert check.asked == ["good", "bad"]
    mock_clock.jump(9.9)
    assert status_of(await exchange(url, scrape("good"), CLOSE)) == 200
    assert check.asked == ["good", "bad"]
    mock_clock.jump(0.2)
    assert status_of(await exchange(url, scrape("bad"), CLOSE)) == 401
    assert status_of(await exchange(url, scrape("good"), CLOSE)) == 200
    assert check.asked == ["good", "bad", "bad", "good"]
    nursery.cancel_scope.cancel()


async def test_an_error_of_a_token_check_is_not_kept(nursery: trio.Nursery, caplog: pytest.LogCaptureFixture) -> None:
    failures = [OSError("no TokenReview")]

    class Flaky(Review):
        async def __call__(self, token: str) -> bool:
            if failures:
                raise failures.pop()
            return await super().__call__(token)

    url = await serve_with(Flaky(), nursery)
    assert status_of(await exchange(url, scrape("good"), CLOSE)) == 500
    assert status_of(await exchange(url, scrape("good"), CLOSE)) == 200
    assert errors_of(caplog) == ["check_metrics_token failed"]
    nursery.cancel_scope.cancel()


async def test_known_tokens_are_served_while_others_have_all_checks(
    mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    check = Review()
    url = await serve_with(check, nursery)
    async with httpx.AsyncClient(base_url=url) as http:
        headers = {"authorization": "Bearer good"}
        assert (await http.get("/metrics", headers=headers)).status_code == 200
        for number in range(300):  # what is refused does not displace what is allowed
            headers = {"authorization": f"Bearer bad{number}"}
            assert (await http.get("/metrics", headers=headers)).status_code == 401
        check.asked.clear()
        assert (await http.get("/metrics", headers={"authorization": "Bearer bad0"})).status_code == 401
        assert check.asked == ["bad0"]  # its answer has been displaced
        check.seconds = math.inf
        for number in range(20):
            nursery.start_soon(exchange, url, scrape(f"worse{number}"), CLOSE)
        await settled()
        assert (await http.get("/metrics", headers={"authorization": "Bearer good"})).status_code == 200
        assert "good" not in check.asked
    nursery.cancel_scope.cancel()


# --- reasons ---


async def test_the_reason_of_a_health_check_is_one_line(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.manager")
    health = {"/readyz": lambda: {"works": lambda: "\x1b[2J\n\udc80" + "x" * 1_000_000}}
    app = manager_http.Endpoints(health, None, HTTPOptions(":0"))
    url = await nursery.start(manager_http.serve, app, await listen("127.0.0.1:0"))
    response = await exchange(url, b"GET /readyz/works HTTP/1.1\r\nhost: x\r\n", CLOSE)
    assert status_of(response) == 500
    assert b"internal server error: \\x1b[2J \\udc80xxx" in response
    assert status_of(await exchange(url, b"GET /readyz HTTP/1.1\r\nhost: x\r\n", CLOSE)) == 500
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("readyz check failed: works: \\x1b[2J \\udc80xxx")
    assert len(line) < 5_000
    nursery.cancel_scope.cancel()
