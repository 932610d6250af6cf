"""Kubeconfigs, certificates and tokens."""

from __future__ import annotations

import base64
import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from trioformer import load_config, open_client

from .measuring import MEGABYTE, Measured, answer_of, bomb

_GROUP = "Files"
_USUAL = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: c}}}}]
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1"{cluster}}}}}]
users: [{{name: c, user: {{{user}}}}}]
"""


def _config(cluster: str = "", user: str = "") -> str:
    return _USUAL.format(cluster=f", {cluster}" if cluster else "", user=user)


async def _opened(file: Path) -> object:
    async with open_client(kubeconfig=file) as client:
        return await client.version()


def _add(name: str, what: str, content: Callable[[Path], str | bytes | None], **options: float) -> None:
    """Add a bomb of a kubeconfig's content; None if the function has made the file itself."""

    @bomb(name, _GROUP, what, **options)
    async def run(measured: Measured) -> str:
        with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
            file = _write(content)
            _import_yaml()
            with measured:
                answer = await answer_of(lambda: _opened(file))
            return answer.replace(directory, "…")


def _write(content: Callable[[Path], str | bytes | None]) -> Path:
    file = Path("config")
    made = content(file)
    if made is not None:
        file.write_bytes(made if isinstance(made, bytes) else made.encode())
        file.chmod(0o600)
    return file


def _import_yaml() -> None:
    """The imports of the first kubeconfig are not the bomb's."""
    file = Path("usual")
    file.write_text(_config())
    file.chmod(0o600)
    load_config(kubeconfig=file)


def _laughs(_: Path) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]" for number in range(1, 10)]
    return "\n".join(lines) + "\n" + _config()


def _merge_keys(_: Path) -> str:
    lines = ["m0: &m0 {k: v}"]
    lines += [f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 20)}], k{n}: v}}" for n in range(1, 8)]
    return "\n".join(lines) + "\n" + _config()


def _contexts(_: Path) -> str:
    names = range(5_000)
    clusters = "\n".join(f"- name: c{n}\n  cluster: {{server: 'https://h{n}:6443'}}" for n in names)
    users = "\n".join(f"- name: u{n}\n  user: {{token: t{n}}}" for n in names)
    contexts = "\n".join(f"- name: x{n}\n  context: {{cluster: c{n}, user: u{n}}}" for n in names)
    return f"current-context: x1\nclusters:\n{clusters}\nusers:\n{users}\ncontexts:\n{contexts}\n"


def _link(target: str) -> Callable[[Path], None]:
    return lambda file: file.symlink_to(target)


def _fifo(file: Path) -> None:
    os.mkfifo(file)


def _pem(text: str) -> Callable[[Path], str]:
    def content(file: Path) -> str:
        other = file.with_name("ca.pem")
        other.write_text(text)
        return _config(cluster=f"certificate-authority: {other}")

    return content


def _token(make: Callable[[Path], None]) -> Callable[[Path], str]:
    def content(file: Path) -> str:
        other = file.with_name("token")
        make(other)
        return _config(user=f"tokenFile: {other}")

    return content


_add("brackets", "50 KB of `[`", lambda _: "[" * 50_000)
_add("braces", "50 KB of `{a: `", lambda _: "{a: " * 12_500)
_add("dashes", "50 KB of `- - -`", lambda _: "- " * 25_000)
_add("indented", "1,000 levels of indentation", lambda _: "".join(f"{' ' * n}a:\n" for n in range(1_000)))
_add("laughs", "billion laughs", _laughs)
_add("merge-keys", "merge keys that multiply", _merge_keys)
_add("flow-maps", "1 MB of flow maps", lambda _: "a: [" + "{b: c}, " * 130_000 + "]\n" + _config())
_add("scalars", "1 MB of list items", lambda _: "a:\n" + "- b\n" * 260_000 + _config())
_add("anchors", "1 MB of anchors", lambda _: "a:\n" + "".join(f"- &a{n} x\n" for n in range(75_000)) + _config())
_add("sexagesimal", "a sexagesimal number of 1 MB", lambda _: "a: 1" + ":1" * 500_000 + "\n" + _config())
_add("digits", "a number of 1,000,000 digits", lambda _: f"a: {'9' * 1_000_000}\n" + _config())
_add("contexts", "5,000 contexts (an honest file, 0.6 MB)", _contexts, most_memory=128)
_add("huge-kubeconfig", "a kubeconfig of 100 MB", lambda _: b"# " + b"x" * 100 * MEGABYTE)
_add("zero", "the kubeconfig is /dev/zero", _link("/dev/zero"))
_add("begin-128k", "a certificate file with 128 KB of `-----BEGIN`", _pem("-----BEGIN CERTIFICATE-----\n" * 4_700))
_add("begin-dashes", "a certificate file with 1 MB of dashes", _pem("-" * MEGABYTE))
_add(
    "begin-data",
    "certificate-authority-data with 128 KB of `-----BEGIN`",
    lambda _: _config(
        cluster="certificate-authority-data: " + base64.b64encode(b"-----BEGIN CERTIFICATE-----\n" * 4_700).decode()
    ),
)
_add("token-zero", "the token file is /dev/zero", _token(_link("/dev/zero")))
_add("token-fifo", "the token file is a FIFO", _token(_fifo))
_add("token-100-mb", "a token file of 100 MB", _token(lambda file: file.write_bytes(b"x" * 100 * MEGABYTE) and None))
