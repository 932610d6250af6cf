"""Nothing is sent to a server that is not verified, and errors keep no request in their variables."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing
import trustme

from tests.support.scripted_http import serving
from trioformer.errors import ConnectionFailedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._errors import clear_locals
from trioformer.transport._internal import Transport, open_transport

CA = trustme.CA()
OTHER_CA = trustme.CA()


def server_tls(authority: trustme.CA = CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def request(transport: Transport) -> None:
    await transport.request("POST", "/x", content=b"{}")


async def read_list(transport: Transport) -> None:
    async with transport.stream("/x", for_watch=False):
        pass


async def watch(transport: Transport) -> None:
    async with transport.stream("/x", for_watch=True):
        pass


async def test_nothing_is_sent_to_a_server_whose_certificate_is_of_an_unknown_ca() -> None:
    for send in [request, read_list, watch]:
        async with serving(tls=server_tls(OTHER_CA)) as server:
            config = ClusterConfig(server=server.url, ca_data=CA.cert_pem.bytes(), token="s3cret")
            async with open_transport(config) as transport:
                with pytest.raises(ConnectionFailedError, match="certificate does not verify") as caught:
                    await send(transport)
            assert caught.value.permanent
            assert (server.heads, server.probes) == ([], 0)


def test_no_module_turns_verification_off() -> None:
    package = Path(__file__).resolve().parents[2] / "trioformer"
    sources = {path.name: path.read_text() for path in package.rglob("*.py")}
    assert [name for name, text in sources.items() if "verify=False" in text] == []
    assert [name for name, text in sources.items() if "CERT_NONE" in text] == ["_tls.py"]
    # It reads SSLKEYLOGFILE.  The control plane of tests may.
    assert [name for name, text in sources.items() if "create_default_context(" in text] == ["_certificates.py"]


async def test_frames_that_still_run_or_are_not_of_the_network_keep_their_variables() -> None:
    async def suspended() -> None:
        mine = "kept"
        try:
            {}[mine]
        except KeyError as exc:
            errors.append(exc)
            await trio.sleep_forever()

    errors: list[Exception] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(suspended)
        await trio.testing.wait_all_tasks_blocked()
        error = httpx.ReadError("")
        error.__context__ = errors[0]
        errors[0].__cause__ = error  # errors may refer to each other
        clear_locals(error)
        traceback = errors[0].__traceback__
        assert traceback is not None
        assert traceback.tb_frame.f_locals["mine"] == "kept"
        nursery.cancel_scope.cancel()
