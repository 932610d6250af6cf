"""Certificates of servers and clients, and TLS connections."""

# ruff: noqa: ASYNC240  # small local files
from __future__ import annotations

import os
import socket
import ssl
import stat
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing
import trustme
from cryptography.hazmat.primitives import serialization

from tests.support.rotated_files import rotate
from tests.support.scripted_http import (
    serving,
)
from trioformer._certificates import REFRESH_PERIOD
from trioformer._file_changes import LOOK_PERIOD
from trioformer.client import ClientOptions
from trioformer.errors import ConfigError, ConnectionFailedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import open_transport
from trioformer.transport.auth._tls import TLS
from trioformer.transport.http._sockets import NetworkStream, TCPStream

CA = trustme.CA()
OTHER_CA = trustme.CA()
SERVER_CERTIFICATE = CA.issue_cert("127.0.0.1", "api.test")
ELSEWHERE = CA.issue_cert("elsewhere.test")
CLIENT = CA.issue_cert("client@test")
UNTRUSTED_CLIENT = OTHER_CA.issue_cert("client@test")
CA_PEM = CA.cert_pem.bytes()
CHAIN = b"".join(blob.bytes() for blob in CLIENT.cert_chain_pems)
KEY = CLIENT.private_key_pem.bytes()


def server_tls(
    certificate: trustme.LeafCert = SERVER_CERTIFICATE, *, requires_client_certificate: bool = False
) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    if requires_client_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        CA.configure_trust(context)
    return context


async def fetch(config: ClusterConfig) -> bytes:
    async with open_transport(config, options=ClientOptions(retries=0)) as transport:
        return (await transport.request("GET", "/x")).body


async def failure(config: ClusterConfig) -> ConnectionFailedError:
    with pytest.raises(ConnectionFailedError) as caught:
        await fetch(config)
    assert "\n" not in str(caught.value)
    assert config.server in str(caught.value)
    assert caught.value.__cause__ is not None
    return caught.value


async def test_the_server_is_verified_by_the_configured_authority(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes("# é\n".encode() + CA_PEM + OTHER_CA.cert_pem.bytes())
    async with serving(tls=server_tls()) as server:
        assert await fetch(ClusterConfig(server=server.url, ca_data=CA_PEM)) == b"hello"
        assert await fetch(ClusterConfig(server=server.url, ca_file=str(tmp_path / "ca.crt"))) == b"hello"


JUNK_CERTIFICATES = {
    "not DER": b"-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n",
    "no end": b"-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n",
}


@pytest.mark.parametrize("junk", JUNK_CERTIFICATES.values(), ids=JUNK_CERTIFICATES)
@pytest.mark.parametrize("is_first", [True, False])
async def test_authorities_that_cannot_be_read_are_ignored_beside_others(
    junk: bytes, is_first: bool, tmp_path: Path, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    pems = OTHER_CA.cert_pem.bytes() + CA_PEM
    bundle = junk + pems if is_first else pems + junk
    assert len(TLS(ClusterConfig(server="https://api.test", ca_data=bundle)).context.get_ca_certs()) == 2
    assert caplog.text.count("ignoring the invalid certificates") == 1
    (tmp_path / "ca.crt").write_bytes(CA_PEM)
    tls = TLS(ClusterConfig(server="https://api.test", ca_file=str(tmp_path / "ca.crt")))
    assert len(tls.context.get_ca_certs()) == 1
    rotate(tmp_path / "ca.crt", bundle)
    mock_clock.jump(LOOK_PERIOD)
    tls.refresh()
    assert len(tls.context.get_ca_certs()) == 2
    with pytest.raises(ConfigError, match="does not contain a valid certificate"):
        TLS(ClusterConfig(server="https://api.test", ca_data=junk * 2))


async def test_an_unknown_authority_is_a_permanent_failure_with_advice() -> None:
    async with serving(tls=server_tls()) as server:
        for config in (
            ClusterConfig(server=server.url, ca_data=OTHER_CA.cert_pem.bytes()),
            ClusterConfig(server=server.url),  # the system's
        ):
            error = await failure(config)
            assert error.permanent
            assert not error.refused
            assert "certificate does not verify" in str(error)
            assert "certificate authority" in str(error)
        assert (server.heads, server.probes) == ([], 0)


async def test_a_certificate_of_another_name_is_a_permanent_failure() -> None:
    async with serving(tls=server_tls(ELSEWHERE)) as server:
        error = await failure(ClusterConfig(server=server.url, ca_data=CA_PEM))
        assert error.permanent
        assert "tls-server-name" in str(error)


async def test_the_certificate_must_be_valid_for_the_tls_server_name() -> None:
    names: list[str | None] = []
    context = server_tls(ELSEWHERE)
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    async with serving(tls=context) as server:
        config = ClusterConfig(server=server.url, ca_data=CA_PEM, tls_server_name="elsewhere.test")
        assert await fetch(config) == b"hello"
        assert names == ["elsewhere.test"]
        error = await failure(ClusterConfig(server=server.url, ca_data=CA_PEM, tls_server_name="other.test"))
        assert error.permanent
        # The name is only for TLS; the Host header is that of the URL.
        assert f"Host: 127.0.0.1:{server.port}".encode() in server.heads[0]


async def test_verification_can_be_turned_off() -> None:
    async with serving(tls=server_tls(ELSEWHERE)) as server:
        assert await fetch(ClusterConfig(server=server.url, insecure_skip_tls_verify=True)) == b"hello"


async def test_a_server_that_is_not_verified_is_a_warning_once_for_each(caplog: pytest.LogCaptureFixture) -> None:
    made = partial(ClusterConfig, insecure_skip_tls_verify=True)
    verified = ClusterConfig(server="https://insecure-d")
    for config in (
        made(server="https://insecure-a"),
        made(server="http://insecure-c"),
        verified,
        *[made(server="https://insecure-b")] * 2,
    ):
        async with open_transport(config):
            pass
    assert [[server in message for server in ("insecure-a", "insecure-b")] for message in caplog.messages] == [
        [True, False],
        [False, True],
    ]


async def test_tls_is_at_least_1_2_and_as_strict_as_in_client_go() -> None:
    context = TLS(ClusterConfig(server="https://api.test")).context
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT


async def test_the_keys_of_connections_are_not_written_to_sslkeylogfile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tls=server_tls()) as server:
        monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
        assert await fetch(ClusterConfig(server=server.url, ca_data=CA_PEM)) == b"hello"
    assert list(tmp_path.iterdir()) == []


async def test_a_client_key_with_a_passphrase_is_refused_without_asking_for_it() -> None:
    """Nothing looks at the key before OpenSSL does."""
    encryption = serialization.BestAvailableEncryption(b"passphrase")
    form = serialization.PrivateFormat.PKCS8
    key = serialization.load_pem_private_key(KEY, None).private_bytes(serialization.Encoding.PEM, form, encryption)
    with pytest.raises(ConfigError, match="passphrase") as caught:
        TLS(ClusterConfig(server="https://api.test", client_certificate_data=CHAIN, client_key_data=key))
    assert caught.value.key == "client-key-data"


async def test_an_authority_that_another_one_has_signed_is_trusted() -> None:
    authority = CA.create_child_ca()
    config = partial(ClusterConfig, ca_data=authority.cert_pem.bytes())
    async with serving(tls=server_tls(authority.issue_cert("127.0.0.1"))) as server:
        assert await fetch(config(server=server.url)) == b"hello"
    async with serving(tls=server_tls()) as server:
        assert (await failure(config(server=server.url))).permanent


async def test_a_client_certificate_is_sent_from_data_files_or_both(tmp_path: Path) -> None:
    (tmp_path / "client.crt").write_bytes(CHAIN)
    (tmp_path / "client.key").write_bytes(KEY)
    certificate, key = str(tmp_path / "client.crt"), str(tmp_path / "client.key")
    async with serving(tls=server_tls(requires_client_certificate=True)) as server:
        for config in (
            ClusterConfig(server=server.url, ca_data=CA_PEM, client_certificate_data=CHAIN, client_key_data=KEY),
            ClusterConfig(server=server.url, ca_data=CA_PEM, client_certificate_file=certificate, client_key_file=key),
            ClusterConfig(server=server.url, ca_data=CA_PEM, client_certificate_file=certificate, client_key_data=KEY),
        ):
            assert await fetch(config) == b"hello"


async def fail_with_an_alert(context: ssl.SSLContext, stream: trio.SocketStream) -> None:
    """Do a server's side of a handshake; unlike trio's, send an alert if it fails."""
    received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(received, to_send, server_side=True)
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            await stream.send_all(to_send.read())
            received.write(await stream.receive_some())
        except ssl.SSLError:
            await stream.send_all(to_send.read())
            return


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_rejected_client_certificate_is_a_permanent_failure(version: ssl.TLSVersion) -> None:
    context = server_tls(requires_client_certificate=True)
    context.minimum_version = context.maximum_version = version
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, partial(fail_with_an_alert, context), 0)
        url = f"https://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        for config in (
            ClusterConfig(server=url, ca_data=CA_PEM),
            ClusterConfig(
                server=url,
                ca_data=CA_PEM,
                client_certificate_data=b"".join(blob.bytes() for blob in UNTRUSTED_CLIENT.cert_chain_pems),
                client_key_data=UNTRUSTED_CLIENT.private_key_pem.bytes(),
            ),
        ):
            error = await failure(config)
            # In TLS 1.2 a missing certificate is an unspecific handshake failure.
            if version == ssl.TLSVersion.TLSv1_3 or config.client_key_data is not None:
                assert "rejected the client certificate" in str(error)
                assert error.permanent
            else:
                assert "TLS failed (SSLV3_ALERT_HANDSHAKE_FAILURE)" in str(error)
        nursery.cancel_scope.cancel()


async def test_a_connection_closed_during_the_handshake_is_a_transient_failure() -> None:
    async def receive_and_close(stream: trio.SocketStream) -> None:
        await stream.receive_some()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, receive_and_close, 0)
        error = await failure(ClusterConfig(server=f"https://127.0.0.1:{listeners[0].socket.getsockname()[1]}"))
        assert "during the TLS handshake" in str(error)
        assert not error.permanent
        nursery.cancel_scope.cancel()


@pytest.fixture(params=["in memory", "in a directory"])
def copies(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where OpenSSL's copies are, on systems with files in memory and without them."""
    if request.param == "in a directory":
        monkeypatch.delattr("os.memfd_create", raising=False)
    directory = tmp_path / "copies"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


async def test_openssl_gets_private_copies_that_do_not_stay(
    copies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tls.crt").write_bytes(CHAIN)
    (tmp_path / "tls.key").write_bytes(KEY)
    loaded: list[str] = []
    real = ssl.SSLContext.load_cert_chain

    def load(self: ssl.SSLContext, certificate: str, key: str, **options: object) -> None:
        loaded.extend((certificate, key))
        assert [stat.S_IMODE(os.stat(path).st_mode) for path in (certificate, key)] == [0o600, 0o600]
        real(self, certificate, key, **options)  # type: ignore[arg-type]  # the arguments are passed on unchanged

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", load)
    for config in (
        ClusterConfig(server="https://api.test", client_certificate_data=CHAIN, client_key_data=KEY),
        ClusterConfig(
            server="https://api.test",
            client_certificate_file=str(tmp_path / "tls.crt"),
            client_key_file=str(tmp_path / "tls.key"),
        ),
    ):
        async with open_transport(config):
            assert list(copies.iterdir()) == []
    assert len(loaded) == 4
    # Never the files that were checked: by now they may be others, such as FIFOs, which OpenSSL would wait for.
    assert not any(path.startswith(str(tmp_path / "tls")) for path in loaded)
    with pytest.raises(ConfigError):
        async with open_transport(
            ClusterConfig(server="https://api.test", client_certificate_data=CHAIN, client_key_data=b"no key")
        ):
            pass
    assert list(copies.iterdir()) == []


async def test_no_directory_is_needed_for_copies_in_memory(copies: Path) -> None:
    copies.rmdir()
    config = ClusterConfig(server="https://api.test", client_certificate_data=CHAIN, client_key_data=KEY)
    if hasattr(os, "memfd_create"):
        async with open_transport(config):
            return
    with pytest.raises(ConfigError, match="cannot be copied for OpenSSL: no temporary file"):
        async with open_transport(config):
            pass


@pytest.mark.parametrize(
    ("fields", "file", "key"),
    [
        ({"ca_data": b"junk"}, "code", "certificate-authority-data"),
        ({"ca_data": b""}, "code", "certificate-authority-data"),
        ({"ca_file": "junk"}, "junk", "certificate-authority"),
        ({"ca_file": "missing"}, "missing", "certificate-authority"),
        ({"client_certificate_file": "missing", "client_key_file": "key"}, "missing", "client-certificate"),
        ({"client_certificate_file": "junk", "client_key_file": "key"}, "junk", "client-certificate"),
        ({"client_certificate_file": "chain", "client_key_file": "missing"}, "missing", "client-key"),
        ({"client_certificate_file": "chain", "client_key_file": "junk"}, "junk", "client-key"),
        ({"client_certificate_file": "chain", "client_key_file": "other"}, "other", "client-key"),
        ({"client_certificate_data": b"junk", "client_key_data": KEY}, "code", "client-certificate-data"),
        ({"client_certificate_data": CHAIN}, "code", "client-key-data"),
    ],
)
async def test_an_invalid_certificate_or_key_is_a_config_error_that_names_it(
    fields: dict[str, object], file: str, key: str, tmp_path: Path
) -> None:
    contents = {"junk": b"junk", "chain": CHAIN, "key": KEY, "other": UNTRUSTED_CLIENT.private_key_pem.bytes()}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    given = {name: str(tmp_path / value) if isinstance(value, str) else value for name, value in fields.items()}
    with pytest.raises(ConfigError) as caught:
        async with open_transport(ClusterConfig(server="https://api.test", **given)):  # type: ignore[arg-type]  # mypy checks against every parameter
            pass
    assert caught.value.key == key
    assert caught.value.file == (file if file == "code" else str(tmp_path / file))
    assert str(caught.value).startswith(f"{caught.value.file}: {key}: ")
    assert "\n" not in str(caught.value)


@attrs.frozen
class Files:
    """The certificate files of a client, in a directory."""

    directory: Path

    @property
    def config(self) -> ClusterConfig:
        names = {"ca_file": "ca", "client_certificate_file": "chain", "client_key_file": "key"}
        paths = {field: str(self.directory / name) for field, name in names.items()}
        return ClusterConfig(server="https://api.test", **paths)  # type: ignore[arg-type]  # mypy checks against every parameter

    def write(self, **contents: bytes) -> None:
        for name, content in contents.items():
            rotate(self.directory / name, content)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path)
    made.write(ca=CA_PEM, chain=CHAIN, key=KEY)
    return made


OTHER_CHAIN = b"".join(blob.bytes() for blob in UNTRUSTED_CLIENT.cert_chain_pems)
OTHER_KEY = UNTRUSTED_CLIENT.private_key_pem.bytes()


BROKEN: dict[str, dict[str, bytes]] = {
    "a certificate without its key": {"chain": OTHER_CHAIN},
    "a key without its certificate": {"key": OTHER_KEY},
    "an empty bundle": {"ca": b""},
    "a certificate that is cut off": {"chain": CHAIN[:200]},
}


@pytest.mark.parametrize("contents", BROKEN.values(), ids=BROKEN)
async def test_invalid_rotated_files_keep_the_old_certificates_in_use(
    contents: dict[str, bytes], files: Files, autojump_clock, caplog: pytest.LogCaptureFixture
) -> None:
    """client-go: TestCheckCAFileAndRotate."""
    tls = TLS(files.config)
    context = tls.context
    files.write(**contents)
    for _ in range(3):
        await trio.sleep(REFRESH_PERIOD)
        tls.refresh()
        assert tls.context is context
    assert caplog.text.count("keeping the previous ones") == 1, "and not again for the same problem"
    (files.directory / "key").unlink()
    await trio.sleep(REFRESH_PERIOD)
    tls.refresh()
    assert tls.context is context
    files.write(ca=OTHER_CA.cert_pem.bytes(), chain=OTHER_CHAIN, key=OTHER_KEY)
    await trio.sleep(LOOK_PERIOD)
    tls.refresh()
    assert tls.context is not context


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "xn--a"])
async def test_a_name_that_cannot_be_is_a_failed_connection_that_names_it(host: str) -> None:
    await failure(ClusterConfig(server=f"https://{host}:6443"))
    async with serving(tls=server_tls()) as server:
        if not host.startswith("xn"):  # which cannot be resolved, but may be in a certificate
            await failure(ClusterConfig(server=server.url, ca_data=CA_PEM, tls_server_name=host))


async def test_an_address_that_cannot_be_is_a_mistake_in_the_config() -> None:
    with pytest.raises(ConfigError, match=r"1\.2\.3\.999") as caught:
        await fetch(ClusterConfig(server="https://1.2.3.999:6443"))
    assert caught.value.key == "server"


async def test_one_read_returns_all_tls_records_that_have_arrived(nursery: trio.Nursery) -> None:
    """One record per read would cost more than all other work on the items of a list."""
    ours, theirs = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in socket.socketpair())
    server = trio.SSLStream(theirs, server_tls(), server_side=True)
    sent = trio.Event()

    async def serve() -> None:
        for number in range(20):
            await server.send_all(b"%05d" % number * 200)
        sent.set()

    nursery.start_soon(serve)
    context = ssl.create_default_context(cadata=CA_PEM.decode())
    stream = await NetworkStream(TCPStream(ours)).start_tls(context, "127.0.0.1")
    await sent.wait()
    first = await stream.receive_some(12_000)
    assert (len(first), first[-5:]) == (12_000, b"00011")
    assert len(await stream.receive_some(65_536)) == 8_000
    await theirs.aclose()
    assert await stream.receive_some(65_536) == b"", "HTTP itself shows whether a response is complete"
    stream.close()
