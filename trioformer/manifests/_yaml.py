"""Parse manifests, which are YAML documents or a sequence of JSON documents."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any, Final, NoReturn, TypeAlias, final

import attrs

from .._secret import Secret
from .._text import one_line
from .._yaml import MAX_LEVELS, Document, Marks, YamlError, compose, decode_text
from ..errors._internal import ManifestProblem

Path: TypeAlias = tuple[str | int, ...]

_SURROGATE: Final = "\\ud"
_JSON_START: Final = re.compile(r"\s*[{\[]")


@final
@attrs.frozen
class Parsed:
    """The parsed content of a file or string."""

    documents: tuple[Document, ...]
    """The documents before the first syntax error."""
    problems: tuple[ManifestProblem, ...]
    """The problems that were found."""


def parse_documents(content: Secret[bytes], file: str | None) -> Parsed:
    """Parse YAML or JSON with any number of documents."""
    try:
        text = decode_text(content)
    except YamlError as exc:
        return Parsed((), (ManifestProblem(exc.what, file),))
    is_json = _JSON_START.match(text.reveal()) is not None
    # PyYAML's Python loader accepts the surrogates of JSON as characters.
    if is_json and _SURROGATE in text.reveal() and (parsed := _json_documents(text, file)) is not None:
        return parsed
    found = compose(text)
    problems = [ManifestProblem(each.message, file, each.line, each.column) for each in found.problems]
    if found.error is not None:
        # JSON is YAML but for surrogates, long keys, and several documents without a separator.
        if is_json and (parsed := _json_documents(text, file)) is not None:
            return parsed
        problems.append(_syntax_problem(found.error, text, file))
    return Parsed(tuple(found.documents), tuple(problems))


def position_of(content: Secret[bytes], document: int, path: Path) -> tuple[int, int] | None:
    """Return the line and column of a value, both counted from 1, or None if they are not known.

    Args:
        content: The YAML or JSON content.
        document: The index of the document in :attr:`Parsed.documents`.
        path: The keys and indexes that lead to the value.
    """
    marks: Marks = {}
    try:
        composed = compose(decode_text(content), marks)
    except YamlError:
        return None
    if composed.error is not None or document >= len(composed.documents):
        return None
    value, found = composed.documents[document].value, None
    for step in path:
        found = marks.get((id(value), step), found)
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            break
    return found


def _syntax_problem(error: YamlError, text: Secret[str], file: str | None) -> ManifestProblem:
    mark = error.mark
    if mark is None:
        return ManifestProblem(error.what, file)
    what = f"{error.what}{error.hint}"
    # libyaml's marks count line ends as str.splitlines() does not.
    lines = text.reveal().split("\n", mark.line + 1)
    before = lines[mark.line][: mark.column + 1] if mark.line < len(lines) else ""
    if "\t" in before and not before.strip():
        what = "is not YAML: the indentation contains a tab; use spaces"
    elif any("{{" in line and "}}" in line for line in lines[max(0, mark.line - 1) : mark.line + 1]):
        what = "is not YAML: it looks like a template; render it first, for example with `helm template`"
    return ManifestProblem(what, file, mark.line + 1, mark.column + 1)


class _DuplicateKeyError(ValueError):
    """An error for a JSON object that has the same key twice."""


def _json_documents(text: Secret[str], file: str | None) -> Parsed | None:
    """Parse a sequence of JSON documents; return None if the text is not JSON."""
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
        raise _DuplicateKeyError(f"has the key {one_line(twice, longest=80)!r} twice in one object; remove one of them")
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
