"""Files of credentials that are rotated under a program."""

from __future__ import annotations

import os
import time
from pathlib import Path

import trustme


def rotate(file: Path, content: bytes | str, *, age: float = 10.0) -> None:
    """Write a file, and date it ``age`` seconds back: it is not being written any more."""
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    date = time.time() - age
    os.utime(file, (date, date))


class CertificateVolume:
    """A volume with a Secret of a certificate, which is updated like kubelet's ``AtomicWriter`` does it."""

    def __init__(self, path: Path, authority: trustme.CA) -> None:
        self.path, self.authority = path, authority
        self.certificate, self.key = path / "tls.crt", path / "tls.key"
        self.versions = 0
        self.issue()
        for name in ("tls.crt", "tls.key"):
            (path / name).symlink_to(Path("..data", name))

    def issue(self) -> None:
        """Replace the certificate and the key by new ones, at once."""
        self.versions += 1
        version = self.path / f"..{self.versions}"
        version.mkdir()
        issued = self.authority.issue_cert("127.0.0.1")
        rotate(version / "tls.crt", issued.cert_chain_pems[0].bytes())
        rotate(version / "tls.key", issued.private_key_pem.bytes())
        (self.path / "..data_tmp").symlink_to(version.name)
        os.replace(self.path / "..data_tmp", self.path / "..data")
