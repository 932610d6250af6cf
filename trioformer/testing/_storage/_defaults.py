"""The defaults of built-in kinds, and the form in which kube-apiserver stores and sends their fields.

- The defaults that do not depend on other fields are in ``defaults.txt``, which ``models/_generate/defaults`` writes.
  Each line has a type, such as ``core_v1.Container``, and its defaults.  The path of a type in one kind, such as
  ``core_v1.Pod.spec``, replaces the line of the type there.
- ``default_rules.txt`` and the functions in ``_default_rules.py`` set the others.
- As in Go, empty optional fields are removed, absent fields without ``omitempty`` are set to their zero values,
  quantities have their canonical form, and times are in UTC.

The types of the fields are those of the table of protobuf types.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, final

import attrs

from ...errors import DecodeError
from ...models import Quantity
from ...models._internal import WireType, decode, dumps
from ._default_rules import RULES, WRONG_TYPE, set_defaults
from ._definitions import DEFINITIONS
from ._go_times import utc_time
from ._kinds import ServedKind
from ._release import Release
from ._storage import JSONObject

ZEROS: Final[dict[str, Any]] = {"s": "", "b": False, "i": 0, "d": 0, "e": 0, "D": "0s", "Q": "0", "I": 0}
"""The values of absent fields without ``omitempty``, by the letter of their kind.  Other kinds are null in JSON."""
_OMITTED: Final = frozenset("sbideyQ")
_LEAVES: Final = frozenset("sbideyTUDFQIRABC")


def has_objects(element: str) -> bool:
    """Return whether a field with this element in the table of protobuf types has objects of a type in the table."""
    return element not in _LEAVES and not element.startswith(("[", "{"))


def set_builtin_defaults(served: ServedKind, obj: JSONObject) -> None:
    """Set the defaults of an object of a built-in kind, whose types are checked, and bring its fields into Go's form.

    The object's metadata does not change, except that a Job and a ReplicationController get the labels of their pods.
    """
    if (type_ := _type_of(served)) is not None:
        _fill(obj, _root_plan(served.release, type_))


def _type_of(served: ServedKind) -> WireType | None:
    return None if served.resource == DEFINITIONS else served.wire_type  # definitions have rules of their own


def new_object(served: ServedKind) -> JSONObject:
    """Return an object of a built-in kind without metadata and defaults.  No manager owns its fields."""
    type_ = _type_of(served)
    return {"metadata": {}} if type_ is None else _zero(served.release, type_)


@functools.cache
def _zero(release: Release, type_: WireType) -> JSONObject:
    zero: JSONObject = {}
    plan = _Plan(release, {})
    plan.add(type_, "")
    zero |= plan.defaults
    for name in plan.copied:
        zero[name] = _zero(release, plan.children[name].type)
    return zero


def empty_status(served: ServedKind) -> JSONObject:
    """Return the status of a new object of a built-in kind."""
    status: JSONObject = {}
    type_ = _type_of(served)
    if type_ is not None and (child := _root_plan(served.release, type_).children.get("status")) is not None:
        child.fill(status)
    return status


@final
@attrs.define(eq=False)
class _Child:
    """The member of an object that is an object, or a list or a map of objects."""

    shape: str
    type: WireType
    path: str
    release: Release
    _plan: _Plan | None = None

    def fill(self, member: Any) -> None:
        """Set the defaults of the objects in a member."""
        if self._plan is None:  # types may contain themselves
            self._plan = _plan(self.release, self.type, self.path)
        if not self.shape:
            members: Iterable[Any] = (member,)
        else:
            members = member.values() if isinstance(member, dict) else member if isinstance(member, list) else ()
        for one in members:
            if isinstance(one, dict):
                _fill(one, self._plan)


@final
@attrs.define(eq=False)
class _Plan:
    """The changes to an object of one type."""

    _release: Release
    _table: Mapping[str, bytes]
    defaults: list[tuple[str, Any]] = attrs.field(factory=list)
    """The values of members that are absent."""
    copied: dict[str, Callable[[], Any]] = attrs.field(factory=dict)
    """Functions that return the lists and objects for members that are absent."""
    empties: set[str] = attrs.field(factory=set)
    """The members that are treated as absent if they are empty."""
    amounts: list[str] = attrs.field(factory=list)
    """The quantities, and the maps of quantities."""
    children: dict[str, _Child] = attrs.field(factory=dict)
    rules: list[Callable[[JSONObject], object]] = attrs.field(factory=list)
    times: list[tuple[str, bool]] = attrs.field(factory=list)
    """The times, and whether they have microseconds."""

    def add(self, type_: WireType, path: str) -> None:
        """Add the fields of a type."""
        name = f"{type_.module}.{type_.name}"
        defaults = decode(self._table.get(path) or self._table.get(name) or b"{}")
        if name in RULES:
            self.rules.append(RULES[name])
        conditional = self._release.table("default_rules.txt")
        if line := conditional.get(path) or conditional.get(name):
            self.rules.append(functools.partial(set_defaults, decode(line)))
        for field in type_.fields.values():
            if field.is_inline:
                self.add(type_.type_of(field.element), path)
                continue
            kind, where = field.kind, f"{path}.{field.json}" if path else ""
            is_object = has_objects(field.element)
            if is_object:
                # Most paths have no line of their own, so that their plans are shared.
                lines = (*self._table, *conditional) if where else ()
                own = where if any(line.startswith(where) for line in lines) else ""
                self.children[field.json] = _Child(field.shape, type_.type_of(field.element), own, self._release)
            if field.element.removeprefix("*") == "Q":
                self.amounts.append(field.json)
            if field.element.removeprefix("*") in ("T", "U"):
                self.times.append((field.json, field.element.endswith("U")))
            default = defaults.get(field.json)
            is_pointer = kind.startswith("*")
            if default is None and is_object and not (field.omits_empty or field.shape or is_pointer):
                default = {}
            if isinstance(default, list | dict):
                self.copied[field.json] = functools.partial(decode, dumps(default))
            elif default is not None:
                self.defaults.append((field.json, default))
            elif not field.omits_empty:
                self.defaults.append((field.json, None if field.shape else ZEROS.get(kind)))
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
        try:  # suppress() would cost as much as a rule
            rule(value)
        except WRONG_TYPE:
            continue
    for name in plan.amounts:
        if name in value:
            value[name] = _canonical_amounts(value[name])
    for name, is_micro in plan.times:
        if isinstance(text := value.get(name), str):
            value[name] = utc_time(text, is_micro=is_micro)
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
    return canonical_amount(str(amount)) or str(amount)


@functools.lru_cache(1_000)
def canonical_amount(text: str) -> str | None:
    """Return a quantity in its canonical form, or None for another string."""
    try:
        return Quantity(text).canonical.text
    except DecodeError:
        return None


@functools.cache
def _plan(release: Release, type_: WireType, path: str) -> _Plan:
    """Return the changes to an object of a type, which may be at a path, or is a whole object with the type as path."""
    plan = _Plan(release, release.table("defaults.txt"))
    plan.add(type_, path)
    if path == f"{type_.module}.{type_.name}":  # the registry has the rules for the metadata
        for members in (plan.children, plan.copied):
            members.pop("metadata", None)
        plan.empties.discard("metadata")
    plan.fill_copied()
    return plan


def _root_plan(release: Release, type_: WireType) -> _Plan:
    return _plan(release, type_, f"{type_.module}.{type_.name}")
