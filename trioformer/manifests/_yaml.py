"""Makes plain values of YAML and JSON, and knows the line and column of each mapping.

The events of PyYAML's parser come one by one, as for kubeconfigs, so that each limit is checked before anything is made
of what exceeds it.
Scalars are what they are for kubectl (``sigs.k8s.io/yaml``), which supports aliases and merge keys as well.
Unlike there, duplicate keys, tags of other types and keys that are no strings are problems: programs disagree on what
they mean.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast, final

import attrs
import yaml

from .._secret import Secret
from .._text import one_line
from ..errors import ManifestProblem
from ..kubeconfig._internal import CheckError, Number, YamlError, decode_text, parse_events, resolve_scalar

Value: TypeAlias = "Mapping | list[Any] | str | bool | int | float | None"
Path: TypeAlias = tuple[str | int, ...]
R = TypeVar("R")

MAX_LEVELS: Final = 120
"""Mappings and lists inside each other; objects of the API have at most 128."""
MAX_NODES: Final = 4_000_000
"""Keys, values and collections of one file, those that an alias repeats included."""
MAX_EXPANDED: Final = 1 << 26
"""Characters of all scalars of one file, those that an alias repeats included."""
MAX_PROBLEMS: Final = 100
"""Problems of one file that are looked for."""

_MERGE: Final = "<<"
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_TAG: Final = "tag:yaml.org,2002:"
_TYPES_OF_TAGS: Final[dict[str, tuple[type, ...]]] = {
    f"{_TAG}null": (type(None),),
    f"{_TAG}bool": (bool,),
    f"{_TAG}int": (Number,),
    f"{_TAG}float": (Number,),
}
_STRING_TAGS: Final = ("!", f"{_TAG}str")
_ALIAS: Final = "begins with * but is not an alias of a value before it: put a string that begins with * in quotes"
_COMPLEX: Final = "a key must be a string, not a list, a mapping or an alias"
_FLOW: Final = f"{_COMPLEX}; render a template with {{{{ … }}}} first, as by `helm template`"
_HALF: Final = re.compile("[\ud800-\udfff]")
_SURROGATE: Final = "\\ud"
_JSON_START: Final = re.compile(r"\s*[{\[]")


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
class Parsed:
    """What a text contains."""

    documents: tuple[Document, ...]
    """Up to the first place that is not YAML."""
    problems: tuple[ManifestProblem, ...]
    """What is wrong."""


def parse_documents(content: Secret[bytes], file: str | None) -> Parsed:
    """Parse YAML or JSON, as many documents as there are."""
    documents: list[Document] = []
    problems: list[ManifestProblem] = []
    try:
        text = decode_text(content)
    except YamlError as exc:
        return Parsed((), (ManifestProblem(exc.what, file),))
    is_json = _JSON_START.match(text.reveal()) is not None
    # PyYAML's loader in Python takes the surrogates of JSON for characters.
    if is_json and _SURROGATE in text.reveal() and (found := _json_documents(text, file)) is not None:
        return found
    try:
        parse_events(text, lambda events: _Composer(events, file, documents, problems).run())
    except _TooMuchError:
        pass  # it is in the problems
    except YamlError as exc:
        # JSON is YAML but for surrogates, long keys, and several documents without a separator.
        if is_json and (found := _json_documents(text, file)) is not None:
            return found
        problems.append(_syntax_problem(exc, text, file))
    return Parsed(tuple(documents), tuple(problems))


def position_of(content: Secret[bytes], document: int, path: Path) -> tuple[int, int] | None:
    """Return line and column, from 1, of a value; None if that is not known.

    Args:
        content: The text.
        document: The index of the document in :attr:`Parsed.documents`.
        path: The keys and indexes that lead to the value.
    """
    documents: list[Document] = []
    marks: dict[tuple[int, str | int], tuple[int, int]] = {}

    def run(events: Callable[[], Any]) -> None:
        _Composer(events, None, documents, [], marks).run()

    try:
        parse_events(decode_text(content), run)
    except (YamlError, _TooMuchError):
        return None
    value, found = documents[document].value, None
    for step in path:
        found = marks.get((id(value), step), found)
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            break
    return found


class _TooMuchError(Exception):
    """Ends the parsing of a text that exceeds a limit."""


@final
class _Open:
    """A collection that is not complete yet."""

    __slots__ = ("anchor", "first_node", "first_size", "is_merging", "key", "merged", "value")

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


@final
class _Composer:
    """Makes the documents of a stream from the parser's events, without recursion."""

    def __init__(
        self,
        next_event: Callable[[], Any],
        file: str | None,
        documents: list[Document],
        problems: list[ManifestProblem],
        marks: dict[tuple[int, str | int], tuple[int, int]] | None = None,
    ) -> None:
        self._next_event = next_event
        self._file = file
        self._documents = documents
        self._problems = problems
        self._marks = marks
        """Where values begin, by the identity of their collection and their key; kept only when somebody asks."""
        self._nodes = 0
        self._size = 0

    def run(self) -> None:
        next_event = self._next_event
        next_event()  # the start of the stream
        while type(next_event()) is not yaml.StreamEndEvent:  # otherwise the start of a document
            self._documents.append(self._document())
            next_event()  # the end of the document

    def _document(self) -> Document:
        next_event = self._next_event
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
        if text in current.value:
            self._report(f"has the key {one_line(text, longest=80)!r} twice in one mapping: remove one of them", event)
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
        if tag is not None and not isinstance(value, _TYPES_OF_TAGS.get(tag, ())):
            self._report_tag(event)
        if not isinstance(value, Number):
            return value
        try:
            return value.to_json()
        except CheckError as exc:
            self._report(str(exc), event)
            return None

    def _report_tag(self, event: Any) -> None:
        self._report("has a tag (!) that manifests cannot have: put a string that begins with ! in quotes", event)

    def _report(self, message: str, event: Any) -> None:
        mark = event.start_mark if event is not None else None
        line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
        self._problems.append(ManifestProblem(message, self._file, line, column))
        if len(self._problems) >= MAX_PROBLEMS:
            raise _TooMuchError

    def _refuse(self, message: str, event: Any) -> NoReturn:
        self._report(message, event)
        raise _TooMuchError


def _syntax_problem(error: YamlError, text: Secret[str], file: str | None) -> ManifestProblem:
    mark = error.mark
    if mark is None:
        return ManifestProblem(error.what, file)
    what = f"{error.what}{error.hint}"
    # libyaml's marks count line ends as str.splitlines() does not.
    lines = text.reveal().split("\n", mark.line + 1)
    before = lines[mark.line][: mark.column + 1] if mark.line < len(lines) else ""
    if "\t" in before and not before.strip():
        what = "is not YAML: the indentation has a tab: use spaces"
    elif any("{{" in line and "}}" in line for line in lines[max(0, mark.line - 1) : mark.line + 1]):
        what = "is not YAML: it looks like a template: render it first, as by `helm template`"
    return ManifestProblem(what, file, mark.line + 1, mark.column + 1)


class _DuplicateKeyError(ValueError):
    """A JSON object has a key twice."""


def _json_documents(text: Secret[str], file: str | None) -> Parsed | None:
    """Parse JSON texts that follow one another; None if it is not JSON."""
    documents: list[Document] = []
    position, line = 0, 1
    decoder = json.JSONDecoder(object_pairs_hook=_json_object, parse_constant=_refuse_constant)
    while True:
        start = _skip_space(text, position)
        line += text.reveal().count("\n", position, start)
        if start == len(text.reveal()):
            return Parsed(tuple(documents), ())
        column = start - text.reveal().rfind("\n", 0, start)
        try:
            value, position = decoder.raw_decode(text.reveal(), start)
        except _DuplicateKeyError as exc:
            return Parsed(tuple(documents), (ManifestProblem(str(exc), file, line, column),))
        except (ValueError, RecursionError):
            return None
        if _levels_exceed(value):
            what = f"has more than {MAX_LEVELS} levels of lists and mappings"
            return Parsed(tuple(documents), (ManifestProblem(what, file, line, column),))
        documents.append(Document(value, line, column))
        line += text.reveal().count("\n", start, position)


def _skip_space(text: Secret[str], position: int) -> int:
    found = re.compile(r"\s*").match(text.reveal(), position)
    return position if found is None else found.end()


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = sorted(key for key, _ in pairs)
        twice = next(key for key, following in itertools.pairwise(keys) if key == following)
        raise _DuplicateKeyError(f"has the key {one_line(twice, longest=80)!r} twice in one object: remove one of them")
    return made


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError


def _levels_exceed(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_LEVELS):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return any(isinstance(one, dict | list) for one in level)
