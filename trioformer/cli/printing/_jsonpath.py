"""kubectl's JSONPath, which is a template (client-go ``util/jsonpath/jsonpath.go``)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, final

import attrs

from ._go import sprint
from ._json import to_json
from ._jsonpath_parser import ArrayNode, Block, FilterNode, JSONPathError, Node, TextNode, UnionNode, ValueNode, parse

__all__ = ["JSONPath", "JSONPathError"]

_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
}


@final
@attrs.define(eq=False)
class JSONPath:
    r"""A template, ready to be filled in.

    Args:
        text: The template, such as ``{range .items[*]}{.metadata.name}{"\n"}{end}``.
        allow_missing_keys: Whether a field that is missing is empty, not an error.
        as_json: Whether the results are printed as lists of JSON.

    Raises:
        JSONPathError: The template is not valid.
    """

    _nodes: tuple[Node, ...] = attrs.field(converter=parse)
    _allow_missing_keys: bool = True
    _as_json: bool = False
    _ranges_to_begin: int = attrs.field(default=0, init=False)
    _ranges: int = attrs.field(default=0, init=False)
    _ranges_to_end: int = attrs.field(default=0, init=False)
    _last_end: int = attrs.field(default=0, init=False)

    def render(self, data: object) -> str:
        """Return the text for an object.

        Raises:
            JSONPathError: The template does not fit the object.
        """
        return "".join(self._printed(results) for results in self.find(data))

    def find(self, data: object) -> list[list[Any]]:
        """Return the results of each part of the template.

        Raises:
            JSONPathError: The template does not fit the object.
        """
        self._ranges_to_begin = self._ranges = self._ranges_to_end = 0
        return self._find(data, 0)

    def _find(self, data: object, begin: int) -> list[list[Any]]:
        found: list[list[Any]] = []
        index = begin
        while index < len(self._nodes):
            results = self._walk([data], self._nodes[index])
            if 0 < self._ranges_to_end <= self._ranges:
                self._ranges_to_end -= 1
                self._last_end = index
                break
            if self._ranges_to_begin:
                self._ranges_to_begin -= 1
                self._ranges += 1
                self._last_end = index
                for each in results:
                    found += self._find(each, index + 1)
                if not results:  # to find the end of the range
                    self._find(None, index + 1)
                self._ranges -= 1
                index = max(index, self._last_end) + 1
                continue
            found.append(results)
            index += 1
        return found

    def _printed(self, results: list[Any]) -> str:
        if self._as_json:
            return to_json(results) + "\n"
        return " ".join(_text(each) for each in results)

    def _walk(self, values: list[Any], node: Node) -> list[Any]:
        match node:
            case Block(nodes):
                for each in nodes:
                    values = self._walk(values, each)
                return values
            case TextNode(text):
                return [text]
            case ArrayNode():
                return [each for value in values if value is not None for each in _sliced(value, node)]
            case FilterNode():
                return [each for value in values for each in self._filtered(value, node)]
            case UnionNode(blocks):
                return [each for block in blocks for each in self._walk(values, block)]
            case ValueNode():
                return self._evaluate(values, node)

    def _evaluate(self, values: list[Any], node: ValueNode) -> list[Any]:
        if node.what == "field":
            return self._fields(values, str(node.value))
        if node.what == "wildcard":
            return [each for value in values for each in _children(value)]
        if node.what == "recursive":
            return _descendants(values)
        if node.what == "identifier":
            return self._identifier(values, str(node.value))
        return [node.value for _ in values]

    def _identifier(self, values: list[Any], name: str) -> list[Any]:
        if name == "range":
            self._ranges_to_begin += 1
            return values
        if name != "end":
            raise JSONPathError(f"unrecognized identifier {name}")
        if not self._ranges:
            raise JSONPathError("not in range, nothing to end")
        self._ranges_to_end += 1
        return []

    def _fields(self, values: list[Any], name: str) -> list[Any]:
        results = [value[name] for value in values if isinstance(value, Mapping) and name in value]
        if values and not results and not self._allow_missing_keys:
            raise JSONPathError(f"{name} is not found")
        return results

    def _filtered(self, value: Any, node: FilterNode) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise JSONPathError(f"{sprint(value)} is not array or slice and cannot be filtered")
        return [each for each in value if self._passes(each, node)]

    def _passes(self, value: Any, node: FilterNode) -> bool:
        if node.operator == "exists":
            try:
                return bool(self._walk([value], node.left))
            except JSONPathError:
                return False
        sides = []
        for side in (node.left, node.right):
            results = self._walk([value], side)
            if not results:
                return False
            if len(results) > 1:
                raise JSONPathError("can only compare one element at a time")
            sides.append(results[0])
        compare = _OPERATORS.get(node.operator)
        if compare is None:
            raise JSONPathError(f"unrecognized filter operator {node.operator}")
        return _compare(node.operator, compare, *sides)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    return to_json(value, indent=None) if isinstance(value, Mapping | list | tuple) else sprint(value)


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list | tuple) else []


def _descendants(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        children = _children(value)
        if children:
            found.append(value)
            found += _descendants(children)
    return found


def _sliced(value: Any, node: ArrayNode) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise JSONPathError(f"{_go_type(value)} is not array or slice")
    length = len(value)
    begin = node.begin or 0
    end = length if node.end is None else node.end
    if begin < 0:
        begin += length
    if end < 0 or (end == 0 and node.is_index):
        end += length
    if begin == end:
        return []
    for index, limit in ((begin, length - 1), (end, length)):
        if not 0 <= index <= limit:
            shown = index if index == begin else index - 1
            raise JSONPathError(f"array index out of bounds: index {shown}, length {length}")
    if begin > end:
        raise JSONPathError(f"starting index {begin} is greater than ending index {end}")
    if node.step is not None and node.step <= 0:
        raise JSONPathError("step must be > 0")
    return value[begin : end : node.step or 1]


def _go_type(value: Any) -> str:
    for kind, name in ((bool, "bool"), (int, "int64"), (float, "float64"), (str, "string")):
        if isinstance(value, kind):
            return name
    return "map[string]interface {}"


def _compare(name: str, compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    kinds = [_kind(left), _kind(right)]
    if "" in kinds:
        raise JSONPathError("invalid type for comparison")
    if kinds[0] != kinds[1]:
        raise JSONPathError("incompatible types for comparison")
    if kinds[0] == "bool" and name not in ("==", "!="):
        raise JSONPathError("invalid type for comparison")
    return compare(left, right)


def _kind(value: Any) -> str:
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float"), (str, "string")):
        if isinstance(value, kind):
            return name
    return ""
