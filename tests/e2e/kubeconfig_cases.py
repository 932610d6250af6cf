"""Kubeconfigs, hand-made and generated, to compare with what client-go makes of them."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import trustme
import yaml

from tests.support import managed_kubeconfigs

SERVER = "https://k8s.example:6443"
V1 = "client.authentication.k8s.io/v1"
V1BETA1 = f"{V1}beta1"
EXTENSION = "client.authentication.k8s.io/exec"


@attrs.frozen
class Case:
    """Files, and how the configuration is chosen from them."""

    files: Mapping[str, object]
    """Documents, or texts, by path; beside them are certificates and tokens."""
    listed: Sequence[str] = ("config",)
    """What ``$KUBECONFIG`` lists, relative to the directory of the files, which is the working directory."""
    context: str | None = None
    """The context that is chosen."""
    explicit: bool = False
    """Whether the only file is chosen by ``--kubeconfig``."""


# ------------------------------------------------------------------------------------------------------- documents


def named(section: str, name: str, fields: object) -> dict[str, object]:
    return {"name": name, section: fields}


def document(
    *, cluster: object = None, user: object = None, context: object = None, name: str = "dev", **top: object
) -> dict[str, object]:
    """A kubeconfig with one cluster, user and context."""
    return {
        "current-context": name,
        "clusters": [named("cluster", name, {"server": SERVER} if cluster is None else cluster)],
        "users": [named("user", name, {"token": "t"} if user is None else user)],
        "contexts": [named("context", name, {"cluster": name, "user": name} if context is None else context)],
    } | top


def with_cluster(**fields: object) -> dict[str, object]:
    return document(cluster={"server": SERVER} | {key.replace("_", "-"): value for key, value in fields.items()})


def with_user(**fields: object) -> dict[str, object]:
    return document(user={key.replace("_", "-"): value for key, value in fields.items()})


def with_exec(**fields: object) -> dict[str, object]:
    return document(user={"exec": {"apiVersion": V1BETA1, "command": "login"} | fields})


def with_extension(extension: object) -> dict[str, object]:
    cluster = {"server": SERVER, "extensions": [{"name": "x", "extension": 1}, {"name": EXTENSION, **extension}]}  # type: ignore[dict-item]  # each is a mapping
    return document(cluster=cluster, user={"exec": {"apiVersion": V1BETA1, "command": "login"}})


def hand_made(pems: Mapping[str, str]) -> dict[str, Case]:
    """Cases with a name that says what is special."""
    one: dict[str, object] = {
        "minimal": document(),
        "namespace": document(context={"cluster": "dev", "user": "dev", "namespace": "team"}),
        "no user": document(context={"cluster": "dev"}),
        "authority as data": with_cluster(certificate_authority_data=pems["ca"]),
        "authority as a file": with_cluster(certificate_authority="tls/ca.crt"),
        "authority as a file that is not clean": with_cluster(certificate_authority="./tls/../tls//ca.crt"),
        "insecure": with_cluster(insecure_skip_tls_verify=True),
        "name of the server": with_cluster(tls_server_name="internal"),
        "http proxy": with_cluster(proxy_url="http://user:pa%20ss@proxy:3128"),
        "socks5 proxy": with_cluster(proxy_url="socks5://proxy:1080"),
        "no compression": with_cluster(disable_compression=True),
        "path in the server": document(cluster={"server": f"{SERVER}/k8s/clusters/c-1"}),
        "token": with_user(token="secret"),
        "token file": with_user(tokenFile="tokens/token"),
        "token and token file": with_user(token="secret", tokenFile="tokens/token"),
        "token that is no number for Go": "token: 12345e678901".join(
            _around(yaml.safe_dump(with_user(token="x")), "token: x")
        ),
        "token like a date": "token: 2026-11-22".join(_around(yaml.safe_dump(with_user(token="x")), "token: x")),
        "basic": with_user(username="admin", password="secret"),
        "certificate as data": with_user(client_certificate_data=pems["certificate"], client_key_data=pems["key"]),
        "certificate as files": with_user(client_certificate="tls/client.crt", client_key="tls/client.key"),
        "certificate as both": with_user(client_certificate_data=pems["certificate"], client_key="tls/client.key"),
        "certificate and token": with_user(
            client_certificate="tls/client.crt", client_key="tls/client.key", token="secret"
        ),
        "impersonation": document(user={"token": "t", "as": "jane"}),
        "impersonation of everything": document(
            user={
                "token": "t",
                "as": "jane",
                "as-uid": "7",
                "as-groups": ["a", "b c"],
                "as-user-extra": {"Example.com/x": ["1", "2"], "empty": []},
            }
        ),
        "plugin": with_exec(),
        "plugin with null fields": with_exec(args=None, env=None, installHint=None, provideClusterInfo=None),
        "plugin of v1": with_exec(apiVersion=V1, interactiveMode="Never"),
        "plugin that always asks": with_exec(interactiveMode="Always"),
        "plugin with all fields": with_exec(
            args=["--a", "b c", ""],
            env=[{"name": "A", "value": "1"}, {"name": "B", "value": ""}],
            installHint="install\nit",
            provideClusterInfo=True,
        ),
        "plugin with a path": with_exec(command="./bin/login"),
        "plugin with a path up": with_exec(command="../login"),
        "plugin with an absolute path": with_exec(command="/opt/bin/login"),
        "plugin beside a token": document(
            user={"exec": {"apiVersion": V1, "command": "x", "interactiveMode": "Never"}, "token": "t"}
        ),
        "extension": with_extension({"extension": {"a": [1, 1.5, True, None, "x", {"b": {}}]}}),
        "extension with numbers": "17: [017, 0x1F, 0b11, 1e3, 1_000, 12345678901234567890]".join(
            _around(yaml.safe_dump(with_extension({"extension": {"17": 1}})), "'17': 1")
        ).replace("17: [", "'17': ["),
        "extension without content": with_extension({}),
        "booleans of YAML 1.1": "insecure-skip-tls-verify: yes".join(
            _around(yaml.safe_dump(with_cluster(insecure_skip_tls_verify=True)), "insecure-skip-tls-verify: true")
        ),
        "unknown fields": document(unknown=1, preferences={"colors": True}, extensions=[]),
        "null sections": document() | {"extensions": None},
        "empty fields": with_user(
            token="t", tokenFile="", username="", password="", client_certificate_data="", as_groups=[], exec=None
        ),
        "flow style": json.dumps(document()),
        "anchors": "x: &u {token: anchored}\n"
        + yaml.safe_dump(document(users=[])).replace("users: []", "users: [{name: dev, user: *u}]"),
        "windows": yaml.safe_dump(document()).replace("\n", "\r\n"),
        "document end": yaml.safe_dump(document()) + "---\n",
        "unicode": document(name="größe 1/2"),
        "EKS": managed_kubeconfigs.EKS.format(server=SERVER, **pems),
        "GKE": managed_kubeconfigs.GKE.format(server=SERVER, **pems),
        "AKS": managed_kubeconfigs.AKS.format(server=SERVER, **pems),
        "AKS with a certificate": managed_kubeconfigs.AKS_LOCAL.format(server=SERVER, **pems),
        # What both refuse.
        "unknown current context": document(**{"current-context": "gone"}),
        "no current context": document(**{"current-context": ""}),
        "unknown cluster": document(context={"cluster": "gone", "user": "dev"}),
        "unknown user": document(context={"cluster": "dev", "user": "gone"}),
        "user twice": document(users=[named("user", "dev", {"token": t}) for t in "ab"]),
        "cluster twice": document(clusters=[named("cluster", "dev", {"server": SERVER})] * 2),
        "authority as file and data": with_cluster(
            certificate_authority="tls/ca.crt", certificate_authority_data=pems["ca"]
        ),
        "certificate as file and data": with_user(
            client_certificate="tls/client.crt",
            client_certificate_data=pems["certificate"],
            client_key_data=pems["key"],
        ),
        "key as file and data": with_user(
            client_certificate_data=pems["certificate"], client_key_data=pems["key"], client_key="tls/client.key"
        ),
        "authority that does not exist": with_cluster(certificate_authority="gone"),
        "key that does not exist": with_user(client_certificate="tls/client.crt", client_key="gone"),
        "not YAML": "users: [",
        "not base64": with_cluster(certificate_authority_data="???"),
        "a list": "- a",
        "another kind": document(kind="Pod", apiVersion="v1"),
        "a number as token": "token: 12345".join(_around(yaml.safe_dump(with_user(token="x")), "token: x")),
        "a text as boolean": with_cluster(insecure_skip_tls_verify="true"),
        "a text as list": with_exec(args="a"),
        "a mapping as list": document(clusters={"dev": {}}),
    }
    cases = {name: Case({"config": content}) for name, content in one.items()}
    in_folder = {
        "a/config": document(
            name="a",
            cluster={"server": "https://a", "certificate-authority": "tls/ca.crt"},
            user={"exec": {"apiVersion": V1BETA1, "command": "./login"}},
        ),
        "b/c/config": document(name="b", user={"tokenFile": "../../tokens/token"}),
    }
    overlapping = {
        "one": document(name="x", user={"token": "one"}, **{"current-context": ""}),
        "two": document(name="x", cluster={"server": "https://two", "tls-server-name": "two"}, user={"username": "u"}),
        "three": document(name="y", user={"token": "three"}),
    }
    cases |= {
        "explicit": Case({"config": document(user={"tokenFile": "tokens/token"})}, explicit=True),
        "explicit in a folder": Case(in_folder, ["a/config"], explicit=True),
        "explicit and missing": Case({}, ["gone"], explicit=True),
        "explicit and another context": Case(overlapping, ["three"], "y", explicit=True),
        "folder": Case(in_folder, ["a/config", "b/c/config"]),
        "second folder": Case(in_folder, ["a/config", "b/c/config"], "b"),
        "folders in the other order": Case(in_folder, ["b/c/config", "a/config"]),
        "folders by another name": Case(in_folder, ["./a/../b/c/config", "a/config"], "a"),
        "first wins": Case(overlapping, ["one", "two", "three"]),
        "second wins": Case(overlapping, ["two", "one", "three"]),
        "third of three": Case(overlapping, ["one", "two", "three"], "y"),
        "missing are skipped": Case(overlapping, ["gone", "", "three", "lost"]),
        "twice in the list": Case(overlapping, ["one", "three", "one", "three"]),
        "all missing": Case({}, ["gone", "lost"]),
        "empty file first": Case(overlapping | {"empty": ""}, ["empty", "three"]),
        "broken file last": Case(overlapping | {"broken": "["}, ["three", "broken"]),
        "unknown context": Case(overlapping, ["one", "two"], "gone"),
        "context without cluster in its file": Case(
            {
                "contexts": {
                    "contexts": [named("context", "x", {"cluster": "c", "user": "u"})],
                    "current-context": "x",
                },
                "clusters": {"clusters": [named("cluster", "c", {"server": SERVER})]},
                "users": {"users": [named("user", "u", {"token": "t"})]},
            },
            ["contexts", "clusters", "users"],
        ),
    }
    return cases


def _around(text: str, part: str) -> list[str]:
    assert part in text
    return text.split(part)


def generated(number: int, pems: Mapping[str, str]) -> Case:
    """A list of files with entries of a few names."""
    dice = random.Random(number)
    names = ["a", "b", "c"]
    credentials: list[Callable[[str], dict[str, object]]] = [
        lambda tag: {"token": tag},
        lambda tag: {"tokenFile": "tokens/token"},
        lambda tag: {"tokenFile": "tokens/token", "token": tag},
        lambda tag: {"username": tag, "password": "p"},
        lambda tag: {"client-certificate": "tls/client.crt", "client-key": "tls/client.key"},
        lambda tag: {"client-certificate-data": pems["certificate"], "client-key": "tls/client.key"},
        lambda tag: {"exec": {"apiVersion": V1BETA1, "command": dice.choice(["x", "./x", "../y/x"]), "args": [tag]}},
        lambda tag: {"token": tag, "as": tag, "as-groups": [tag]},
    ]
    connections: list[Callable[[str], dict[str, object]]] = [
        lambda tag: {"tls-server-name": tag},
        lambda tag: {"certificate-authority": "tls/ca.crt"},
        lambda tag: {"certificate-authority-data": pems["ca"]},
        lambda tag: {"insecure-skip-tls-verify": True},
        lambda tag: {"proxy-url": f"http://{tag}:3128"},
        lambda tag: {"disable-compression": True},
    ]
    files: dict[str, object] = {}
    for path in ("config", "one/config", "two/config", "one/deep/config")[: dice.randint(1, 4)]:
        tag = path.replace("/", "-")
        top: dict[str, object] = {
            "clusters": [
                named("cluster", name, {"server": f"https://{tag}-{name}"} | dice.choice(connections)(tag))
                for name in dice.sample(names, dice.randint(0, 3))
            ],
            "users": [
                named("user", name, dice.choice(credentials)(tag)) for name in dice.sample(names, dice.randint(0, 3))
            ],
            "contexts": [
                named(
                    "context",
                    name,
                    {"cluster": dice.choice(names)}
                    | dice.choice([{}, {"user": dice.choice(names)}, {"user": name, "namespace": tag}]),
                )
                for name in dice.sample(names, dice.randint(0, 3))
            ],
        }
        if dice.random() < 0.6:
            top["current-context"] = dice.choice(names)
        files[path] = top if dice.random() < 0.95 else ""
    listed = [*files, *dice.sample(["gone", *files], dice.randint(0, 1))]
    dice.shuffle(listed)
    return Case(files, listed, dice.choice([None, *names]), explicit=len(listed) == 1 and dice.random() < 0.3)


# ----------------------------------------------------------------------------------------------------------- files


def certificates() -> dict[str, bytes]:
    """An authority, a certificate and its key, by the names of their files."""
    authority = trustme.CA()
    client = authority.issue_cert("client")
    return {
        "tls/ca.crt": authority.cert_pem.bytes(),
        "tls/client.crt": client.cert_chain_pems[0].bytes(),
        "tls/client.key": client.private_key_pem.bytes(),
    }


def encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    """The same as data of kubeconfigs: ``ca``, ``certificate`` and ``key``."""
    return {
        name: base64.b64encode(pem).decode()
        for name, pem in zip(("ca", "certificate", "key"), files.values(), strict=True)
    }


def write(case: Case, directory: Path, files: Mapping[str, bytes]) -> None:
    """Write a case's files, and certificates and a token in the folder of each."""
    directory.mkdir()
    for name, content in case.files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else yaml.safe_dump(content, allow_unicode=True)
        path.write_bytes(text.encode())
        path.chmod(0o600)
    for folder in {directory, *((directory / name).parent for name in case.files)}:
        for name, data in {**files, "tokens/token": f"from-{folder.name}\n".encode()}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
