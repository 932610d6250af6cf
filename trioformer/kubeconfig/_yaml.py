"""Parses YAML; imported when the first file is read.

PyYAML's composer and constructor recurse, so that a few kilobytes of brackets end the interpreter; they take the last
of two equal keys, and quote values in errors.
So only PyYAML's parser is used here, whose events come one by one: each limit is checked on the event that exceeds it,
before anything is made of it.

Scalars are what they are for kubectl (``sigs.k8s.io/yaml``): ``yes`` is a boolean and ``0x1F`` an integer, but
dates, sexagesimal numbers such as ``60:00``, and numbers that fit into no number of Go's are strings.
Unlike there, duplicate keys, merge keys and tags are errors: what they mean differs between programs.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, final

import yaml

from .._secret import Secret
from ..errors import ConfigError
from ._values import Fields, Items, Number, NumberKind, RawValue, Value

R = TypeVar("R")

MAX_LEVELS: Final = 50
"""Collections inside each other; a kubeconfig has six, and extensions in it a few more."""
MAX_NODES: Final = 30_000
"""Keys, values and collections, those that an alias repeats included: some 40 ms of parsing.

Nine hundred contexts with certificates, or six hundred with credential plugins, have fewer.
"""
MAX_DIRECTIVES: Final = 10
"""Lines that begin with ``%``; libyaml compares each with all others."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_QUOTE = "put a value with special characters in quotes"
_TAG: Final = "tag:yaml.org,2002:"
_STRING_TAGS: Final = ("!", f"{_TAG}str")
_KINDS_OF_TAGS: Final = {
    f"{_TAG}null": type(None),
    f"{_TAG}bool": bool,
    f"{_TAG}int": Number,
    f"{_TAG}float": Number,
}
_CONSTANTS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **{spelling: True for word in ("true", "yes", "on", "y") for spelling in (word, word.title(), word.upper())},
    **{spelling: False for word in ("false", "no", "off", "n") for spelling in (word, word.title(), word.upper())},
}
_BASES: Final = {"0x": 16, "0o": 8, "0b": 2}
_FIRST_OF_NUMBER: Final = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]++|0[oO][0-7]++|0[bB][01]++|[0-9]++)")
_DECIMAL = re.compile(
    r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class YamlError(Exception):
    """What is wrong, and where; its traceback has events as variables, and is dropped."""

    def __init__(self, what: str, mark: Any = None, hint: str = "") -> None:
        self.what = what
        self.hint = hint
        self.mark = mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        super().__init__(f"{what}{where}{hint}")


def parse_yaml(content: Secret[bytes], file: str) -> Value:
    """Parse one YAML document; None if the file is empty.

    Raises:
        ConfigError: It is not YAML, or has what the module's docstring excludes; names the file and the position, and
            quotes nothing.
    """
    try:
        return next(iter(parse_events(decode_text(content), _compose)), None)
    except YamlError as exc:
        problem = str(exc)
    # Not in the handler: a traceback would show the variables of the other error, which is its context there.
    raise ConfigError(problem, file=file)


def decode_text(content: Secret[bytes]) -> Secret[str]:
    """Decode UTF-8, or UTF-16 with a byte order mark, which PowerShell writes."""
    is_utf_16 = content.reveal().startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if is_utf_16 else "utf-8-sig"
    try:
        return Secret(content.reveal().decode(encoding))
    except UnicodeDecodeError as exc:
        line = content.reveal().count(b"\n", 0, exc.start) + 1
    raise YamlError(f"is not {encoding.removesuffix('-sig').upper()} text (line {line}): save it in UTF-8")


def parse_events(text: Secret[str], compose: Callable[[Callable[[], Any]], R]) -> R:
    """Parse a stream, and return what ``compose`` makes of its events; it gets the function for the next one.

    Raises:
        YamlError: It is not YAML.
    """
    if sum(text.reveal().count(f"{end}%") for end in "\n\r\x85\u2028\u2029") > MAX_DIRECTIVES:
        raise YamlError(f"has more than {MAX_DIRECTIVES} lines that begin with %: remove them, they are not needed")
    try:
        loader = _LOADER(text.reveal())
        try:
            return compose(loader.get_event)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as exc:
        what = ", ".join(_without_quotation(part) for part in (exc.context, exc.problem) if part)
        raise YamlError(f"is not YAML: {what}", exc.problem_mark, f"; {_QUOTE}") from None
    except (yaml.YAMLError, ValueError, OverflowError, LookupError) as exc:
        # What PyYAML raises for unprintable characters, and for code points that do not exist.
        found = _UNPRINTABLE.search(text.reveal())
        if isinstance(exc, yaml.YAMLError) and found:
            line = text.reveal().count("\n", 0, found.start()) + 1
            raise YamlError(f"contains a control character (line {line}): remove it") from None
        raise YamlError(f"is not valid YAML; {_QUOTE}") from None


def _without_quotation(problem: str) -> str:
    """Cut what PyYAML's loader in Python quotes; that in C quotes nothing, and otherwise says almost the same."""
    problem = problem.partition(", but ")[0]
    return re.sub(r""" (['"]).*\1""", "", problem, flags=re.DOTALL) if problem.startswith("found ") else problem


@final
class _Open:
    """A collection that is not complete yet."""

    __slots__ = ("anchor", "first_node", "items", "key", "keys")

    def __init__(self, anchor: str | None, first_node: int, *, is_mapping: bool) -> None:
        self.anchor = anchor
        self.first_node = first_node
        self.items: list[RawValue] = []
        self.keys: dict[str, RawValue] | None = {} if is_mapping else None
        self.key: str | None = None
        """The key of the value that comes next; None if a key comes next."""

    def add(self, value: RawValue) -> None:
        if self.keys is None:
            self.items.append(value)
        elif self.key is not None:
            self.keys[self.key] = value
            self.key = None

    def complete(self) -> Items | Fields:
        return Items(self.items) if self.keys is None else Fields(self.keys)


def _compose(next_event: Callable[[], Any]) -> Items:
    """Make the values of a stream from the parser's events, without recursion; the list is empty if it is.

    An empty document may follow, as behind a ``---`` at the end of a file.
    """
    next_event()  # the start of the stream
    if isinstance(next_event(), yaml.StreamEndEvent):
        return Items([])
    document = _compose_document(next_event)
    next_event()  # the end of the document
    event = next_event()
    if isinstance(event, yaml.StreamEndEvent):
        return document
    value = next_event()
    if isinstance(value, yaml.ScalarEvent) and _scalar(value) is None:
        next_event()
        if isinstance(next_event(), yaml.StreamEndEvent):
            return document
    raise YamlError("contains a second document: remove it", event.start_mark)


def _compose_document(next_event: Callable[[], Any]) -> Items:
    current = document = _Open(None, 0, is_mapping=False)
    outer: list[_Open] = []
    anchors: dict[str, tuple[RawValue, int]] = {}
    nodes = 0
    while True:
        event = next_event()
        kind = type(event)
        value: RawValue
        if kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            value = current.complete()
            if current.anchor is not None:
                anchors[current.anchor] = value, nodes - current.first_node
            current = outer.pop()
            current.add(value)
        else:
            nodes += 1
            is_key = current.keys is not None and current.key is None
            if kind is yaml.ScalarEvent:
                if is_key:
                    current.key = _key(event, current)
                else:
                    value = _scalar(event)
                    if event.anchor is not None:
                        anchors[event.anchor] = value, 1
                    current.add(value)
            elif is_key:
                raise YamlError("a key must be a string, not a list, a mapping or an alias", event.start_mark)
            elif kind is yaml.AliasEvent:
                value, repeated = _alias(event, anchors)
                nodes += repeated - 1  # as if it were written again
                current.add(value)
            else:
                if len(outer) == MAX_LEVELS:
                    raise YamlError(f"has more than {MAX_LEVELS} levels of lists and mappings", event.start_mark)
                is_mapping = kind is yaml.MappingStartEvent
                _check_tag(event, "map" if is_mapping else "seq")
                outer.append(current)
                current = _Open(event.anchor, nodes - 1, is_mapping=is_mapping)
            if nodes > MAX_NODES:
                what = f"has more than {MAX_NODES:,} keys and values: split it, $KUBECONFIG may list several files"
                raise YamlError(what, event.start_mark)
        if current is document:
            return Items(document.items)


def _alias(event: Any, anchors: Mapping[str, tuple[RawValue, int]]) -> tuple[RawValue, int]:
    if event.anchor not in anchors:
        what = "begins with * but is not an alias of a value before it: put a string that begins with * in quotes"
        raise YamlError(what, event.start_mark)
    return anchors[event.anchor]


def _key(event: Any, mapping: _Open) -> str:
    """Check a key: as what it is read does not matter, since only strings are looked up."""
    text: str = event.value
    if text == "<<" and event.implicit[0]:
        raise YamlError("merge keys (<<) are not supported: write the fields out", event.start_mark)
    if mapping.keys is not None and text in mapping.keys:
        raise YamlError("has a key twice in one mapping: remove one of them", event.start_mark)
    return text


def _scalar(event: Any) -> RawValue:
    text: str = event.value
    is_plain = event.implicit[0]
    if is_plain and not text and event.anchor is not None:
        what = "begins with & and has no value: put a string that begins with & in quotes"
        raise YamlError(what, event.start_mark)
    if is_plain and event.tag is None:
        return resolve_scalar(text)
    if event.tag is None or event.tag in _STRING_TAGS:
        return text
    value = resolve_scalar(text)
    if not isinstance(value, _KINDS_OF_TAGS.get(event.tag, ())):
        raise _tag_problem(event)
    return value


def resolve_scalar(text: str) -> RawValue:
    """Return what a plain scalar without a tag is."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in _FIRST_OF_NUMBER:
        digits = text.replace("_", "")
        if _INTEGER.fullmatch(digits):
            return text if _overflows(digits) else Number(NumberKind.INTEGER, digits)
        if _DECIMAL.fullmatch(digits):
            return text if _overflows(digits) else Number(NumberKind.DECIMAL, digits)
    return text


def _overflows(digits: str) -> bool:
    """Whether a number is too large for Go's integers or, in decimal, for a float64; the time is linear."""
    base = _BASES.get(digits.lstrip("+-")[:2].lower())
    if base is not None:
        lowest, beyond = (-(1 << 63), 1 << 63) if digits[0] in "+-" else (0, 1 << 64)
        return not lowest <= int(digits, base) < beyond
    return not digits[-1].isalpha() and math.isinf(float(digits))  # what ends with a letter is .inf or .nan


def _check_tag(event: Any, expected: str) -> None:
    if event.tag is not None and event.tag not in ("!", f"{_TAG}{expected}"):
        raise _tag_problem(event)


def _tag_problem(event: Any) -> YamlError:
    what = "has a tag (!) that a kubeconfig cannot have: put a string that begins with ! in quotes"
    return YamlError(what, event.start_mark)
