"""Whether bytes have the grammar of JSON, read in pieces and without recursion.

An object of a wrong type, of too many levels, or with half of a surrogate cannot be decoded, but its end is known.
Where a quote or a bracket is missing, nothing says where the object ends, nor whether others are inside it.
The decoder does not tell these apart, and stops at a level that depends on the interpreter.

Neither the meaning of a number or an escape nor the encoding of a string is checked.
"""

from __future__ import annotations

import re
from typing import Final, final

import attrs

MAX_LEVELS: Final = 200_000
"""Levels of an object that is read to its end: twenty times those that kube-apiserver stores."""
GRAMMAR_SLICE: Final = 16 * 1024
"""Bytes to feed at a time: some 15 ms of work if all of them are brackets."""
_MAX_SCALAR: Final = 64 * 1024
"""Bytes of a number."""

_SPACE: Final = r"[ \t\r\n]*+"
_CHARACTERS: Final = r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+'
_STRING: Final = f'"{_CHARACTERS}"'
_SCALAR: Final = r"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+|true|false|null)"
_VALUE: Final = f"(?:{_STRING}|{_SCALAR})"


def _compile(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())


_TOKEN: Final = _compile(_SPACE + r'([{}\[\],:"]|[-+.0-9A-Za-z]++|\Z)')
_COMPLETE_SCALAR: Final = _compile(_SCALAR)
_REST_OF_STRING: Final = _compile(_CHARACTERS)
_PART_OF_ESCAPE: Final = _compile(r"\\(?:u[0-9A-Fa-f]{0,3})?")
# Members and elements without brackets, each with the comma behind it: only brackets take Python code.
_MEMBERS: Final = _compile(f"(?:{_SPACE}{_STRING}{_SPACE}:{_SPACE}{_VALUE}{_SPACE},)*+")
_ELEMENTS: Final = _compile(f"(?:{_SPACE}{_VALUE}{_SPACE},)*+")

_MARKS: Final = frozenset((b"{", b"}", b"[", b"]", b",", b":", b'"'))

# What may come next.
_ANY: Final = 0
_ANY_OR_END: Final = 1
_KEY: Final = 2
_KEY_OR_END: Final = 3
_COLON: Final = 4
_END: Final = 5


@final
@attrs.define(eq=False)
class Grammar:
    """Checks one JSON value that arrives in pieces."""

    _closers: bytearray = attrs.field(factory=bytearray, init=False, repr=False)  # of the open objects and arrays
    _next: int = attrs.field(default=_ANY, init=False)
    _is_in_string: bool = attrs.field(default=False, init=False)
    _rest: bytes = attrs.field(default=b"", init=False, repr=False)  # a number or an escape that may go on
    _is_broken: bool = attrs.field(default=False, init=False)

    def feed(self, data: bytes) -> bool:
        """Add the next bytes; False if these are no beginning of a JSON value, or have too many levels."""
        data = self._rest + data
        position = -1 if self._is_broken else self._read(data)
        self._rest = b"" if position < 0 else data[position:]
        self._is_broken = position < 0 or len(self._rest) > _MAX_SCALAR
        return not self._is_broken

    def end(self) -> bool:
        """Whether the bytes are one JSON value."""
        return self.feed(b" ") and self._next == _END and not self._closers and not self._is_in_string

    def _read(self, data: bytes) -> int:
        """Read up to the end, or to a token that may go on; return the position, -1 if it is not JSON."""
        position = 0
        while position >= 0:
            if self._is_in_string:
                found = _REST_OF_STRING.match(data, position)
                assert found is not None  # the empty text matches
                position = found.end()
                if data[position : position + 1] != b'"':
                    is_cut = position == len(data) or _PART_OF_ESCAPE.fullmatch(data, position)
                    return position if is_cut else -1
                position += 1
                self._is_in_string = False
                self._next = _COLON if self._next in (_KEY, _KEY_OR_END) else _END
                continue
            if self._next <= _KEY_OR_END:
                position = self._skip(data, position)
            token = _TOKEN.match(data, position)
            if token is None:
                return -1
            position = token.end()
            mark = token[1]
            if not mark:
                return position
            if mark not in _MARKS:
                if position == len(data):
                    return token.start(1)
                if self._next > _ANY_OR_END or not _COMPLETE_SCALAR.fullmatch(mark):
                    return -1
                self._next = _END
            elif not self._take(mark):
                return -1
        return position

    def _skip(self, data: bytes, position: int) -> int:
        """Skip members or elements without brackets."""
        is_key = self._next in (_KEY, _KEY_OR_END)
        if not is_key and not self._closers.endswith(b"]"):
            return position  # the value of a member
        found = (_MEMBERS if is_key else _ELEMENTS).match(data, position)
        if found is None or found.end() == position:
            return position
        self._next = _KEY if is_key else _ANY
        return found.end()

    def _take(self, mark: bytes) -> bool:
        """Take a bracket or another mark; False if it must not be here."""
        closers, before = self._closers, self._next
        if mark == b'"':
            self._is_in_string = True
            return before <= _KEY_OR_END
        if mark == b":":
            self._next = _ANY
            return before == _COLON
        if mark == b",":
            self._next = _KEY if closers.endswith(b"}") else _ANY
            return before == _END and bool(closers)
        if mark in (b"{", b"["):
            closers += b"}" if mark == b"{" else b"]"
            self._next = _KEY_OR_END if mark == b"{" else _ANY_OR_END
            return before <= _ANY_OR_END and len(closers) <= MAX_LEVELS
        is_right = closers.endswith(mark) and before in (_END, _KEY_OR_END if mark == b"}" else _ANY_OR_END)
        del closers[-1:]
        self._next = _END
        return is_right
