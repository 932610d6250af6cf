"""Certificates and keys of servers."""

from __future__ import annotations

import os
import ssl
import threading
from pathlib import Path

import pytest
import trio
import trio.testing
import trustme
from cryptography.hazmat.primitives import serialization

from trioformer._certificates import REFRESH_PERIOD
from trioformer._listeners import server_contexts
from trioformer.errors import ConfigError

NAMES = ("HTTPOptions.certificate", "HTTPOptions.key")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A server's certificate and key."""
    issued = trustme.CA().issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    issued.private_key_pem.write_to_path(tmp_path / "tls.key")
    return tmp_path / "tls.crt", tmp_path / "tls.key"


async def refusal(certificate: Path | str, key: Path | str) -> ConfigError:
    """The error of loading them; in a thread, so that what waits for a writer fails the test instead of hanging it."""

    async def load() -> None:
        server_contexts(certificate, key, names=NAMES)

    with trio.fail_after(10), pytest.raises(ConfigError) as raised:
        await trio.to_thread.run_sync(trio.run, load, abandon_on_cancel=True)
    return raised.value


async def test_a_certificate_and_its_key_are_loaded_from_private_copies(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "copies"))
    context = server_contexts(*files)()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert list((tmp_path / "copies").iterdir()) == []
    (tmp_path / "none").touch()
    await refusal(files[0], tmp_path / "none")
    assert list((tmp_path / "copies").iterdir()) == []


async def test_files_that_cannot_be_read_are_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    for path, problem in ((tmp_path, "Is a directory"), (tmp_path / "gone", "No such file"), ("a\0b", "not valid")):
        error = await refusal(path, files[1])
        assert (error.file, error.key) == (str(path), NAMES[0])
        assert problem in str(error)
        error = await refusal(files[0], path)
        assert (error.file, error.key) == (str(path), NAMES[1])


async def test_an_encrypted_key_is_refused_without_asking_for_its_passphrase(files: tuple[Path, Path]) -> None:
    certificate, key = files
    plain = serialization.load_pem_private_key(key.read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"passphrase")
    for form in (serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL):
        key.write_bytes(plain.private_bytes(serialization.Encoding.PEM, form, encryption))
        problem = "is encrypted with a passphrase, which is not supported; store it decrypted"
        assert str(await refusal(certificate, key)) == f"{key}: HTTPOptions.key: {problem}"


async def test_the_file_that_is_not_valid_is_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    certificate, key = files
    other = tmp_path / "other.key"
    trustme.CA().issue_cert("127.0.0.1").private_key_pem.write_to_path(other)
    error = await refusal(certificate, other)
    assert str(error) == f"{other}: HTTPOptions.key: is not the key of the certificate"
    for path in (key, os.devnull):  # exchanged by mistake; not PEM
        text = str(await refusal(path, certificate))
        assert text.startswith(f"{path}: HTTPOptions.certificate: ")
    assert "does not contain a valid certificate (" in str(await refusal(key, certificate))
    text = str(await refusal(certificate, certificate))
    assert text.startswith(f"{certificate}: HTTPOptions.key: does not contain a valid key, or not the key of the cert")


async def test_files_that_can_be_read_only_once_are_not_read_again(
    files: tuple[Path, Path], tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """A FIFO, such as that of a shell's ``<(…)``, would block until somebody writes to it."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=[files[1].read_bytes()], daemon=True)
    writer.start()
    contexts = server_contexts(files[0], fifo)
    writer.join()
    files[0].write_bytes(b"changed")
    context = contexts()
    for _ in range(2):
        await trio.sleep(10 * REFRESH_PERIOD)
        assert contexts() is context
