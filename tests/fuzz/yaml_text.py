"""YAML as no library writes it."""

from __future__ import annotations

import json
import random
from typing import Any

import attrs

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
