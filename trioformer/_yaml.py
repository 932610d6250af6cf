"""Parse the YAML of kubeconfigs and manifests without recursion, and with the same results as kubectl.

PyYAML's composer and constructor are recursive, so a few kilobytes of brackets can crash the interpreter. They also
accept duplicate keys, and quote values in errors.
Only PyYAML's parser is used.  The parser emits one event at a time, and each event is checked against the limits
before its value is created.

Scalars, aliases and merge keys have the same meaning as in kubectl (``sigs.k8s.io/yaml``). For example, ``yes`` is a
boolean and ``0x1F`` is an integer. Dates, sexagesimal numbers such as ``60:00``, and numbers that do not fit into Go's
types are strings.
Unlike kubectl, this module reports duplicate keys, keys that are not strings, and tags that have no corresponding JSON
type, because YAML parsers treat these differently.

This module is imported when the first file is read, because PyYAML takes a fifth of the library's import time.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias, cast, final

import attrs
import yaml

from ._secret import Secret

Scalar: TypeAlias = "str | bool | int | float | None"
Marks: TypeAlias = dict[tuple[int, "str | int"], tuple[int, int]]
"""The line and column, counted from 1, where each value begins, by the identity of its collection and its key or
index."""

MAX_LEVELS: Final = 120
"""The maximum number of nested mappings and lists. Objects of the API have at most 128 levels."""
MAX_SIZE: Final = 64_000_000
"""The maximum number of characters in all scalars of one file. Each scalar, list and mapping counts as 16 more
characters.

The content of an alias counts each time it is used."""
MAX_PROBLEMS: Final = 100
"""The number of problems in one file after which parsing stops."""

_NODE: Final = 16
_MERGE: Final = "<<"
_PLAIN_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
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
_FLOW: Final = f"{_COMPLEX}; render a template with {{{{ … }}}} first, for example with `helm template`"
_HALF: Final = re.compile("[\ud800-\udfff]")


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_QUOTE = "put a value with special characters in quotes"
_CONSTANTS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **{spelling: True for word in ("true", "yes", "on", "y") for spelling in (word, word.title(), word.upper())},
    **{spelling: False for word in ("false", "no", "off", "n") for spelling in (word, word.title(), word.upper())},
}
_BASES: Final = {"0x": 16, "0o": 8, "0b": 2}
_OCTAL: Final = frozenset("01234567")
_FIRST_OF_NUMBER: Final = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]++|0[oO][0-7]++|0[bB][01]++|[0-9]++)")
_DECIMAL = re.compile(
    r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class YamlError(Exception):
    """A problem and its position. The text does not quote the file."""

    def __init__(self, what: str, mark: Any = None, hint: str = "") -> None:
        self.what = what
        self.hint = hint
        self.mark = mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        super().__init__(f"{what}{where}{hint}")


@final
class Mapping(dict[str, Any]):
    """A mapping with its position."""

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
    """The position where the value begins, counted from 1."""
    column: int
    """The position where the value begins, counted from 1."""


@final
@attrs.frozen
class Problem:
    """A problem with a YAML text, and its position.  The message does not quote the text, which may contain secrets."""

    message: str
    line: int | None = None
    """Counted from 1."""
    column: int | None = None
    """Counted from 1."""


@final
@attrs.frozen
class Composed:
    """The documents and problems of a YAML text."""

    documents: list[Document]
    """The documents up to the first place that is not YAML or that exceeds a limit."""
    problems: list[Problem]
    """The problems with values, in order."""
    error: YamlError | None
    """The reason why the rest of the text is not YAML, or None if the whole text is YAML."""


def decode_text(content: Secret[bytes]) -> Secret[str]:
    """Decode UTF-8, or UTF-16 with a byte order mark, which PowerShell produces."""
    is_utf_16 = content.reveal().startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if is_utf_16 else "utf-8-sig"
    try:
        return Secret(content.reveal().decode(encoding))
    except UnicodeDecodeError as exc:
        line = content.reveal().count(b"\n", 0, exc.start) + 1
    raise YamlError(f"is not {encoding.removesuffix('-sig').upper()} text (line {line}): save it as UTF-8")


class _TooMuchError(Exception):
    """Parsing stopped because the text exceeds a limit."""


def compose(text: Secret[str], marks: Marks | None = None) -> Composed:
    """Parse the documents in a text, and fill ``marks``.

    This function never raises an exception, so no traceback contains a value of the text.
    """
    composer = _Composer(marks)
    return Composed(composer.documents, composer.problems, _compose(text, composer))


def _compose(text: Secret[str], composer: _Composer) -> YamlError | None:
    """Compose the documents. If the text is not YAML, return the reason."""
    try:
        loader = _LOADER(text.reveal())
        try:
            composer.run(loader.get_event)
        finally:
            loader.dispose()
    except _TooMuchError:
        return None  # it is in the problems
    except yaml.MarkedYAMLError as exc:
        what = ", ".join(_without_quotation(part) for part in (exc.context, exc.problem) if part)
        return YamlError(f"is not YAML: {what}", exc.problem_mark, f"; {_QUOTE}")
    except (yaml.YAMLError, ValueError, OverflowError, LookupError) as exc:
        # PyYAML raises this for unprintable characters and invalid code points.
        found = _UNPRINTABLE.search(text.reveal())
        if isinstance(exc, yaml.YAMLError) and found:
            line = text.reveal().count("\n", 0, found.start()) + 1
            return YamlError(f"contains a control character (line {line}): remove it")
        return YamlError(f"is not valid YAML; {_QUOTE}")
    return None


@final
class _Open:
    """A mapping or a sequence that is not complete yet."""

    __slots__ = ("anchor", "begin", "has_twice", "is_merging", "key", "merged", "value")

    def __init__(self, value: Any, anchor: str | None, begin: int) -> None:
        self.value = value
        self.anchor = anchor
        self.begin = begin
        """The total size of everything before this collection."""
        self.key: str | None = None
        """The key of the value that comes next, or None if a key comes next."""
        self.merged: list[Mapping] = []
        """The mappings of merge keys, in order."""
        self.is_merging = False
        """Whether the key is a merge key."""
        self.has_twice = False
        """Whether a duplicate key has been reported. Two objects without a separator line between them have several
        duplicate keys."""


@final
class _Composer:
    """A composer that builds the documents of a stream from the parser's events, without recursion."""

    def __init__(self, marks: Marks | None) -> None:
        self.documents: list[Document] = []
        self.problems: list[Problem] = []
        self._marks = marks
        self._size = 0

    def run(self, next_event: Callable[[], Any]) -> None:
        next_event()  # the start of the stream
        while type(next_event()) is not yaml.StreamEndEvent:  # otherwise the start of a document
            self.documents.append(self._document(next_event))
            next_event()  # the end of the document

    def _document(self, next_event: Callable[[], Any]) -> Document:
        whole = current = _Open([], None, 0)
        outer: list[_Open] = []
        anchors: dict[str, tuple[Any, int]] = {}
        start: Any = None
        while True:
            event = next_event()
            kind = type(event)
            if start is None:
                start = event.start_mark
            if kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                value = self._completed(current)
                if current.anchor is not None:
                    anchors[current.anchor] = value, self._size - current.begin
                current = outer.pop()
                self._add(current, value, None)
            else:
                begin = self._size
                self._size += _NODE
                is_key = type(current.value) is Mapping and current.key is None
                if kind is yaml.ScalarEvent:
                    self._size += len(event.value)
                    if is_key:
                        current.key = self._key(event, current)
                    else:
                        value = self._scalar(event)
                        if event.anchor is not None:
                            anchors[event.anchor] = value, self._size - begin
                        self._add(current, value, event)
                elif is_key:
                    self._refuse(_FLOW if getattr(event, "flow_style", False) else _COMPLEX, event)
                elif kind is yaml.AliasEvent:
                    if event.anchor not in anchors:
                        self._refuse(_ALIAS, event)
                    value, size = anchors[event.anchor]
                    self._size = begin + size  # as if it were written again
                    self._add(current, value, event)
                else:
                    if len(outer) == MAX_LEVELS:
                        self._refuse(f"has more than {MAX_LEVELS} levels of lists and mappings", event)
                    outer.append(current)
                    self._mark(current, event)
                    current = _Open(self._collection(event), event.anchor, begin)
                if self._size > MAX_SIZE:
                    self._refuse("has too many values, with those that aliases repeat: split the file", event)
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
            # A number's text is the key, unless programs write it in several ways.
            if not isinstance(resolve_scalar(text), str) and not _PLAIN_INTEGER.fullmatch(text):
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


def _without_quotation(problem: str) -> str:
    """Remove the quotes of the text from an error of PyYAML's pure-Python loader. The C loader quotes nothing."""
    problem = problem.partition(", but ")[0]
    return re.sub(r""" (['"]).*\1""", "", problem, flags=re.DOTALL) if problem.startswith("found ") else problem


def resolve_scalar(text: str) -> Scalar:
    """Return the value of a plain scalar without a tag. A float may be infinite or NaN, which JSON cannot represent."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in _FIRST_OF_NUMBER:
        digits = text.replace("_", "")
        if _INTEGER.fullmatch(digits):
            return text if _overflows(digits) else _integer(digits.lower())
        if _DECIMAL.fullmatch(digits):
            return text if _overflows(digits) else float(digits.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def _overflows(digits: str) -> bool:
    """Return whether a number is too large for Go's integers or, in decimal notation, for a float64.

    The check takes linear time.
    """
    base = _BASES.get(digits.lstrip("+-")[:2].lower())
    if base is not None:
        lowest, beyond = (-(1 << 63), 1 << 63) if digits[0] in "+-" else (0, 1 << 64)
        return not lowest <= int(digits, base) < beyond
    return not digits[-1].isalpha() and math.isinf(float(digits))  # what ends with a letter is .inf or .nan


def _integer(digits: str) -> int | float:
    """Convert digits to a number as kubectl does.

    ``017`` is octal, and an integer of more than 64 bits becomes a float64.
    """
    sign, unsigned = ("-", digits[1:]) if digits[0] == "-" else ("", digits.lstrip("+"))
    base = _BASES.get(unsigned[:2])
    if base is None:
        unsigned = unsigned.lstrip("0") or "0"
        base = 8 if unsigned != digits.lstrip("+-") and set(unsigned) <= _OCTAL else 10
    value = int(f"{sign}{unsigned}", base)
    if -(1 << 63) <= value < 1 << 64:
        return value
    return float(f"{sign}{unsigned}")  # an octal number that overflows is a decimal one
