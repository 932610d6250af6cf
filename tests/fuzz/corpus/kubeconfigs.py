"""Kubeconfig files that were quoted, believed, or took too long."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz.kubeconfigs import PEMS, Content, Files
from tests.fuzz.secrets import KEY_PEM, PASSWORD, TOKEN

TEMPLATE = """\
apiVersion: v1
kind: Config
current-context: dev
clusters: [{name: dev, cluster: {server: "https://k8s.example:6443", certificate-authority: ca}}]
contexts: [{name: dev, context: {cluster: dev, user: dev}}]
users:
- name: dev
  user:
"""


def user(*lines: str, **files: Content) -> Files:
    """A kubeconfig whose user has these lines."""
    text = TEMPLATE + "".join(f"    {line}\n" for line in lines)
    return Files(text.encode("utf-8", "surrogatepass"), {"ca": PEMS["ca"], **files}, False)


def beside(text: str) -> Files:
    """A valid kubeconfig with this text before it."""
    return Files((text + TEMPLATE + f"    token: {TOKEN}\n").encode(), {"ca": PEMS["ca"]}, False)


def account(**files: Content) -> Files:
    return Files(b"", {"token": TOKEN.encode(), "ca.crt": PEMS["ca"], **files}, False, in_cluster=True)


CASES: Mapping[str, Callable[[], Files]] = {
    "a password that begins like a tag": lambda: user("username: admin", f"password: !{PASSWORD}"),
    "a password that begins like an alias": lambda: user("username: admin", f"password: *{PASSWORD}"),
    "a password that begins like an anchor": lambda: user("username: admin", f"password: &{PASSWORD} x: y"),
    "a password that begins with a reserved sign": lambda: user("username: admin", f"password: @{PASSWORD}"),
    "a password with a quote that does not end": lambda: user("username: admin", f"password: '{PASSWORD}"),
    "a password with an unknown escape": lambda: user("username: admin", f'password: "{PASSWORD}\\q"'),
    "a token of a wrong tag": lambda: user(f"token: !!int {TOKEN}"),
    "a token that is a list": lambda: user(f"token: [{TOKEN}]"),
    "a token with a line end": lambda: user(f'token: "{TOKEN}\\nx"'),
    "a token that is not ASCII": lambda: user(f"token: {TOKEN}é"),
    "a password in the place of a mapping": lambda: user(PASSWORD),
    "a password without a user name": lambda: user(f"password: {PASSWORD}"),
    "a token and a password": lambda: user(f"token: {TOKEN}", "username: admin", f"password: {PASSWORD}"),
    "a number of 400 sexagesimal digits": lambda: user("token: 1:" + ":".join(["59"] * 400)),
    "a fraction of 400 sexagesimal digits": lambda: user("token: 1:" + ":".join(["59"] * 400) + ".5"),
    "a number of 5,000 digits": lambda: user("token: " + "9" * 5_000),
    "a date of a thirteenth month": lambda: user("token: 2026-13-99"),
    "a token twice": lambda: user(f"token: {TOKEN}", "token: other"),
    "a merge key": lambda: user(f"<<: {{token: {TOKEN}}}"),
    "a merge key without a mapping": lambda: user("<<: 7"),
    "aliases that double ten times": lambda: beside(
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 11))
    ),
    "an alias of itself": lambda: beside("a: &a [*a]\n"),
    "50 KB of brackets": lambda: beside("a: " + "[" * 50_000),
    "50 KB of mappings": lambda: beside("a: " + "{b: " * 50_000),
    "50 KB of sequences": lambda: beside("- " * 25_000 + "x\n"),
    "100,000 levels that end": lambda: beside("a: " + "[" * 100_000 + "]" * 100_000 + "\n"),
    "two documents": lambda: beside("---\na: b\n---\n"),
    "a key file that holds a token": lambda: user("client-certificate: crt", "client-key: key", crt=PEMS["certificate"], key=TOKEN.encode()),
    "a certificate file that holds the key": lambda: user("client-certificate: crt", "client-key: key", crt=PEMS["key"], key=PEMS["key"]),
    "a key that is encrypted": lambda: user(
        "client-certificate: crt", "client-key: key", crt=PEMS["certificate"], key=KEY_PEM.replace("PRIVATE", "ENCRYPTED PRIVATE").encode()
    ),
    "128 KB of beginnings of a certificate": lambda: user("client-certificate: crt", "client-key: key", crt=b"-----BEGIN A-----\n" * 7_300, key=PEMS["key"]),
    "a token file that is a directory": lambda: user("tokenFile: token", token="directory"),
    "a kubeconfig that is a link to itself": lambda: Files("loop", {}, False),
    "a token file in UTF-16": lambda: user("tokenFile: token", token=TOKEN.encode("utf-16")),
    "a token file of 2 MB": lambda: user("tokenFile: token", token=TOKEN.encode() + b" " * 2_000_000),
    "a service account whose namespace is 5,000 characters": lambda: account(namespace=b"x" * 5_000),
    "a service account whose token is a key": lambda: account(token=KEY_PEM.encode()),
    "a service account whose authority is a token": lambda: account(**{"ca.crt": TOKEN.encode()}),
}  # fmt: skip
