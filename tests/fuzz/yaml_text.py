"""YAML as no library writes it, and what a strict reader makes of a kubeconfig."""

from __future__ import annotations

import base64
import json
import math
import os
import random
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import yaml

from .secrets import PASSWORD, TOKEN


@attrs.frozen
class Plain:
    """A scalar without quotes."""

    text: str


ODD_SCALARS = (
    "",
    "null",
    "~",
    "true",
    "1",
    "0o17",
    "0x_",
    "1_000",
    "12:30:45",
    "1:" + ":".join(["59"] * 400),
    "1:" + ":".join(["59"] * 400) + ".5",
    "-1:1:1.",
    "190:20:30.15",
    ".inf",
    ".nan",
    "1e999",
    "-1.0e999",
    "0x" + "f" * 17,
    "2026-01-12",
    "2026-13-99",
    "2026-01-12T25:61:61Z",
    "2026-01-12 08:15:42 +99:99",
    "=",
    "<<",
    f"!{TOKEN}",
    f"*{TOKEN}",
    f"&{TOKEN} x",
    f"!!int {PASSWORD}",
    f"!!float '{PASSWORD}'",
    f"!!timestamp {PASSWORD}",
    f"!!binary {PASSWORD}!",
    f"'{PASSWORD}",
    f'"{PASSWORD}\\q"',
    f"@{PASSWORD}",
    f"%{PASSWORD}",
    f"`{PASSWORD}",
    f"{TOKEN}: {PASSWORD}: x",
    f"[{TOKEN}, {{{PASSWORD}]",
    "|\n" + TOKEN,
    ">-9",
    "? a",
    "- a",
    '"\\ud800"',
    '"\\x1b[2J"',
    "!!python/name:os.system",
    "!!bool 7",
    "!!null x",
    "9" * 5_000,
    "0b" + "1" * 20_000,
    "[" * 200,
    "{a: " * 200,
    "[" * 200 + "]" * 200,
    "- " * 300 + "x",
    "[" * 20_000,
    "{a: " * 20_000,
)
"""Texts in place of a value; some of them with a secret that an error might quote."""
STRUCTURES = (
    f"<<: {{token: {TOKEN}}}",
    "<<: *missing",
    "<<: [{a: b}, {c: d}]",
    "<<: 7",
    "? {a: b}\n: c",
    "? [a]\n: c",
    "a: &a [*a]",
    "b: &b {<<: *b}",
    "x: &x [a]\ny: [*x, *x]",
    "1: 2",
    "null: 1",
    "2026-01-12: x",
    "!!set {a, b}: c",
    "a: 1\na: 2",
    "a: &l [x,x,x,x,x,x,x,x,x]\nb: &m [*l,*l,*l,*l,*l,*l,*l,*l]\nc: [*m,*m,*m,*m,*m,*m,*m,*m]",
    "# comment \x1b",
    "---",
    "...",
)
"""Lines between others."""


def write(rng: random.Random, tree: Any) -> bytes:
    """Write a tree as YAML of any style, or as JSON."""
    style = rng.randrange(3)
    if style == 0 and not _has_plain(tree):
        return json.dumps(tree).encode()
    return "".join(_lines(rng, tree, 0)).encode("utf-8", "surrogatepass")


def _has_plain(tree: Any) -> bool:
    if isinstance(tree, dict):
        return any(_has_plain(each) for each in tree.values())
    return any(_has_plain(each) for each in tree) if isinstance(tree, list) else isinstance(tree, Plain)


def _lines(rng: random.Random, tree: Any, indent: int) -> list[str]:
    pad = "  " * indent
    if isinstance(tree, dict) and tree:
        return [line for key, each in tree.items() for line in _member(rng, f"{pad}{_scalar(rng, key)}:", each, indent)]
    if isinstance(tree, list) and tree:
        return [line for each in tree for line in _member(rng, f"{pad}-", each, indent)]
    return [f"{pad}{_scalar(rng, tree)}\n"]


def _member(rng: random.Random, begin: str, value: Any, indent: int) -> list[str]:
    if isinstance(value, dict | list) and value:
        return [begin + "\n", *_lines(rng, value, indent + 1)]
    return [f"{begin} {_scalar(rng, value)}\n"]


def _scalar(rng: random.Random, value: Any) -> str:
    if isinstance(value, Plain):
        return value.text
    if isinstance(value, str):
        is_word = value.isascii() and value.replace("-", "").isalnum() and value[0].isalpha()
        if is_word and value.lower() not in ("null", "true", "false", "yes", "no", "on", "off", "y", "n"):
            return value if rng.random() < 0.7 else f"'{value}'"
        return json.dumps(value)
    return json.dumps(value)


def mutate(rng: random.Random, tree: dict[str, Any]) -> None:
    """Change one thing in a kubeconfig, in place."""
    at: list[tuple[Any, Any]] = []
    todo: list[Any] = [tree]
    while todo:
        each = todo.pop()
        for key in list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ():
            at.append((each, key))
            todo.append(each[key])
    if not at:
        return
    container, key = rng.choice(at)
    match rng.randrange(6):
        case 0 | 1:
            container[key] = Plain(rng.choice([text for text in ODD_SCALARS if "\n" not in text]))
        case 2:
            container[key] = rng.choice(
                (None, True, 7, 0.5, [], {}, "", ["x"], {"x": "y"}, {"": {"": []}}, "é", "\u202e")
            )
        case 3:
            del container[key]
        case 4:
            container[key] = [container[key]]
        case _ if isinstance(container, dict):
            odd = rng.choice(("exec", "auth-provider", "as", "proxy-url", "token", "password", "tokenFile", "", "x"))
            container[odd] = rng.choice((TOKEN, {}, {"command": "sh"}, None, 7))


def read_strictly(text: bytes, folder: Path) -> dict[str, Any] | str:
    """Read the fields of the current context from the nodes of a kubeconfig, without any conversion of YAML.

    Returns:
        The fields that :class:`ClusterConfig` must have, or why the file must be refused.
    """
    text = re.sub(rb"(?m)^\xef\xbb\xbf", b"", text)  # libyaml, and so kubectl, skips it at the beginning of a line
    try:
        root, *more = [*yaml.compose_all(text, Loader=yaml.SafeLoader)] or [None]
        if more and (len(more) > 1 or not _is_null(more[0])):
            return "it has a second document"
        return _ambiguous(root) or _fields(root, folder)
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        return f"a strict reader refuses it: {type(exc).__name__} {str(exc)[:100]}"


def _fields(root: yaml.Node | None, folder: Path) -> dict[str, Any]:
    top = _members(root)
    chosen = _text(top, "current-context")
    context = _entry(top, "contexts", "context", chosen)
    cluster = _entry(top, "clusters", "cluster", _text(context, "cluster"))
    user_name = _text(context, "user")
    user = _entry(top, "users", "user", user_name) if user_name else {}
    server = _text(cluster, "server") or ""
    if "/" not in server.rstrip("/"):
        authorities = (_text(cluster, f"certificate-authority{end}") for end in ("", "-data"))
        insecure = cluster.get("insecure-skip-tls-verify")
        is_insecure = insecure is not None and insecure.value.lower() in ("true", "yes", "on", "y")
        server = f"{'https' if is_insecure or any(authorities) else 'http'}://{server}"
    parts = urlsplit(server)
    is_https = parts.scheme == "https"
    wanted: dict[str, Any] = {
        "server": f"{parts.scheme}://{parts.netloc.rstrip(':')}{parts.path.rstrip('/')}",
        "namespace": _text(context, "namespace") or "default",
        "context": chosen,
        "proxy_url": _text(cluster, "proxy-url"),
    }
    if not is_https:
        return wanted
    wanted["tls_server_name"] = _text(cluster, "tls-server-name")
    wanted["username"], wanted["password"] = _text(user, "username"), _text(user, "password")
    if wanted["username"] is not None and wanted["password"] is None:
        wanted["password"] = ""
    wanted["token"], wanted["token_file"] = _text(user, "token"), _path(_text(user, "tokenFile"), folder)
    if wanted["token"] is None and wanted["token_file"] is not None:
        wanted["token"] = Path(wanted["token_file"]).read_bytes().decode("latin-1")
    wanted["token"] = wanted["token"] and wanted["token"].strip()
    for owner, field, name in (
        (cluster, "certificate-authority", "ca"),
        (user, "client-certificate", "client_certificate"),
        (user, "client-key", "client_key"),
    ):
        data = _text(owner, f"{field}-data")
        wanted[f"{name}_data"] = base64.b64decode(re.sub(r"[\r\n]", "", data), validate=True) if data else None
        wanted[f"{name}_file"] = None if data else _path(_text(owner, field), folder)
    if not (wanted["client_certificate_data"] or wanted["client_certificate_file"]):
        wanted["client_key_data"] = wanted["client_key_file"] = None
    return wanted


def _is_null(node: Any) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")


def _path(text: str | None, folder: Path) -> str | None:
    return None if not text else text if os.path.isabs(text) else os.path.normpath(folder / text)


def _ambiguous(root: yaml.Node | None) -> str:
    """Return why a document has more than one reading: a key twice, a merge key."""
    todo, seen = [root], set()
    while todo:
        node = todo.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if len(keys) != len(set(keys)):
                return "a key is in it twice"
            if any(tag == "tag:yaml.org,2002:merge" for tag, _ in keys):
                return "it has a merge key"
            todo += [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            todo += node.value
    return ""


def _members(node: Any) -> dict[str, Any]:
    return {key.value: value for key, value in node.value if key.tag == "tag:yaml.org,2002:str"}


def _text(members: dict[str, Any], name: str) -> str | None:
    node = members.get(name)
    if node is None or _is_null(node):
        return None
    if node.tag != "tag:yaml.org,2002:str" and not _is_string_in_go(node):
        raise TypeError(f"{name} is not a string")
    return node.value or None


def _is_string_in_go(node: yaml.ScalarNode) -> bool:
    """Whether Go's YAML, which kubectl uses, reads a string: every date, 12:30:45, ``0x_``, and what is too large."""
    if node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
        digits = node.value.replace("_", "")
        return not _GO_NUMBER.fullmatch(digits) or _is_too_large(digits)
    # The others are "=", "<<" and a text behind a single "!".
    return node.tag in (*(f"tag:yaml.org,2002:{name}" for name in ("timestamp", "value", "merge")), "!")


def _is_too_large(digits: str) -> bool:
    sign, prefix, rest = re.fullmatch(r"([-+]?)(0[xXoObB])?(.*)", digits, re.DOTALL).groups()  # type: ignore[union-attr]
    if not prefix:
        return math.isinf(float(digits)) if rest[-1] not in "fFnN" else False
    bits = f"{int(rest, {'x': 16, 'o': 8, 'b': 2}[prefix[1].lower()]):b}"
    return len(bits) > (63 if sign else 64) and (sign, bits) != ("-", "1" + "0" * 63)


_GO_NUMBER = re.compile(
    r"[-+]?(0x[0-9a-fA-F]+|0o?[0-7]+|0b[01]+|[0-9]+|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|\.inf)|\.nan",
    re.IGNORECASE,
)


def _entry(top: dict[str, Any], section: str, field: str, name: str | None) -> dict[str, Any]:
    for each in top[section].value:
        members = {} if _is_null(each) else _members(each)
        if _text(members, "name") == name:
            body = members.get(field)
            return {} if body is None or _is_null(body) else _members(body)
    raise KeyError(name)
