"""The validation of the fields of built-in kinds: required fields, enums, formats, ranges and duplicates.

The table in ``validation.txt``, which ``tests/e2e/fetch_validation.py`` writes, has a line for each type with rules,
such as ``core_v1.Container``.  Its members are the fields in the order in which kube-apiserver validates them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, final

from ...models._internal import WireType, decode
from ._default_rules import WRONG_TYPE
from ._defaults import has_objects
from ._definitions import DEFINITIONS
from ._field_errors import duplicate, invalid_value, not_supported, required
from ._kind_rules import CHECKS, Check
from ._kinds import ServedKind
from ._object_meta import NameRule, address_problems, format_problems, key_problems, label_problems, value_problems
from ._release import Release
from ._storage import JSONObject

_UNKNOWN: Final = (DEFINITIONS, "apiservices.apiregistration.k8s.io", "namespaces")
_SKIPPED: Final = ("metadata", "status")
_LONGEST_PORT_NAME: Final = 15


def _port_problems(text: str) -> Iterator[str]:
    if len(text) > _LONGEST_PORT_NAME:
        yield f"must be no more than {_LONGEST_PORT_NAME} characters"
    if not re.fullmatch("[-a-z0-9]+", text):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", text):
        yield "must contain at least one letter (a-z)"
    if "--" in text:
        yield "must not contain consecutive hyphens"
    if text.startswith("-") or text.endswith("-"):
        yield "must not begin or end with a hyphen"


def _config_key_problems(text: str) -> Iterator[str]:
    yield from format_problems("config", text)
    if text in (".", ".."):
        yield f"must not be '{text}'"
    elif text.startswith(".."):
        yield "must not start with '..'"


TEXTS: Final[Mapping[str, NameRule]] = {
    "label": label_problems,
    "subdomain": functools.partial(format_problems, "subdomain"),
    "dns1035": functools.partial(format_problems, "dns1035"),
    "key": lambda text: iter(key_problems(text)),
    "address": functools.partial(address_problems, is_name=False),
    "port": _port_problems,
    "config": _config_key_problems,
}
"""The formats of strings.  Each function yields the reasons why a string does not have the format."""


def _all_problems(rule: NameRule) -> Callable[[str], tuple[str, ...]]:
    return functools.lru_cache(1_000)(lambda text: tuple(rule(text)))


@final
class _Field:
    """The rule for a field of a type, and the rules for the objects in it."""

    def __init__(
        self, name: str, rule: Mapping[str, Any], below: list[_Field] | None, check: Check | None, *, is_map: bool
    ) -> None:
        self.name = name
        self.has_rule = bool(rule)
        self.below = below
        self.is_map = is_map
        self.required: str | None = rule.get("required")
        self.unique: str | None = rule.get("unique")
        self.range: list[int | None] | None = rule.get("range")
        self.detail: str = rule.get("detail", "")
        self.enum: list[str] = rule.get("enum", [])
        self.absent, self.empty, self.zero, self.labels = (key in rule for key in ("absent", "empty", "zero", "labels"))
        self.text = _all_problems(TEXTS[rule["text"]]) if "text" in rule else None
        self.keys = TEXTS[rule["keys"]] if "keys" in rule else None
        self.check = check
        self.may_be_absent = self.required is None and not self.absent and check is None

    def causes(self, value: Any, path: str, causes: list[JSONObject]) -> None:
        """Add the causes of the errors of a field."""
        if self._is_missing(value):
            if self.required is not None:
                causes.append(required(path, self.required))
            elif self.absent or (value == "" and self.empty):
                unset = invalid_value(path, 0, self.detail) if self.range else not_supported(path, "", self.enum)
                causes.append(unset)
            return
        if self.enum:
            causes += [not_supported(path, one, self.enum) for one in _items(value) if one not in self.enum]
        if self.text is not None:
            causes += [invalid_value(path, value, problem) for problem in self.text(value)]
        if self.range and self._is_outside(value):
            causes.append(invalid_value(path, value, self.detail))
        if self.keys is not None:
            causes += [invalid_value(f"{path}[{key}]", key, one) for key in value for one in self.keys(key)]
        if self.labels:
            for key, label in value.items():
                causes += [invalid_value(path, key, problem) for problem in key_problems(key)]
                causes += [invalid_value(path, label, problem) for problem in value_problems(label)]

    def _is_missing(self, value: Any) -> bool:
        if value is None or value in ("", []) or (value == {} and self.is_map):
            return True
        return bool(value == 0 and self.required is not None)

    def _is_outside(self, value: Any) -> bool:
        if isinstance(value, str) or (value == 0 and self.zero):
            return False
        low, high = self.range or (None, None)
        return bool((low is not None and value < low) or (high is not None and value > high))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _check(fields: list[_Field], obj: JSONObject, path: str, causes: list[JSONObject]) -> None:
    """Add the causes of the errors of an object's fields, in the order of kube-apiserver."""
    for field in fields:
        value = obj.get(field.name)
        if value is None and field.may_be_absent:
            continue
        where = f"{path}.{field.name}" if path else field.name
        if field.has_rule:
            field.causes(value, where, causes)
        if field.unique is not None and value:
            _find_duplicates(value, field.unique, where, causes)
        if field.below is not None and value is not None:
            if isinstance(value, list):
                for i, one in enumerate(value):
                    _check(field.below, one, f"{where}[{i}]", causes)
            elif field.is_map:
                for key, one in value.items():
                    _check(field.below, one, f"{where}[{key}]", causes)
            else:
                _check(field.below, value, where, causes)
        if field.check is not None:
            causes += field.check(obj, path)


def _find_duplicates(items: list[Any], key: str, path: str, causes: list[JSONObject]) -> None:
    seen = set()
    for i, item in enumerate(items):
        one = item.get(key) if key else item
        if one and one in seen:
            causes.append(duplicate(f"{path}[{i}].{key}" if key else f"{path}[{i}]", one))
        seen.add(one)


@functools.cache
def _fields(release: Release, type_: WireType) -> list[_Field] | None:
    """Return the rules of a type and of the types of its fields, or None if there are none."""
    known = {field.json: (owner, field) for _, owner, field in type_.members()}
    name = f"{type_.module}.{type_.name}"
    rules = decode(release.table("validation.txt").get(name, b"{}"))
    found = []
    for json_name in [*(one for one in rules if one in known), *(one for one in known if one not in rules)]:
        owner, field = known[json_name]
        has_rules_below = has_objects(field.element) and json_name not in _SKIPPED
        below = _fields(release, owner.type_of(field.element)) if has_rules_below else None
        rule, check = rules.get(json_name) or {}, CHECKS.get(f"{name}.{json_name}")
        if rule or below or check:
            found.append(_Field(json_name, rule, below, check, is_map=field.shape not in ("", "[")))
    return found or None


def field_causes(served: ServedKind, obj: JSONObject) -> list[JSONObject]:
    """Validate an object of a built-in kind, whose defaults are set, and return the causes of all errors."""
    type_ = None if served.resource in _UNKNOWN else served.wire_type
    fields = None if type_ is None else _fields(served.release, type_)
    causes: list[JSONObject] = []
    if fields is not None:
        with suppress(*WRONG_TYPE):
            _check(fields, obj, "", causes)
    return causes
