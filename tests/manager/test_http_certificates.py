"""The certificate of a manager's HTTP server is rotated while it serves."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trio
import trio.testing
import trustme

from tests.support.managers import Worker, initializing
from tests.support.rotated_files import CertificateVolume, rotate
from trioformer import Client
from trioformer._file_changes import LOOK_PERIOD
from trioformer.manager import HTTPOptions, run_controllers

AUTHORITY = trustme.CA()
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture
def volume(tmp_path: Path) -> CertificateVolume:
    return CertificateVolume(tmp_path, AUTHORITY)


def options_of(volume: CertificateVolume) -> HTTPOptions:
    return HTTPOptions("127.0.0.1:0", certificate=volume.certificate, key=volume.key)


@asynccontextmanager
async def served(client: Client, options: HTTPOptions) -> AsyncIterator[int]:
    """Run a manager during the block; yields its port."""
    async with trio.open_nursery() as nursery:
        run = partial(run_controllers, client, initializing(Worker("works", [])), http=options)
        yield urlsplit(await nursery.start(run)).port or 0
        nursery.cancel_scope.cancel()


async def connect(port: int) -> trio.SSLStream[trio.SocketStream]:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    stream = await trio.open_ssl_over_tcp_stream("127.0.0.1", port, ssl_context=context)
    await stream.do_handshake()
    return stream


async def certificate_at(port: int) -> object:
    """The serial number of the certificate that a new connection gets, and that its server works."""
    async with await connect(port) as stream:
        await check(stream)
        return serial_of(stream)


def serial_of(stream: trio.SSLStream[trio.SocketStream]) -> object:
    return stream.getpeercert()["serialNumber"]


async def check(stream: trio.SSLStream[trio.SocketStream]) -> None:
    await stream.send_all(HEALTH)
    received = b""
    while not received.endswith(b"\r\n\r\nok"):
        some = await stream.receive_some()
        assert some
        received += some


async def test_new_connections_get_the_new_certificate_and_others_stay(
    client: Client, volume: CertificateVolume, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.serving")
    async with served(client, options_of(volume)) as port, await connect(port) as old:
        await check(old)
        first = serial_of(old)
        assert await certificate_at(port) == first
        for _ in range(2):
            before = await certificate_at(port)
            volume.issue()
            mock_clock.jump(LOOK_PERIOD)
            after = await certificate_at(port)
            assert after not in (first, before)
            assert await certificate_at(port) == after
            await check(old)
            assert serial_of(old) == first
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("INFO", "the certificates have changed; new connections from clients use the new ones")
    ] * 2


async def test_a_certificate_without_its_key_keeps_the_previous_one(
    client: Client, tmp_path: Path, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Files that are not in a volume are not replaced at once."""
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    issued = [AUTHORITY.issue_cert("127.0.0.1") for _ in range(2)]
    rotate(certificate, issued[0].cert_chain_pems[0].bytes())
    rotate(key, issued[0].private_key_pem.bytes())
    async with served(client, HTTPOptions("127.0.0.1:0", certificate=certificate, key=key)) as port:
        first = await certificate_at(port)
        half = issued[1].cert_chain_pems[0].bytes()
        for content in (half[: len(half) // 2], half):
            rotate(certificate, content, age=9)
            for _ in range(4):
                mock_clock.jump(400)
                assert await certificate_at(port) == first
        problems = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
        assert len(problems) == 2  # one for each state of the files
        for problem, file in zip(problems, ("tls.crt", "tls.key"), strict=True):
            assert "keeping the previous ones" in problem
            assert f"{tmp_path / file}: HTTPOptions." in problem
        rotate(key, issued[1].private_key_pem.bytes(), age=8)
        mock_clock.jump(LOOK_PERIOD)
        assert await certificate_at(port) != first
