"""The source of credentials that runs a plugin: when it runs, how often, and who waits for it."""

from __future__ import annotations

import itertools
import logging
import os
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest
import trio
import trio.testing
import trustme

from tests.support.plugins import HELD, V1, V1BETA1, Plugin, credential, has_ended
from tests.support.scripted_http import AtStep, InMemory, response
from trioformer._secret import Secret
from trioformer.client import open_client
from trioformer.client._internal import open_separate_client
from trioformer.errors import ConfigError, ExecPluginError
from trioformer.kubeconfig import ClusterConfig, ExecConfig
from trioformer.kubeconfig._config import InteractiveMode
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer
from trioformer.transport import PluginPolicy
from trioformer.transport._internal import Transport, open_transport
from trioformer.transport.auth._credentials import Credential
from trioformer.transport.auth._exec_source import PluginCredentials

CLIENT = trustme.CA().issue_cert("client@test")
CHAIN = b"".join(blob.bytes() for blob in CLIENT.cert_chain_pems).decode()
KEY = CLIENT.private_key_pem.bytes().decode()

WALL = 1_700_000_000.0


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path / "plugin")


def source_of(plugin: Plugin, policy: PluginPolicy | None = None, **fields: Any) -> PluginCredentials:
    config = ClusterConfig(server="https://x", exec=plugin.config(**fields), source="kube.yaml")
    return PluginCredentials(config, policy or PluginPolicy(), wall_clock=lambda: WALL + trio.current_time())


def bearer(found: Credential) -> str | None:
    return None if found.authorization is None else found.authorization.reveal()


def after(seconds: float) -> str:
    """A time on the wall clock, as plugins write it."""
    return (datetime.fromtimestamp(WALL, UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def error_of(source: PluginCredentials) -> str:
    with pytest.raises(ExecPluginError) as caught:
        await source.get()
    return str(caught.value)


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_token_of_a_plugin_is_the_bearer_token(plugin: Plugin, version: str) -> None:
    """client-go: TestRefreshCreds"""
    plugin.prints(credential(api_version=version, token="foo-bar"))
    source = source_of(plugin, api_version=version)
    assert bearer(source.latest) is None
    found = await source.get()
    assert bearer(found) == "Bearer foo-bar"
    assert found.certificate is None
    assert source.latest is found
    assert plugin.info == {"kind": "ExecCredential", "apiVersion": version, "spec": {"interactive": False}}


async def test_a_credential_is_used_until_it_expires(plugin: Plugin, mock_clock) -> None:
    source = source_of(plugin)
    plugin.prints(credential(token="one", expirationTimestamp=after(100)))
    await source.get()
    plugin.prints(credential(token="two"))
    mock_clock.jump(99)
    assert bearer(await source.get()) == "Bearer one"
    mock_clock.jump(1)
    assert bearer(await source.get()) == "Bearer two"
    assert plugin.runs == 2


async def test_each_run_gives_another_object_with_the_same_certificate(plugin: Plugin) -> None:
    plugin.prints(credential(token="one", clientCertificateData=CHAIN, clientKeyData=KEY))
    source = source_of(plugin)
    first = await source.get()
    assert first.certificate is not None
    assert (first.certificate.chain, first.certificate.key) == (Secret(CHAIN.encode()), Secret(KEY.encode()))
    source.reject(first)
    second = await source.get()
    assert second is not first
    assert second.is_equal(first)
    assert second.certificate is first.certificate
    plugin.prints(credential(token="two", clientCertificateData=CHAIN, clientKeyData=KEY))
    source.reject(second)
    third = await source.get()
    assert not third.is_equal(second)
    assert third.certificate is first.certificate
    assert plugin.runs == 3


async def test_only_the_rejection_of_the_latest_credential_counts(plugin: Plugin) -> None:
    source = source_of(plugin)
    first = await source.get()
    plugin.prints(credential(token="two"))
    source.reject(first)
    second = await source.get()
    source.reject(first)
    assert await source.get() is second
    assert plugin.runs == 2


@pytest.mark.parametrize("code", [0, 1])
async def test_late_401s_to_an_unchanged_token_do_not_run_the_plugin_again(plugin: Plugin, code: int) -> None:
    """As in client-go, which compares the credential of the request with the cached one by its address."""
    server = TokenServer("other", may_respond=[trio.Event() for _ in range(20)])
    may_respond = iter(server.may_respond)
    config = ClusterConfig(server="https://x", exec=plugin.config())
    async with open_transport(config, http_transport=server) as transport:

        async def request() -> None:
            await transport.request("GET", "/x")
            next(may_respond, trio.Event()).set()

        await transport._credentials.get()
        plugin.prints(credential(token="one"), code=code)
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(request)
            await trio.testing.wait_all_tasks_blocked()
            next(may_respond).set()
        assert server.codes == [401] * 20  # none was sent again, with the same token
        assert plugin.runs == 2
        await transport.request("GET", "/x")  # sent after that run
        assert plugin.runs == 3


@attrs.define(eq=False)
class TokenServer(httpx.AsyncBaseTransport):
    """Responds with 401 to every token but one."""

    token: str
    codes: list[int] = attrs.field(factory=list)
    may_respond: Sequence[trio.Event] = ()
    """For each of the first requests, in their order."""
    _received: int = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        number, self._received = self._received, self._received + 1
        await trio.lowlevel.checkpoint()
        if number < len(self.may_respond):
            await self.may_respond[number].wait()
        self.codes.append(200 if request.headers.get("Authorization") == f"Bearer {self.token}" else 401)
        return response(self.codes[-1])


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "mine"},
        {"username": "jo", "password": "x"},
        {"client_certificate_data": CHAIN.encode(), "client_key_data": KEY.encode()},
    ],
)
async def test_a_plugin_is_not_run_beside_other_credentials(plugin: Plugin, fields: dict[str, Any]) -> None:
    """client-go: TestAuthorizationHeaderPresentCancelsExecAction"""
    config = ClusterConfig(server="https://x", exec=plugin.config(), **fields)
    async with open_transport(config, http_transport=InMemory([response(200)])) as transport:
        await transport.request("GET", "/x")
    assert plugin.runs == 0


async def test_a_request_does_not_run_a_failing_plugin_again(plugin: Plugin) -> None:
    plugin.prints("", code=1)
    config = ClusterConfig(server="https://x", exec=plugin.config())
    async with open_transport(config, http_transport=InMemory([])) as transport:
        with pytest.raises(ExecPluginError):
            await transport.request("GET", "/x")
        assert plugin.runs == 1
        with pytest.raises(ExecPluginError):
            async with transport.stream("/x", for_watch=True):
                pass
    assert plugin.runs == 2


async def test_a_plugin_needs_https(plugin: Plugin) -> None:
    with pytest.raises(ConfigError, match="only over https://"):
        async with open_transport(ClusterConfig(server="http://x", exec=plugin.config())):
            pass


# --- one run for any number of requests -------------------------------------------------------------------------------


async def wait_until_read(plugin: Plugin, source: PluginCredentials) -> None:
    """Wait until a plugin is held and read from: it may be faster than the thread that started it."""
    await plugin.wait_until_held()
    while source._run is None or source._run.process is None:
        await trio.lowlevel.checkpoint()
    await trio.testing.wait_all_tasks_blocked(0.05)


async def test_a_hundred_requests_wait_for_one_run(plugin: Plugin) -> None:
    plugin.prints(credential(token="one"), before=HELD)
    source, found = source_of(plugin), list[Credential]()

    async def get() -> None:
        found.append(await source.get())

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(get)
        await plugin.wait_until_held()
        await plugin.release()
    assert len(found) == 100
    assert set(map(id, found)) == {id(source.latest)}
    assert plugin.runs == 1


async def test_all_that_wait_get_the_error_of_the_run_each_its_own(plugin: Plugin) -> None:
    plugin.prints("", code=3, before=HELD)
    source, errors = source_of(plugin), list[ExecPluginError]()

    async def get() -> None:
        with pytest.raises(ExecPluginError, match="exit code 3") as caught:
            await source.get()
        errors.append(caught.value)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(get)
        await plugin.wait_until_held()
        await plugin.release()
    assert len(set(map(id, errors))) == 10
    assert plugin.runs == 1


@pytest.mark.parametrize("cancelled", [(0,), (0, 1), (1,), (2, 0), (0, 1, 2, 3)], ids=str)
async def test_a_cancelled_request_hands_the_run_to_another(plugin: Plugin, cancelled: tuple[int, ...]) -> None:
    plugin.prints(credential(token="one"), before=HELD)
    source, found = source_of(plugin), list[int]()
    scopes = [trio.CancelScope() for _ in range(5)]

    async def get(number: int) -> None:
        with scopes[number]:
            await source.get()
            found.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(get, number)
            await trio.testing.wait_all_tasks_blocked(0.001)
        await plugin.wait_until_held()
        for number in cancelled:
            scopes[number].cancel()
            await trio.lowlevel.checkpoint()
        await plugin.release()
    assert sorted(found) == [number for number in range(5) if number not in cancelled]
    assert plugin.runs == 1


async def test_requests_that_are_cancelled_together_leave_no_process(plugin: Plugin) -> None:
    plugin.prints(credential(token="one"), before=f"echo $$ > pid; {HELD}")
    source = source_of(plugin)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(source.get)
        await plugin.wait_until_held()
        nursery.cancel_scope.cancel()
    assert await has_ended(await plugin.pid_in("pid"))
    plugin.prints(credential(token="two"))
    assert bearer(await source.get()) == "Bearer two"


async def test_a_cancelled_request_sees_no_group(plugin: Plugin) -> None:
    plugin.prints(credential(token="one"))
    for step in itertools.count(1):
        with trio.CancelScope() as scope, AtStep(step, scope.cancel):
            try:
                await source_of(plugin).get()
            except trio.Cancelled:
                continue
        assert not scope.cancelled_caught, "it was a group"
        if not scope.cancel_called:
            break
    assert step > 5


async def test_a_request_that_comes_while_the_plugin_is_killed_starts_another(plugin: Plugin, mock_clock) -> None:
    plugin.prints(credential(token="one"), before=f"trap '' TERM; echo $$ > pid; {HELD}")
    source, found, scope = source_of(plugin), list[Credential](), trio.CancelScope()

    async def get() -> None:
        found.append(await source.get())

    async def cancelled() -> None:
        with scope:
            await source.get()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancelled)
        await wait_until_read(plugin, source)
        plugin.prints(credential(token="two"))
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(3):
            nursery.start_soon(get)
        await trio.testing.wait_all_tasks_blocked()
        assert plugin.runs == 1
        mock_clock.jump(1)  # it ignores SIGTERM
    assert [bearer(each) for each in found] == ["Bearer two"] * 3
    assert plugin.runs == 2
    assert await has_ended(await plugin.pid_in("pid"))


@pytest.mark.parametrize("is_rejected", [False, True])
@pytest.mark.parametrize("waiting", [1, 3])
async def test_the_end_of_the_client_kills_the_plugin(
    plugin: Plugin, waiting: int, is_rejected: bool, mock_clock, caplog
) -> None:
    errors: list[str] = []
    config = ClusterConfig(server="https://x", exec=plugin.config())

    async def request(transport: Transport) -> None:
        with pytest.raises(trio.ClosedResourceError) as caught:
            await transport.request("GET", "/x")
        errors.append(str(caught.value))

    async with trio.open_nursery() as nursery:
        async with open_transport(config, http_transport=InMemory([])) as transport:
            source = transport._credentials
            assert isinstance(source, PluginCredentials)
            if is_rejected:
                source.reject(await source.get())
            plugin.prints(credential(token="one"), before=f"echo $$ > pid; {HELD}")
            for _ in range(waiting):
                nursery.start_soon(request, transport)
            await wait_until_read(plugin, source)
        assert await has_ended(await plugin.pid_in("pid"))
    assert errors == ["this client is closed: its `async with` block has ended"] * waiting
    assert not caplog.records


async def test_the_end_of_the_client_ends_a_run_that_is_handed_on(plugin: Plugin) -> None:
    plugin.prints(credential(token="one"), before=f"echo $$ > pid; {HELD}")
    source, scope = source_of(plugin), trio.CancelScope()

    async def driver() -> None:
        with scope:
            await source.get()

    async with trio.open_nursery() as nursery:
        with source.in_use():
            nursery.start_soon(driver)
            await wait_until_read(plugin, source)

            async def waiter() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await source.get()

            nursery.start_soon(waiter)
            await trio.testing.wait_all_tasks_blocked(0.05)
            scope.cancel()
            while source._run is not None and source._run.waiting:
                await trio.lowlevel.checkpoint()
    assert await has_ended(await plugin.pid_in("pid"))


async def test_a_plugin_runs_on_while_any_client_is_open(plugin: Plugin, api_server: APIServer) -> None:
    plugin.prints(credential(token="one"), before=HELD)
    config, http_transport = attrs.evolve(api_server.config, exec=plugin.config()), api_server.http_transport()
    async with trio.open_nursery() as nursery, AsyncExitStack() as clients:
        async with open_client(config, http_transport=http_transport) as client:
            separate = await clients.enter_async_context(open_separate_client(client, purpose="x"))
            nursery.start_soon(separate.api(ConfigMap, namespace="default").list)
            source = client._transport._credentials
            assert isinstance(source, PluginCredentials)
            await wait_until_read(plugin, source)
        await trio.testing.wait_all_tasks_blocked(0.05)
        await plugin.release()
        plugin.prints(credential(token="one"))
        await separate.api(ConfigMap, namespace="default").list()
    assert plugin.runs == 1


async def test_after_a_401_a_failing_plugin_leaves_the_credential_in_use(plugin: Plugin, caplog) -> None:
    source = source_of(plugin)
    first = await source.get()
    plugin.prints("", code=1)
    source.reject(first)
    with caplog.at_level(logging.WARNING, "trioformer.transport"):
        kept = await source.get()
    assert kept.is_equal(first)
    assert "keeping the previous credential" in caplog.text
    assert await source.get() is kept
    assert plugin.runs == 2


async def test_an_expired_credential_is_not_kept_when_the_plugin_fails(plugin: Plugin, mock_clock) -> None:
    plugin.prints(credential(token="one", expirationTimestamp=after(100)))
    source = source_of(plugin)
    await source.get()
    plugin.prints("", code=1)
    mock_clock.jump(100)
    assert "exit code 1" in await error_of(source)


# --- bad plugins ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "words"),
    [
        *((output, "as JSON") for output in ("s3cr3t garbage", "[" * 100_000)),
        ('{"kind": "s3cr3t"}', "not an ExecCredential"),
        (credential(api_version=V1BETA1, token="s3cr3t"), f"printed an ExecCredential of {V1BETA1}"),
        (credential(api_version="s3cr3t", token="s3cr3t"), "another apiVersion"),
        (f'{{"kind": "ExecCredential", "apiVersion": "{V1}"}}', "without a status"),
        (credential(token=""), "neither a token nor a client certificate"),
        (credential(token=["s3cr3t"]), "token is not a string"),
        (credential(token="s3cr3t\n"), "white space"),
        (credential(clientCertificateData=CHAIN), "without its key"),
        (credential(clientKeyData=KEY), "without its certificate"),
        (credential(clientCertificateData="s3cr3t", clientKeyData=KEY), "client certificate that"),
        (credential(clientCertificateData=CHAIN, clientKeyData="s3cr3t"), "client key that"),
        (credential(token="s3cr3t", expirationTimestamp="2023-13-01T00:00:00Z"), "expirationTimestamp"),
        (credential(token="s3cr3t", expirationTimestamp="2006-01-02T15:04:05Z"), "expired at 2006-01-02T15:04:05Z"),
    ],
)
async def test_what_is_not_a_credential_is_an_error_that_does_not_show_it(
    plugin: Plugin, output: str, words: str, caplog
) -> None:
    plugin.prints(output)
    with caplog.at_level(logging.DEBUG):
        text = await error_of(source_of(plugin))
    assert text.startswith(f"kube.yaml: the credential plugin '{plugin.path}' ")
    assert words in text
    assert "s3cr3t" not in text + caplog.text


async def test_an_exit_code_is_shown_and_standard_error_passed_on(plugin: Plugin, capfd) -> None:
    plugin.prints("s3cr3t", code=255, before="echo 'Unable to locate credentials.' >&2")
    text = await error_of(source_of(plugin))
    assert text.startswith(f"kube.yaml: the credential plugin '{plugin.path}' failed with exit code 255; ")
    assert "s3cr3t" not in text
    assert capfd.readouterr() == ("", "Unable to locate credentials.\n")


async def test_a_signal_that_ended_the_plugin_is_shown(plugin: Plugin) -> None:
    plugin.prints("", before="kill -9 $$")
    assert "was ended by signal 9" in await error_of(source_of(plugin))


async def test_a_plugin_that_hangs_is_killed_with_its_children_at_its_deadline(plugin: Plugin, mock_clock) -> None:
    plugin.prints("", before=f"sleep 1000 & echo $! > child; {HELD}")
    source = source_of(plugin, PluginPolicy(patience=30))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(jump_when_started, plugin, mock_clock)
        text = await error_of(source)
    assert text.endswith("did not end within 30 s and was killed")
    assert await has_ended(await plugin.pid_in("child"))


async def jump_when_started(plugin: Plugin, clock: trio.testing.MockClock) -> None:
    await plugin.wait_until_held()
    clock.jump(30)


async def test_a_process_that_the_plugin_leaves_behind_is_not_waited_for(plugin: Plugin) -> None:
    plugin.prints(credential(token="one"), before="sleep 1000 & echo $! > child")
    assert bearer(await source_of(plugin).get()) == "Bearer one"
    os.kill(await plugin.pid_in("child"), signal.SIGKILL)  # it exists


@pytest.mark.parametrize("command", ["no-such-plugin", "/no/such/plugin", "/proc/self/status"])
async def test_a_plugin_that_is_not_installed_is_a_permanent_error_with_the_hint(command: str) -> None:
    """client-go: TestRefreshCreds, TestCreateAuthConfigExecInstallHintCleanup, TestCleanANSIEscapeCodes"""
    exec_config = ExecConfig(api_version=V1, command=command, install_hint="see\nhttps://example.com/\x1b[1minstall")
    source = PluginCredentials(ClusterConfig(server="https://x", exec=exec_config), PluginPolicy())
    with pytest.raises(ExecPluginError) as caught:
        await source.get()
    assert caught.value.permanent
    assert caught.value.__cause__ is None
    assert str(caught.value).startswith(f"code: the credential plugin '{command}' is not installed: ")
    assert str(caught.value).endswith("; see https://example.com/\\x1b[1minstall")


@pytest.mark.parametrize("args", [("x" * 200_000,), ("a\0b",)])
async def test_a_plugin_that_cannot_be_started_is_an_error(plugin: Plugin, args: tuple[str, ...]) -> None:
    config = ClusterConfig(server="https://x", exec=plugin.config(*args))
    assert "cannot be started: " in await error_of(PluginCredentials(config, PluginPolicy()))


# --- what the plugin is given -----------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    path = tmp_path / "ca.crt"
    path.write_bytes(b"baz")
    return path


async def test_a_plugin_gets_the_cluster_if_the_user_says_so(plugin: Plugin, authority: Path) -> None:
    """client-go: TestRefreshCreds"""
    extension = {"apiVersion": "group/v1", "kind": "PluginConfig", "spec": {"audience": "snorlax"}}
    config = ClusterConfig(
        server="https://x:6443",
        ca_file=str(authority),
        proxy_url="http://proxy:3128",
        disable_compression=True,
        exec=plugin.config(provide_cluster_info=True, cluster_config=extension),
    )
    await PluginCredentials(config, PluginPolicy()).get()
    assert plugin.info["spec"] == {
        "cluster": {
            "server": "https://x:6443",
            "certificate-authority-data": "YmF6",
            "proxy-url": "http://proxy:3128",
            "disable-compression": True,
            "config": extension,
        },
        "interactive": False,
    }


async def test_an_authority_that_cannot_be_read_is_an_error(plugin: Plugin, authority: Path) -> None:
    exec_config = plugin.config(provide_cluster_info=True)
    source = PluginCredentials(
        ClusterConfig(server="https://x", ca_file=str(authority), exec=exec_config), PluginPolicy()
    )
    await trio.Path(authority).unlink()
    assert f"was not run: the certificate authority {authority} cannot be read" in await error_of(source)


async def test_arguments_and_variables_are_passed_on(plugin: Plugin, monkeypatch) -> None:
    monkeypatch.setenv("INHERITED", "a")
    monkeypatch.setenv("REPLACED", "a")
    plugin.prints(credential(token="one"), before='printf "%s|" "$0" "$@" "$INHERITED" "$REPLACED" "$ADDED" > seen')
    config = plugin.config(
        "get-token", "two words", "", env={"REPLACED": "b", "ADDED": "c", "KUBERNETES_EXEC_INFO": "x"}
    )
    await PluginCredentials(ClusterConfig(server="https://x", exec=config), PluginPolicy()).get()
    assert await trio.Path(plugin.directory / "seen").read_text() == f"{plugin.path}|get-token|two words||a|b|c|"
    assert plugin.info["kind"] == "ExecCredential"


async def test_a_plugin_that_needs_a_terminal_is_not_run_without(plugin: Plugin) -> None:
    """client-go: TestRefreshCreds"""
    source = source_of(plugin, interactive_mode=InteractiveMode.ALWAYS)
    with pytest.raises(ExecPluginError, match="interactiveMode is Always") as caught:
        await source.get()
    assert caught.value.permanent
    assert plugin.runs == 0
