"""Fixtures of the tests of kubeconfigs."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme
import yaml

from tests.support.kubeconfigs import Certificates, Pod, Write


@pytest.fixture(scope="session")
def pems() -> Certificates:
    authority = trustme.CA()
    client = authority.issue_cert("client")
    chain = b"".join(blob.bytes() for blob in client.cert_chain_pems)
    return Certificates(authority.cert_pem.bytes(), chain, client.private_key_pem.bytes())


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a document (or text, or bytes) to a file below ``tmp_path`` and return its path."""

    def write(content: object, name: str = "config") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        path.chmod(0o600)  # others are warned about
        return str(path)

    return write


@pytest.fixture
def pod(tmp_path: Path, pems: Certificates) -> Pod:
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    (directory / "token").write_text("pod-token\n")
    (directory / "ca.crt").write_bytes(pems.ca)
    (directory / "namespace").write_text("pod-namespace\n")
    home = tmp_path / "home"
    home.mkdir()
    service = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    return Pod(directory, {"HOME": str(home), **service})
