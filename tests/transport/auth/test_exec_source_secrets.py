"""No error, log line, repr() or traceback with local variables shows a secret of a plugin, however it fails."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from tests.support.plugins import HELD, V1BETA1, Plugin, credential
from trioformer.errors import ExecPluginError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport import PluginPolicy
from trioformer.transport.auth._exec_source import PluginCredentials

CLIENT = trustme.CA().issue_cert("client@test")
CHAIN = b"".join(blob.bytes() for blob in CLIENT.cert_chain_pems).decode()
KEY = CLIENT.private_key_pem.bytes().decode()
TOKEN, ARGUMENT, VARIABLE, EXTENSION = "t0k3n-0f-a-us3r", "s3cr3t-0f-an-arg", "s3cr3t-0f-a-variable", "s3cr3t-audience"
SECRETS = (TOKEN, ARGUMENT, VARIABLE, EXTENSION, *KEY.splitlines()[1:-1])

FAILURES: Mapping[str, dict[str, Any]] = {
    "exit code": {"output": credential(token=TOKEN), "code": 1},
    "says all": {"output": TOKEN, "code": 1, "before": 'cat output >&2; echo "$SECRET $*" >&2; env >&2'},
    "garbage": {"output": f"token: {TOKEN} {{"},
    "brackets": {"output": f'{{"token": "{TOKEN}", "x": ' + "[" * 100_000},
    "another version": {"output": credential(api_version=V1BETA1, token=TOKEN)},
    "no version": {"output": credential(api_version=TOKEN, token=TOKEN)},
    "bad token": {"output": credential(token=f"{TOKEN} {TOKEN}")},
    "bad time": {"output": credential(token=TOKEN, expirationTimestamp=TOKEN)},
    "expired": {"output": credential(token=TOKEN, expirationTimestamp="2006-01-02T15:04:05Z")},
    "cut key": {"output": credential(clientCertificateData=CHAIN, clientKeyData=KEY[:-40])},
    "killed": {"output": "", "before": f"echo {TOKEN}; echo {TOKEN} >&2; kill -9 $$"},
}


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path / "plugin")


def source_of(plugin: Plugin, policy: PluginPolicy | None = None) -> PluginCredentials:
    exec_config = plugin.config(
        *("get-token", "--client-secret", ARGUMENT),
        env={"SECRET": VARIABLE},
        provide_cluster_info=True,
        cluster_config={"audience": EXTENSION},
    )
    return PluginCredentials(ClusterConfig(server="https://x", exec=exec_config), policy or PluginPolicy())


def shown_of(error: BaseException) -> Iterator[str]:
    """Yield the lines of an error, its causes and their local variables, without the frames of the test."""
    frames = error.__traceback__
    while frames is not None and "/tests/" in frames.tb_frame.f_code.co_filename:
        frames = frames.tb_next
    error.__traceback__ = frames
    yield from "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format()).splitlines()


def check(*lines: str) -> None:
    assert [line for line in lines if any(secret in line for secret in SECRETS)] == []


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failing_plugin_shows_no_secret(plugin: Plugin, failure: str, caplog) -> None:
    plugin.prints(**FAILURES[failure])
    source = source_of(plugin)
    with caplog.at_level(logging.DEBUG), pytest.raises(ExecPluginError) as caught:
        await source.get()
    lines = list(shown_of(caught.value))
    assert any("self = " in line for line in lines)
    check(*lines, caplog.text, repr(source), repr(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("script", ["no interpreter", "#!/no/such/interpreter\n"])
async def test_a_plugin_that_cannot_be_started_shows_no_secret(plugin: Plugin, script: str) -> None:
    plugin.path.write_text(script)
    with pytest.raises(ExecPluginError, match="cannot be started") as caught:
        await source_of(plugin).get()
    check(*shown_of(caught.value))
    assert caught.value.__context__ is None


async def test_a_plugin_that_is_killed_shows_no_secret(plugin: Plugin, mock_clock) -> None:
    plugin.prints("", before=f"echo {TOKEN}; echo {TOKEN} {VARIABLE} >&2; {HELD}")

    async def jump() -> None:
        await plugin.wait_until_held()
        mock_clock.jump(30)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(jump)
        with pytest.raises(ExecPluginError, match="did not end within 30 s") as caught:
            await source_of(plugin, PluginPolicy(patience=30)).get()
    check(*shown_of(caught.value))


async def test_a_cancelled_request_shows_no_secret(plugin: Plugin) -> None:
    plugin.prints(credential(token=TOKEN), before=f"cat output; {HELD}")
    caught: list[BaseException] = []

    async def get() -> None:
        try:
            await source_of(plugin).get()
        except BaseException as exc:
            caught.append(exc)
            raise

    async with trio.open_nursery() as nursery:
        nursery.start_soon(get)
        await plugin.wait_until_held()
        nursery.cancel_scope.cancel()
    assert len(caught) == 1
    check(*shown_of(caught[0]))


async def test_a_plugin_that_succeeds_shows_no_secret(plugin: Plugin, caplog) -> None:
    plugin.prints(
        credential(token=TOKEN, clientCertificateData=CHAIN, clientKeyData=KEY), before="cat output >&2; env >&2"
    )
    source = source_of(plugin)
    with caplog.at_level(logging.DEBUG):
        found = await source.get()
    check(caplog.text, repr(source), repr(found), repr(found.certificate))
