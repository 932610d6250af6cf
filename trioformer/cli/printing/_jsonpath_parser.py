"""Reads a template of kubectl's JSONPath (client-go ``util/jsonpath/parser.go``)."""

from __future__ import annotations

import re
from typing import Final, final

import attrs

__all__ = ["ArrayNode", "Block", "FilterNode", "JSONPathError", "Node", "TextNode", "UnionNode", "ValueNode", "parse"]


@final
class JSONPathError(Exception):
    """A template is not valid, or does not fit the object."""


@final
@attrs.frozen
class TextNode:
    """Text that stands for itself."""

    text: str


@final
@attrs.frozen
class ValueNode:
    """A field (``field``), ``identifier``, ``wildcard``, ``recursive`` or a literal (``value``)."""

    what: str
    value: object = None


@final
@attrs.frozen
class ArrayNode:
    """An index or a slice: beginning, end and step, each with whether it is known; the end may follow from an index."""

    begin: int | None
    end: int | None
    step: int | None
    is_index: bool
    """Whether it is an index: its end is the beginning plus one."""


@final
@attrs.frozen
class Block:
    """What stands between braces, a step after the other."""

    nodes: tuple[Node, ...]


@final
@attrs.frozen
class FilterNode:
    """A filter of a list."""

    left: Block
    right: Block
    operator: str


@final
@attrs.frozen
class UnionNode:
    """Several steps, whose results are put together."""

    blocks: tuple[Block, ...]


Node = TextNode | ValueNode | ArrayNode | Block | FilterNode | UnionNode

_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+?)")
_NUMBER: Final = re.compile(r"[+-]?[\d.]*")
_ENDS: Final = " \t\r\n.,[]$@{}"
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL)
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}


def parse(text: str) -> tuple[Node, ...]:
    """Read a template.

    Raises:
        JSONPathError: It is not valid.
    """
    nodes: list[Node] = []
    position = 0
    while position < len(text):
        brace = text.find("{", position)
        if brace < 0:
            nodes.append(TextNode(text[position:]))
            break
        if brace > position:
            nodes.append(TextNode(text[position:brace]))
        reader = _Reader(text, brace + 1)
        nodes.append(Block(tuple(reader.block())))
        position = reader.position
    return tuple(nodes)


def _parse_action(text: str) -> Block:
    first = parse(f"{{{text}}}")[0]
    assert isinstance(first, Block)
    return first


@final
@attrs.define(eq=False)
class _Reader:
    """Reads what is between two braces."""

    _text: str
    position: int

    def block(self) -> list[Node]:
        """Read until the closing brace."""
        nodes: list[Node] = []
        while True:
            rest = self._text[self.position :]
            if rest.startswith("}"):
                self.position += 1
                return nodes
            if rest.startswith("[?("):
                self._filter(nodes)
            elif rest.startswith(".."):
                self._recursive(nodes)
            elif not rest or rest[0] in "\r\n":
                raise JSONPathError("unclosed action")
            else:
                self._step(rest[0], nodes)

    def _step(self, character: str, nodes: list[Node]) -> None:
        if character in " @$":
            self.position += 1
        elif character == "[":
            self._array(nodes)
        elif character in "\"'":
            self._quote(character, nodes)
        elif character == ".":
            self.position += 1
            self._field(nodes)
        elif character in "+-" or character.isdigit():
            self._number(nodes)
        elif character == "_" or character.isalnum():
            self._identifier(nodes)
        else:
            raise JSONPathError(f"unrecognized character in action: U+{ord(character):04X} '{character}'")

    def _word(self) -> str:
        begin = self.position
        while self.position < len(self._text) and self._text[self.position] not in _ENDS:
            self.position += 1
        return self._text[begin : self.position]

    def _identifier(self, nodes: list[Node]) -> None:
        word = self._word()
        if word in ("true", "false"):
            nodes.append(ValueNode("value", word == "true"))
        else:
            nodes.append(ValueNode("identifier", word))

    def _recursive(self, nodes: list[Node]) -> None:
        if nodes and nodes[-1] == ValueNode("recursive"):
            raise JSONPathError("invalid multiple recursive descent")
        self.position += 2
        nodes.append(ValueNode("recursive"))
        following = self._text[self.position : self.position + 1]
        if following == "_" or following.isalnum():
            self._field(nodes)

    def _field(self, nodes: list[Node]) -> None:
        begin = self.position
        while self.position < len(self._text) and self._text[self.position] not in _ENDS:
            self.position += 2 if self._text[self.position] == "\\" else 1
        name = self._text[begin : self.position]
        nodes.append(ValueNode("wildcard") if name == "*" else ValueNode("field", name.replace("\\", "")))

    def _number(self, nodes: list[Node]) -> None:
        found = _NUMBER.match(self._text, self.position)
        assert found is not None
        self.position = found.end()
        try:
            nodes.append(ValueNode("value", int(found[0])))
        except ValueError:
            try:
                nodes.append(ValueNode("value", float(found[0])))
            except ValueError:
                raise JSONPathError(f"cannot parse number {found[0]}") from None

    def _quote(self, quote: str, nodes: list[Node]) -> None:
        end = self.position + 1
        while True:
            if end >= len(self._text) or self._text[end] == "\n":
                raise JSONPathError("unterminated quoted string")
            if self._text[end] == quote and self._text[end - 1] != "\\":
                break
            end += 1
        inner = self._text[self.position + 1 : end]
        self.position = end + 1
        nodes.append(TextNode(_unquoted(inner, quote)))

    def _array(self, nodes: list[Node]) -> None:
        end = self.position
        while True:
            if end >= len(self._text) or self._text[end] == "\n":
                raise JSONPathError("unterminated array")
            if self._text[end] == "]":
                break
            end += 1
        text = self._text[self.position + 1 : end]
        self.position = end + 1
        if text == "*":
            text = ":"
        parts = text.split(",")
        if len(parts) > 1:
            nodes.append(UnionNode(tuple(_parse_action(f"[{part.strip(' ')}]") for part in parts)))
        elif (key := _KEY.fullmatch(text)) is not None:
            nodes.extend(_parse_action(f".{key[1]}").nodes)
        else:
            nodes.append(_slice(text))

    def _filter(self, nodes: list[Node]) -> None:
        begin = self.position = self.position + 3
        has_begun = has_ended = False
        pair = ""
        while True:
            if self.position >= len(self._text) or self._text[self.position] == "\n":
                raise JSONPathError("unterminated filter")
            character = self._text[self.position]
            self.position += 1
            if character in "\"'":
                if not has_begun:
                    has_begun, pair = True, character
                elif self._text[self.position - 2] != "\\" and character == pair:
                    has_ended = True
            elif character == ")" and has_begun == has_ended:
                break
        if self._text[self.position : self.position + 1] != "]":
            raise JSONPathError("unclosed array expect ]")
        text = self._text[begin : self.position - 1]
        self.position += 1
        found = _COMPARISON.fullmatch(text)
        if found is None:
            nodes.append(FilterNode(_parse_action(text), Block(()), "exists"))
        else:
            nodes.append(FilterNode(_parse_action(found[1]), _parse_action(found[3]), found[2]))


def _slice(text: str) -> ArrayNode:
    found = _SLICE.fullmatch(text)
    if found is None:
        raise JSONPathError(f"invalid array index {text}")
    values: list[int | None] = []
    for part in found.groups():
        digits = (part or "").removeprefix(":")
        try:
            values.append(int(digits) if digits else None)
        except ValueError:  # "-", or thousands of digits
            raise JSONPathError(f"array index {digits} is not a number") from None
    begin, end, step = values
    is_index = found[2] is None
    if is_index:
        end = (begin or 0) + 1
    return ArrayNode(begin, end, step, is_index)


def _unquoted(text: str, quote: str) -> str:
    if "\\" not in text:
        return text

    def character(found: re.Match[str]) -> str:
        for code, base in ((found[1], 16), (found[2], 16), (found[3], 16), (found[4], 8)):
            if code is not None:
                return chr(int(code, base))
        if found[5] == quote:
            return quote
        if found[5] not in _SIMPLE:
            raise JSONPathError(f"unquote string {quote}{text}{quote} error invalid syntax")
        return _SIMPLE[found[5]]

    return _ESCAPE.sub(character, text)
