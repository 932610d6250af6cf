"""Makes plain values of YAML, and knows the line and column of each mapping.

PyYAML's parser yields one event at a time, and each event is checked against the limits before its value is made.
Aliases and merge keys work as in kubectl.
Unlike kubectl, it reports duplicate keys, keys that are not strings, and tags that JSON has no type for: YAML parsers
read them differently.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias, cast, final

import attrs
import yaml

from .._secret import Secret
from ._events import YamlError, parse_events, resolve_scalar

Marks: TypeAlias = dict[tuple[int, "str | int"], tuple[int, int]]
"""Where values begin, by the identity of their collection and their key or index: lines and columns, from 1."""

MAX_LEVELS: Final = 120
"""Mappings and lists inside each other; objects of the API have at most 128."""
MAX_NODES: Final = 4_000_000
"""The number of keys, scalars and collections in one file.  The content of an alias counts each time it is used."""
MAX_EXPANDED: Final = 1 << 26
"""The number of characters in all scalars of one file.  The content of an alias counts each time it is used."""
MAX_PROBLEMS: Final = 100
"""The number of problems in one file after which parsing stops."""

_MERGE: Final = "<<"
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_TAG: Final = "tag:yaml.org,2002:"
_TYPES_OF_TAGS: Final[dict[str, tuple[type, ...]]] = {
    f"{_TAG}null": (type(None),),
    f"{_TAG}bool": (bool,),
    f"{_TAG}int": (int, float),
    f"{_TAG}float": (int, float),
}
_STRING_TAGS: Final = ("!", f"{_TAG}str")
_ALIAS: Final = "begins with * but is not an alias of a value before it: put a string that begins with * in quotes"
_COMPLEX: Final = "a key must be a string, not a list, a mapping or an alias"
_FLOW: Final = f"{_COMPLEX}; render a template with {{{{ … }}}} first, as by `helm template`"
_HALF: Final = re.compile("[\ud800-\udfff]")


@final
class Mapping(dict[str, Any]):
    """A mapping that knows where it begins."""

    __slots__ = ("column", "line")
    line: int
    column: int


@final
@attrs.frozen
class Document:
    """One document of a file."""

    value: Any
    """Mappings are :class:`Mapping`; None for an empty document."""
    line: int
    """Where its value begins, from 1."""
    column: int
    """Where its value begins, from 1."""


@final
@attrs.frozen
class Problem:
    """What is wrong with a text, and where.  The message quotes none of the text, which may contain secrets."""

    message: str
    line: int | None = None
    """From 1."""
    column: int | None = None
    """From 1."""


@final
@attrs.frozen
class Composed:
    """What a text contains."""

    documents: list[Document]
    """Up to the first place that is not YAML, or that exceeds a limit."""
    problems: list[Problem]
    """What is wrong with values, in their order."""
    error: YamlError | None
    """Why the rest is not YAML; None if everything is."""


class _TooMuchError(Exception):
    """Ends the parsing of a text that exceeds a limit."""


def compose(text: Secret[str], marks: Marks | None = None) -> Composed:
    """Make the documents of a text; raises nothing, so that no traceback has a value of it.

    Args:
        text: YAML.
        marks: Is filled with where values begin.
    """
    composer = _Composer(marks)
    error: YamlError | None = None
    try:
        parse_events(text, composer.run)
    except _TooMuchError:
        pass  # it is in the problems
    except YamlError as exc:
        error = exc.with_traceback(None)
    return Composed(composer.documents, composer.problems, error)


@final
class _Open:
    """A collection that is not complete yet."""

    __slots__ = ("anchor", "first_node", "first_size", "has_twice", "is_merging", "key", "merged", "value")

    def __init__(self, value: Any, anchor: str | None, first_node: int, first_size: int) -> None:
        self.value = value
        self.anchor = anchor
        self.first_node = first_node
        self.first_size = first_size
        self.key: str | None = None
        """The key of the value that comes next; None if a key comes next."""
        self.merged: list[Mapping] = []
        """What merge keys add, the first one first."""
        self.is_merging = False
        """Whether the key is a merge key."""
        self.has_twice = False
        """Whether a key that it has twice is reported; two objects without a line between them have several."""


@final
class _Composer:
    """Makes the documents of a stream from the parser's events, without recursion."""

    def __init__(self, marks: Marks | None) -> None:
        self.documents: list[Document] = []
        self.problems: list[Problem] = []
        self._marks = marks
        self._nodes = 0
        self._size = 0

    def run(self, next_event: Callable[[], Any]) -> None:
        next_event()  # the start of the stream
        while type(next_event()) is not yaml.StreamEndEvent:  # otherwise the start of a document
            self.documents.append(self._document(next_event))
            next_event()  # the end of the document

    def _document(self, next_event: Callable[[], Any]) -> Document:
        whole = current = _Open([], None, 0, 0)
        outer: list[_Open] = []
        anchors: dict[str, tuple[Any, int, int]] = {}
        start: Any = None
        while True:
            event = next_event()
            kind = type(event)
            if start is None:
                start = event.start_mark
            if kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                value = self._completed(current)
                if current.anchor is not None:
                    anchors[current.anchor] = value, self._nodes - current.first_node, self._size - current.first_size
                current = outer.pop()
                self._add(current, value, None)
            else:
                self._nodes += 1
                is_key = type(current.value) is Mapping and current.key is None
                if kind is yaml.ScalarEvent:
                    self._size += len(event.value)
                    if is_key:
                        current.key = self._key(event, current)
                    else:
                        value = self._scalar(event)
                        if event.anchor is not None:
                            anchors[event.anchor] = value, 1, len(event.value)
                        self._add(current, value, event)
                elif is_key:
                    self._refuse(_FLOW if getattr(event, "flow_style", False) else _COMPLEX, event)
                elif kind is yaml.AliasEvent:
                    if event.anchor not in anchors:
                        self._refuse(_ALIAS, event)
                    value, nodes, size = anchors[event.anchor]
                    self._nodes += nodes - 1  # as if it were written again
                    self._size += size
                    self._add(current, value, event)
                else:
                    if len(outer) == MAX_LEVELS:
                        self._refuse(f"has more than {MAX_LEVELS} levels of lists and mappings", event)
                    outer.append(current)
                    self._mark(current, event)
                    current = _Open(self._collection(event), event.anchor, self._nodes - 1, self._size)
                if self._nodes > MAX_NODES:
                    self._refuse(f"has more than {MAX_NODES:,} keys and values: split the file", event)
                if self._size > MAX_EXPANDED:
                    self._refuse(f"has more than {MAX_EXPANDED:,} characters with its aliases: split the file", event)
            if current is whole:
                return Document(whole.value[0], start.line + 1, start.column + 1)

    def _collection(self, event: Any) -> Any:
        is_mapping = event.__class__ is yaml.MappingStartEvent  # type() would narrow it for pyright, to PyYAML's stubs
        if event.tag not in (None, "!", f"{_TAG}map" if is_mapping else f"{_TAG}seq"):
            self._report_tag(event)
        if not is_mapping:
            return []
        made, mark = Mapping(), event.start_mark
        made.line, made.column = mark.line + 1, mark.column + 1
        return made

    def _add(self, current: _Open, value: Any, event: Any) -> None:
        if event is not None:
            self._mark(current, event)
        if type(current.value) is list:
            current.value.append(value)
            return
        key, current.key = cast("str", current.key), None
        if current.is_merging:
            current.is_merging = False
            current.merged += self._merged(value, event)
        else:
            current.value.setdefault(key, value)  # the first one, if there are two

    def _mark(self, current: _Open, event: Any) -> None:
        if self._marks is not None:
            key = current.key if type(current.value) is Mapping else len(current.value)
            if key is not None:
                self._marks[id(current.value), key] = event.start_mark.line + 1, event.start_mark.column + 1

    def _completed(self, current: _Open) -> Any:
        value = current.value
        for merged in current.merged:
            for key in merged:
                value.setdefault(key, merged[key])
        return value

    def _merged(self, value: Any, event: Any) -> list[Mapping]:
        found = value if type(value) is list else [value]
        if all(type(one) is Mapping for one in found):
            return found
        self._report("the value of a merge key (<<) must be a mapping, or a list of mappings", event)
        return []

    def _key(self, event: Any, current: _Open) -> str:
        text: str = event.value
        if event.implicit[0] and event.tag is None:
            if text == _MERGE:
                current.is_merging = True
                return text
            # What a number is written like is the key, unless programs write it in several ways.
            if not isinstance(resolve_scalar(text), str) and not _INTEGER.fullmatch(text):
                self._report("has a key that is not a string but a number, a boolean or null: put it in quotes", event)
        if text in current.value and not current.has_twice:
            current.has_twice = True
            mend = "put a line --- between two objects" if text in ("apiVersion", "kind") else "remove one of them"
            self._report(f"has a key twice in one mapping: {mend}", event)
        return text

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        is_plain = event.implicit[0]
        if not text.isascii() and _HALF.search(text):
            self._report("contains half of a character, a lone surrogate: write the whole character", event)
        if is_plain and not text and event.anchor is not None:
            self._report("begins with & and has no value: put a string that begins with & in quotes", event)
        tag = event.tag
        if tag in _STRING_TAGS or (tag is None and not is_plain):
            return text
        value = resolve_scalar(text)
        if tag is not None and type(value) not in _TYPES_OF_TAGS.get(tag, ()):
            self._report_tag(event)
        if type(value) is float and not math.isfinite(value):
            self._report("contains an infinite number or .nan, which JSON does not have", event)
        return value

    def _report_tag(self, event: Any) -> None:
        self._report("has a tag (!) that JSON has no type for: put a string that begins with ! in quotes", event)

    def _report(self, message: str, event: Any) -> None:
        mark = event.start_mark if event is not None else None
        line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
        self.problems.append(Problem(message, line, column))
        if len(self.problems) >= MAX_PROBLEMS:
            raise _TooMuchError

    def _refuse(self, message: str, event: Any) -> NoReturn:
        self._report(message, event)
        raise _TooMuchError
