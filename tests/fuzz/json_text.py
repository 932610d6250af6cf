"""JSON as hostile servers write it: mutations of a value, and text that ``json.dumps`` never makes."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

JSON: TypeAlias = Any


@attrs.frozen
class Raw:
    """Text that is written as it is, in place of a value or of a key."""

    data: bytes


@attrs.frozen
class Twice:
    """An object with one key twice."""

    key: str
    first: JSON
    last: JSON
    rest: dict[str, JSON] = attrs.field(factory=dict)


def write(value: JSON) -> bytes:
    """Write a value; the values of :class:`Raw` unchanged, without a check."""
    if isinstance(value, dict):
        return b"{" + b",".join([_key(key) + b":" + write(each) for key, each in value.items()]) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join([write(each) for each in value]) + b"]"
    if isinstance(value, Raw):
        return value.data
    if isinstance(value, Twice):
        pairs = [(value.key, value.first), *value.rest.items(), (value.key, value.last)]
        return b"{" + b",".join([_key(key) + b":" + write(each) for key, each in pairs]) + b"}"
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _key(key: str | Raw) -> bytes:
    return key.data if isinstance(key, Raw) else json.dumps(key).encode()


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]", inner: bytes = b"") -> Raw:
    """A value of so many levels."""
    return Raw(opening * depth + inner + closing * depth)


def deep(rng: random.Random) -> Raw:
    """A value of many levels, rarely of very many."""
    depth = rng.choices((30, 200, 1_000, 10_000, 100_000), (8, 8, 4, 1, 0.1))[0]
    opening, closing = rng.choice([(b"[", b"]"), (b'{"a":', b"}"), (b'[{"b":[', b"]}]")])
    inner = b"" if opening == b"[" else b"1"
    return nested(depth, opening, closing, inner)


ODD_VALUES: tuple[JSON, ...] = (
    None,
    True,
    False,
    0,
    -1,
    2**31,
    2**63,
    2**64,
    -(2**63) - 1,
    10**30,
    0.5,
    1e308,
    "",
    " ",
    "a/b",
    "../../secrets",
    "a#b",
    "a?b=c",
    "kube-system",
    "x" * 300,
    "é",
    "\u202egnp.exe",
    "\x1b[2J",
    "\x00",
    "\u2028",
    "1",
    "-1",
    "007",
    "9" * 30,
    "1e400",
    [],
    [None],
    [[]],
    {},
    {"": None},
    Raw(b"1e999"),
    Raw(b"-0"),
    Raw(b"NaN"),
    Raw(b"Infinity"),
    Raw(b"9" * 5_000),
    Raw(b"1e-999999999"),
    Raw(b"01"),
    Raw(b"+1"),
    Raw(b'"\\ud800"'),
    Raw(b'"\xff\xfe"'),
    Raw(b'{"\xff":1}'),
    Raw(b'{"\\udfff":1}'),
    Raw(b'"\\x"'),
    Raw(b'"\n"'),
    Raw(b"'a'"),
    Raw(b"{"),
    Raw(b""),
    Raw(b"nul"),
    Raw(b"/* c */1"),
)


def odd_value(rng: random.Random) -> JSON:
    """Choose an odd value; a copy, because a later change may be inside it."""
    return copy.deepcopy(rng.choice(ODD_VALUES))


def places(value: JSON) -> list[tuple[Any, Any]]:
    """List the container and the key of everything below a value."""
    found: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        each = todo.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        for key in keys:
            found.append((each, key))
            todo.append(each[key])
    return found


def mutate(rng: random.Random, value: JSON) -> None:
    """Change one thing below a value, in place."""
    at = places(value)
    if not at:
        return
    # Half of the changes are to the metadata and beside them, which the library itself reads.
    container, key = rng.choice(at)
    if rng.random() < 0.5 and isinstance(value, dict):
        inner = value.get("metadata")
        shallow = [(value, each) for each in value]
        shallow += [(inner, each) for each in inner] if isinstance(inner, dict) else []
        container, key = rng.choice(shallow)
    rng.choice(_CHANGES)(rng, container, key)


def _replace(rng: random.Random, container: Any, key: Any) -> None:
    container[key] = odd_value(rng)


def _deepen(rng: random.Random, container: Any, key: Any) -> None:
    container[key] = deep(rng)


def _delete(rng: random.Random, container: Any, key: Any) -> None:
    del container[key]


def _wrap(rng: random.Random, container: Any, key: Any) -> None:
    container[key] = [container[key]] if rng.random() < 0.5 else {"value": container[key]}


def _add(rng: random.Random, container: Any, key: Any) -> None:
    if isinstance(container, dict):
        odd: Any = rng.choice(["", "x", "metadata", "é", Raw(b'"\xff"'), Raw(b'"\\ud800"'), Raw(b"x"), Raw(b"1")])
        container[odd] = odd_value(rng)
    else:
        container.insert(key, odd_value(rng))


def _twice(rng: random.Random, container: Any, key: Any) -> None:
    if isinstance(container[key], dict) and container[key]:
        rest = dict(container[key])
        chosen = rng.choice([each for each in rest if isinstance(each, str)] or [""])
        first = rest.pop(chosen, None)
        pair = [first, odd_value(rng)]
        rng.shuffle(pair)
        container[key] = Twice(chosen, *pair, rest)


_CHANGES: tuple[Callable[[random.Random, Any, Any], None], ...] = (
    _replace,
    _replace,
    _replace,
    _deepen,
    _delete,
    _delete,
    _wrap,
    _add,
    _twice,
)


def mutate_text(rng: random.Random, data: bytes) -> bytes:
    """Change a few bytes, never more than a few: so the mark of a secret stays recognisable."""
    text = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                del text[at : at + rng.randrange(1, 5)]
            case 1:
                text[at:at] = rng.choice((b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\x00", b"\xff", b"\n"))
            case 2 if text:
                text[min(at, len(text) - 1)] = rng.randrange(256)
            case 3:
                text[at:at] = rng.choice((b" ", b"\xef\xbb\xbf", b"\r\n", b'"a":1,', b"null", b"\x1b[31m"))
            case _ if rng.random() < 0.3:
                del text[at:]
    return bytes(text)


class NotJSONError(Exception):
    """A text is not JSON, or cannot be read by Python's module."""


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def read(data: bytes) -> JSON:
    """Read JSON with Python's own module; of two equal keys the last one counts, as in Go and msgspec.

    Raises:
        NotJSONError: It is not JSON, or too deep.
    """
    try:
        found = json.loads(data.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)
        if b"\\ud" in data.lower():
            _refuse("half a surrogate")  # no input has whole ones
    except (ValueError, RecursionError) as exc:
        raise NotJSONError(str(exc)) from exc
    return found


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def is_grammatical(data: bytes) -> bool:
    """Whether a text has the grammar of JSON, whatever its bytes, numbers and depth are.

    Objects of a list cannot be told apart where it has not.  Of one that is too deep for Python, that is not known.
    """
    try:
        json.loads(data.decode("utf-8", "surrogateescape"), parse_constant=_refuse, parse_int=float)
    except RecursionError:
        return False  # for all that is known
    except ValueError:
        return False
    return True


def depth(value: JSON) -> int:
    """How many levels a value has."""
    levels, level = 0, [value]
    while level:
        levels += 1
        inner = [
            list(each.values()) if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)
        ]
        level = [each for container in inner for each in container]
    return levels
