"""Kubeconfig files, and the token, certificate and key files that they name."""

from __future__ import annotations

import base64
import functools
import random
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
import trustme

from trioformer import open_client
from trioformer.errors import ConfigError
from trioformer.kubeconfig import ClusterConfig, load_in_cluster, load_kubeconfig

from .engine import Fuzzer
from .oracle import Oracle
from .secrets import CONTENT, KEY, KEY_PEM, PASSWORD, TOKEN
from .yaml_text import ODD_SCALARS, STRUCTURES, Plain, mutate, write

NAMES = ("dev", "prod", "a.b", "x" * 300, "web-\u202e", "1", "kind-kind")
SERVERS = (
    "https://k8s.example:6443",
    "https://k8s.example:6443/clusters/c-1/",
    "http://127.0.0.1:8080",
    "localhost:8080",
    "https://[::1]:6443",
    f"https://admin:{PASSWORD}@k8s.example",
    "https://a..b",
    f"https://{'a' * 64}.example",
    "https://xn--a/",
    "https://k8s.example:99999",
    "https://k8s.example:6443?x=y#z",
    "https://k8s\x1b[2J.example",
    "https://ex\u00e4mple",
    "ftp://x",
    "https://",
    "https://a b",
    "https://[fe80::1%25eth0]:1",
    "https://1.2.3",
    "https://" + "a." * 2_000 + "b",
)


PEMS = {"ca": b"(PEM of ca)", "certificate": b"(PEM of certificate)", "key": b"(PEM of key)"}
"""What stands for a certificate or key in an input, which is the same in every run; a key is not."""


@functools.cache
def _pems() -> Mapping[bytes, bytes]:
    authority = trustme.CA()
    client = authority.issue_cert("client")
    made = {
        PEMS["ca"]: authority.cert_pem.bytes(),
        PEMS["certificate"]: b"".join(blob.bytes() for blob in client.cert_chain_pems),
        PEMS["key"]: client.private_key_pem.bytes(),
    }
    return made | {base64.b64encode(name): base64.b64encode(pem) for name, pem in made.items()}


def filled(content: bytes) -> bytes:
    """Put the certificates and keys into a file."""
    for name, pem in _pems().items():
        content = content.replace(name, pem)
    return content


ODD_FILES: tuple[bytes, ...] = (
    b"",
    b"\n",
    b"\xff\xfe",
    TOKEN.encode() + b"\nx",
    TOKEN.encode() + b"\x00",
    TOKEN.encode() + "é".encode(),
    TOKEN.encode("utf-16"),
    b"-----BEGIN CERTIFICATE-----\n",
    b"-----BEGIN " * 3_000,
    b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
    b"-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n",
    KEY_PEM.encode(),
    KEY_PEM.replace("PRIVATE", "ENCRYPTED PRIVATE").encode(),
    KEY_PEM.replace(KEY, f"Proc-Type: 4,ENCRYPTED\n{KEY}").encode(),
    b"x" * 70_000,
)


Content: TypeAlias = bytes | Literal["directory", "loop", "missing"]
"""What a path is: a file with this content; or a directory, a link to itself, or nothing."""
SPECIAL: tuple[Content, ...] = ("directory", "loop", "missing")


@attrs.frozen
class Files:
    """A kubeconfig, and the files beside it."""

    config: Content
    files: Mapping[str, Content]
    """The content by name."""
    is_valid: bool
    """Whether nothing is wrong with it."""
    in_cluster: bool = False
    """Whether the files are those of a pod's service account, and there is no kubeconfig."""


class Kubeconfigs(Fuzzer[Files]):
    """Writes the files, loads them, and opens a client."""

    name = "kubeconfigs"

    @asynccontextmanager
    async def open(self, oracle: Oracle) -> AsyncGenerator[None, None]:
        with tempfile.TemporaryDirectory() as folder:
            self._folder = Path(folder)
            yield

    def generate(self, rng: random.Random) -> Files:
        if rng.random() < 0.1:
            return _service_account(rng)
        is_valid = rng.random() < 0.15
        tree, files = _kubeconfig(rng, is_valid=is_valid)
        if is_valid:
            return Files(write(rng, tree), files, True)
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            mutate(rng, tree)
        text = write(rng, tree)
        if rng.random() < 0.5:
            text = _mutate_text(rng, text)
        for name in files:
            if rng.random() < 0.2:
                files[name] = rng.choice((*ODD_FILES, *SPECIAL))
        return Files(rng.choice(SPECIAL) if rng.random() < 0.02 else text, files, False)

    async def check(self, given: Files, oracle: Oracle) -> None:
        if isinstance(given.config, bytes):
            given = attrs.evolve(given, config=filled(given.config))
        for name, content in {**given.files, "config": given.config}.items():
            _place(self._folder / name, filled(content) if isinstance(content, bytes) else content)
        try:
            await self._check(given, str(self._folder / "config"), oracle)
        finally:
            for path in self._folder.iterdir():
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()

    async def _check(self, given: Files, path: str, oracle: Oracle) -> None:
        if given.in_cluster:
            environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
            loaded = oracle.call_sync(
                lambda: load_in_cluster(environ=environ, service_account_directory=self._folder), (ConfigError,)
            )
        else:
            loaded = oracle.call_sync(lambda: load_kubeconfig(path), (ConfigError,))
            is_loaded = isinstance(loaded, ClusterConfig)
            oracle.expect(is_loaded or not given.is_valid, "a valid kubeconfig is refused", loaded)
        if isinstance(loaded, ClusterConfig):
            oracle.secrets(repr(loaded), "repr of a ClusterConfig")
            oracle.secrets(str(attrs.evolve(loaded)), "str of a ClusterConfig")
            await oracle.call(lambda: _open(loaded), (ConfigError,))


def _place(path: Path, content: Content) -> None:
    match content:
        case "directory":
            path.mkdir()
        case "loop":
            path.symlink_to(path)
        case "missing":
            pass
        case bytes():
            path.write_bytes(content)
            path.chmod(0o600)


async def _open(config: ClusterConfig) -> None:
    async with open_client(config) as client:
        repr(client)


def _kubeconfig(rng: random.Random, *, is_valid: bool) -> tuple[dict[str, Any], dict[str, Content]]:
    name = "dev" if is_valid else rng.choice(NAMES)
    files: dict[str, Content] = {}

    def pem(target: dict[str, Any], field: str, content: bytes) -> None:
        if rng.random() < 0.6:
            target[f"{field}-data"] = base64.b64encode(content).decode()
        else:
            target[field] = field
            files[field] = content

    cluster: dict[str, Any] = {"server": SERVERS[rng.randrange(2)] if is_valid else rng.choice(SERVERS)}
    user: dict[str, Any] = {}
    if rng.random() < 0.85:  # without authorities, those of the system are loaded, which takes 20 ms
        pem(cluster, "certificate-authority", PEMS["ca"])
    if rng.random() < 0.2:
        cluster["tls-server-name"] = "api.internal"
    if not is_valid and rng.random() < 0.1:
        cluster["insecure-skip-tls-verify"] = rng.choice((True, False, Plain("yes"), Plain("On"), "true"))
    if rng.random() < 0.3:
        pem(user, "client-certificate", PEMS["certificate"])
        pem(user, "client-key", PEMS["key"] if is_valid or rng.random() < 0.5 else KEY_PEM.encode())
    match rng.randrange(4):
        case 0:
            user["token"] = TOKEN
        case 1:
            user["tokenFile"] = "token"
            files["token"] = TOKEN.encode() + b"\n"
        case 2:
            user["username"], user["password"] = "admin", PASSWORD
        case _:
            pass
    if rng.random() < 0.3:
        _managed(rng, cluster, user)
    context: dict[str, Any] = {"cluster": name, "user": name}
    if rng.random() < 0.5:
        context["namespace"] = "web" if is_valid else rng.choice(("web", "a/b", "A", "x" * 64, "\x1b[2J", ""))
    tree: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "contexts": [{"name": name, "context": context}],
        "users": [{"name": name, "user": user}],
    }
    if rng.random() < 0.2:
        tree["preferences"] = {}
        cluster["extensions"] = [{"name": "x", "extension": {"a": 1}}]
    if rng.random() < 0.2:
        other = {"name": "other", "user": {"token": TOKEN}}
        tree["users"].insert(rng.randrange(2), other)
    return tree, files


def _managed(rng: random.Random, cluster: dict[str, Any], user: dict[str, Any]) -> None:
    """Add what kubeconfigs of managed clusters have: a credential plugin, a proxy, impersonation."""
    if rng.random() < 0.6:
        user["exec"] = {
            "apiVersion": f"client.authentication.k8s.io/{rng.choice(('v1', 'v1beta1'))}",
            "command": rng.choice(("login", "./login", "/opt/login")),
            "args": ["--password", PASSWORD],
            "env": [{"name": "TOKEN", "value": TOKEN}, {"name": "EMPTY"}],
            "interactiveMode": rng.choice(("Never", "IfAvailable", "Always")),
            "provideClusterInfo": rng.random() < 0.5,
        }
        cluster["extensions"] = [{"name": "client.authentication.k8s.io/exec", "extension": {"a": [1, 1.5, CONTENT]}}]
    if rng.random() < 0.5:
        cluster["proxy-url"] = f"{rng.choice(('http', 'https', 'socks5'))}://admin:{PASSWORD}@proxy:3128"
    if rng.random() < 0.5:
        user |= {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"x": ["y"]}}


def _mutate_text(rng: random.Random, text: bytes) -> bytes:
    """Add what a YAML library never writes."""
    lines = text.split(b"\n")
    at = rng.randrange(len(lines))
    match rng.randrange(9):
        case 0:
            lines.insert(at, lines[at])  # a key twice
        case 1:
            indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
            lines.insert(at, indent + rng.choice(STRUCTURES).encode())
        case 2:
            key, colon, _ = lines[at].partition(b":")
            lines[at] = key + colon + b" " + rng.choice(ODD_SCALARS).encode()
        case 3:
            key, colon, value = lines[at].partition(b":")
            tag = rng.choice(
                ("!x", "!!int", "!!binary", "!!python/object:os.system", "&a", "*a", "!!set", "!<tag:a>", "!")
            )
            lines[at] = key + colon + b" " + tag.encode() + value
        case 4:
            del lines[at]
        case 5:
            lines[at] = lines[at].replace(b"  ", b"\t", 1)
        case 6:
            position = rng.randrange(len(text) + 1)
            odd = rng.choice(
                (b"\x00", b"\xff", b"\x1b", b"\xc2\x85", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xed\xa0\x80")
            )
            return text[:position] + odd + text[position:]
        case 7:
            return rng.choice(
                (
                    text.decode("latin-1").encode("utf-16"),
                    b"---\n" + text + b"---\n" + text,
                    text + b"...\nx",
                    text + b"\n---\n",
                    b"%YAML 9.9\n---\n" + text,
                )
            )
        case _:
            return text[: rng.randrange(len(text))]
    return b"\n".join(lines)


def _service_account(rng: random.Random) -> Files:
    files: dict[str, Content] = {"token": TOKEN.encode(), "ca.crt": PEMS["ca"], "namespace": b"web"}
    for name in list(files):
        if rng.random() < 0.4:
            content = rng.choice((*ODD_FILES, *SPECIAL))
            # A namespace is no secret: an error may quote what is in its place.
            is_shown = name == "namespace" and isinstance(content, bytes)
            files[name] = b"x" * 5_000 + bytes(len(content)) if is_shown else content
    return Files(b"", files, is_valid=False, in_cluster=True)
