"""The defaults of built-in kinds, and the form in which kube-apiserver stores and sends their fields.

- The defaults that do not depend on other fields are in ``_defaults.txt``, which ``models/_generate/defaults`` writes.
  Each line has a type, such as ``core_v1.Container``, and its defaults.  The path of a type in one kind, such as
  ``core_v1.Pod.spec``, replaces the line of the type there.
- The functions in ``_default_rules.py`` set the others.
- As in Go, empty optional fields are removed, absent fields without ``omitempty`` are set to their zero values, and
  quantities have their canonical form.

The types of the fields are those of the table of protobuf types.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, final

from ...errors import DecodeError
from ...models import Quantity
from ...models._internal import WireType, decode, dumps, find_wire_type
from ._default_rules import RULES, WRONG_TYPE
from ._definitions import DEFINITIONS
from ._kinds import ServedKind
from ._storage import JSONObject

_ZEROS: Final[dict[str, Any]] = {"s": "", "b": False, "i": 0, "d": 0, "e": 0, "D": "0s", "Q": "0", "I": 0}
"""The values of absent fields without ``omitempty``, by the letter of their kind.  Other kinds are null in JSON."""
_OMITTED: Final = frozenset("sbideyQ")
_LEAVES: Final = frozenset("sbideyTUDFQIRABC")
_WRONG_TYPES_IGNORED: Final = suppress(*WRONG_TYPE)


def has_objects(element: str) -> bool:
    """Return whether a field with this element in the table of protobuf types has objects of a type in the table."""
    return element not in _LEAVES and not element.startswith(("[", "{"))


def set_builtin_defaults(served: ServedKind, obj: JSONObject) -> None:
    """Set the defaults of an object of a built-in kind, whose types are checked, and bring its fields into Go's form.

    The object's metadata does not change, except that a Job and a ReplicationController get the labels of their pods.
    """
    root = _root(served)
    if root is not None:
        _fill(obj, root[0])


def new_object(served: ServedKind) -> JSONObject:
    """Return an object of a built-in kind without metadata and defaults.  No manager owns its fields."""
    root = _root(served)
    return {"metadata": {}} if root is None else root[1]


def _zero(type_: WireType) -> JSONObject:
    zero: JSONObject = {}
    plan = _Plan()
    plan.add(type_, "", {})
    zero |= plan.defaults
    for name in plan.copied:
        zero[name] = _zero(plan.children[name].type)
    return zero


def empty_status(served: ServedKind) -> JSONObject:
    """Return the status of a new object of a built-in kind."""
    root = _root(served)
    status: JSONObject = {}
    if root is not None and (child := root[0].children.get("status")) is not None:
        child.fill(status)
    return status


@final
class _Child:
    """The member of an object that is an object, or a list or a map of objects."""

    __slots__ = ("path", "plan", "shape", "type")

    def __init__(self, shape: str, type_: WireType, path: str) -> None:
        self.shape = shape
        self.type = type_
        self.path = path
        self.plan: _Plan | None = None

    def fill(self, member: Any) -> None:
        """Set the defaults of the objects in a member.  Their plan is made for the first such objects."""
        plan = self.plan
        if plan is None:
            plan = self.plan = _plan(self.type, self.path)
        if not self.shape:
            members: Iterable[Any] = (member,)
        else:
            members = member.values() if isinstance(member, dict) else member if isinstance(member, list) else ()
        for one in members:
            if isinstance(one, dict):
                _fill(one, plan)


@final
class _Plan:
    """The changes to an object of one type."""

    __slots__ = ("amounts", "children", "copied", "defaults", "empties", "rules")

    def __init__(self) -> None:
        self.defaults: list[tuple[str, Any]] = []
        """The values of members that are absent."""
        self.copied: dict[str, Callable[[], Any]] = {}
        """Functions that return the lists and objects for members that are absent."""
        self.empties: set[str] = set()
        """The members that are treated as absent if they are empty."""
        self.amounts: list[str] = []
        """The quantities, and the maps of quantities."""
        self.children: dict[str, _Child] = {}
        self.rules: list[Any] = []

    def add(self, type_: WireType, path: str, table: dict[str, str]) -> None:
        """Add the fields of a type."""
        name = f"{type_.module}.{type_.name}"
        defaults = decode((table.get(path) or table.get(name) or "{}").encode())
        if name in RULES:
            self.rules.append(RULES[name])
        for field in type_.fields.values():
            if field.is_inline:
                self.add(type_.type_of(field.element), path, table)
                continue
            kind, where = field.kind, f"{path}.{field.json}" if path else ""
            is_object = has_objects(field.element)
            if is_object:
                # Most paths have no line of their own, so that their plans are shared.
                own = where if any(line.startswith(where) for line in table if where) else ""
                self.children[field.json] = _Child(field.shape, type_.type_of(field.element), own)
            if field.element.removeprefix("*") == "Q":
                self.amounts.append(field.json)
            default = defaults.get(field.json)
            is_pointer = kind.startswith("*")
            if default is None and is_object and not (field.omits_empty or field.shape or is_pointer):
                default = {}
            if isinstance(default, list | dict):
                self.copied[field.json] = functools.partial(decode, dumps(default))
            elif default is not None:
                self.defaults.append((field.json, default))
            elif not field.omits_empty:
                self.defaults.append((field.json, None if field.shape else _ZEROS.get(kind)))
            is_kept = is_pointer if default is not None else kind not in _OMITTED
            if field.shape or isinstance(default, list | dict) or not is_kept:
                self.empties.add(field.json)

    def fill_copied(self) -> None:
        """Set the defaults within the values that :attr:`copied` returns."""
        for name, copy in self.copied.items():
            value = copy()
            if name in self.children:
                self.children[name].fill(value)
            self.copied[name] = functools.partial(decode, dumps(value)) if value else type(value)


def _fill(value: JSONObject, plan: _Plan) -> None:
    for rule in plan.rules:
        with _WRONG_TYPES_IGNORED:
            rule(value)
    for name in plan.amounts:
        if name in value:
            value[name] = _canonical_amounts(value[name])
    gone: list[str] = []
    for name, member in value.items():
        if not member and name in plan.empties:
            gone.append(name)
        elif (child := plan.children.get(name)) is not None:
            child.fill(member)
    for name in gone:
        del value[name]
    for name, default in plan.defaults:
        value.setdefault(name, default)
    for name, copy in plan.copied.items():
        if name not in value:
            value[name] = copy()


def _canonical_amounts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _canonical(amount) for name, amount in value.items()}
    return _canonical(value)


def _canonical(amount: Any) -> Any:
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        return amount
    return _canonical_text(str(amount))


@functools.lru_cache(1_000)
def _canonical_text(text: str) -> str:
    try:
        return Quantity(text).canonical.text
    except DecodeError:
        return text


@functools.cache
def _table() -> dict[str, str]:
    lines = Path(__file__).with_name("_defaults.txt").read_text("utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines)


@functools.cache
def _plan(type_: WireType, path: str) -> _Plan:
    plan = _Plan()
    plan.add(type_, path, _table())
    plan.fill_copied()
    return plan


_ROOTS: dict[bytes, tuple[_Plan, JSONObject] | None] = {}
"""The plan and the object without defaults of each kind, by kind and apiVersion in JSON."""


def _root(served: ServedKind) -> tuple[_Plan, JSONObject] | None:
    root = _ROOTS.get(served.type_meta, ...)
    if root is ...:
        type_ = find_wire_type(served.info.api_version, served.info.kind)
        is_known = type_ is not None and served.resource != DEFINITIONS  # definitions have rules of their own
        root = _ROOTS[served.type_meta] = (_root_plan(type_), _zero(type_)) if type_ and is_known else None
    return root


def _root_plan(type_: WireType) -> _Plan:
    plan = _plan(type_, f"{type_.module}.{type_.name}")
    plan.children.pop("metadata", None)  # the registry has its rules
    plan.copied.pop("metadata", None)
    plan.empties.discard("metadata")
    return plan
