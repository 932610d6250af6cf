"""The validation of custom objects against their schema, with the errors of kube-apiserver.

kube-apiserver uses a general validator for JSON schemas, which has some surprising results.  For example, a string
with a format may have several types, and for ``anyOf``, only the errors from the best-matching schema are reported.
This module returns the same results and causes as kube-apiserver.

An update does not report errors that were already present in the old object and have not changed ("ratcheting").

Source: kube-openapi ``pkg/validation/validate``, apiextensions-apiserver ``pkg/apiserver/validation``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

import attrs

from ._field_errors import (
    invalid_value,
    json_text,
    not_supported,
    number_text,
    quoted,
    required,
    too_long,
    too_many,
)
from ._metadata import json_equal
from ._patterns import compiled
from ._schema_formats import text_format
from ._schemas import Schema
from ._storage import JSONObject

MISSING: Final[Any] = object()
"""The old value of a field or item that did not exist, or that cannot be matched with a new one."""
_MAX_EXACT: Final = 2**53 - 1
_NUMBERS: Final = frozenset({"integer", "number"})
_RANGES: Final = {"int32": 2**31, "int64": 2**63}

Problem: TypeAlias = tuple[str, Callable[[str], JSONObject]]
"""A message, which is reported once, and a function that returns its cause for the path of the validated value."""


@final
@attrs.define(eq=False)
class _Result:
    problems: dict[str, Callable[[str], JSONObject]] = attrs.field(factory=dict)
    matches: int = 0
    """The number of passed checks.  For ``anyOf``, the errors of the schema with the most passed checks are
    reported."""

    def merge(self, other: _Result) -> None:
        for text, make in other.problems.items():
            self.problems.setdefault(text, make)
        self.matches += other.matches

    def add(self, problem: Problem) -> None:
        self.problems.setdefault(*problem)


def validate(value: Any, schema: Schema, old: Any = MISSING, *, prefix: str = "") -> list[JSONObject]:
    """Validate a value whose defaults are set, and return the causes of all errors.

    The paths in the causes begin with ``prefix``.
    """
    result = _check(value, schema, "", old)
    if result.problems and old is not MISSING and json_equal(value, old):
        return []
    return [make(prefix) for make in result.problems.values()]


# --- problems ---------------------------------------------------------------------------------------------------------


def _place(prefix: str, path: str) -> str:
    path = path.removeprefix(".")
    if not prefix:
        return path or "<nil>"
    return f"{prefix}.{path}" if path else prefix


def _wrong(path: str, value: Any, text: str, *, reason: str = "FieldValueInvalid") -> Problem:
    shown = "" if value is None else value
    return text, lambda prefix: invalid_value(_place(prefix, path), shown, text, reason=reason)


def _wrong_type(path: str, types: str, value: str) -> Problem:
    return _wrong(
        path, value, f"{path} in body must be of type {types}: {quoted(value)}", reason="FieldValueTypeInvalid"
    )


def _wrong_whole(text: str) -> Problem:
    """Return the problem with a combination of schemas. This problem is reported for the whole object."""
    return text, lambda prefix: invalid_value(prefix or "<nil>", "", text)


# --- one level --------------------------------------------------------------------------------------------------------


def _check(value: Any, schema: Schema, path: str, old: Any) -> _Result:
    result = _Result()
    raw = schema.raw
    checks_type = bool(schema.types or _format_of(schema))
    if value is None:
        if not (schema.types and not schema.is_nullable):
            result.matches += 1
        else:
            result.add(_wrong_type(path, ",".join(schema.types), "null"))
        _check_enum(value, raw, path, result)
        return result
    if checks_type:
        _check_type(value, schema, path, result)
        result.matches += 1
    _check_clauses(value, schema, path, old, result)
    result.matches += 1
    if isinstance(value, str):
        _check_text(value, raw, path, result)
        result.matches += 1
        check_format = text_format(_format_of(schema))
        if check_format is not None:
            result.matches += 1
            if not check_format(value):
                result.add(_wrong_type(path, _format_of(schema), value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(value, schema, path, result)
        result.matches += 2
    elif isinstance(value, list):
        _check_list(value, schema, path, old, result)
        result.matches += 2
    _check_enum(value, raw, path, result)
    result.matches += 1
    if isinstance(value, dict):
        _check_object(value, schema, path, old, result)
        result.matches += 1
    result.matches += 1
    return result


@functools.lru_cache(4_096)
def _known_format(type_: str, name: str) -> str:
    if type_ in ("", "string"):
        return name if text_format(name) is not None else ""
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(type_, ())
    return name if name in known else ""


def _format_of(schema: Schema) -> str:
    """Return the format of a schema if this format is validated."""
    name = schema.raw.get("format")
    return _known_format(schema.types[0] if len(schema.types) == 1 else "", name) if name else ""


def _type_of(value: Any) -> tuple[str, str]:
    """Return the JSON type of a value that is not null, and its format if it is a number."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return "integer", "int64"
    if isinstance(value, int | float):
        return "number", "float64"
    return ("array" if isinstance(value, list) else "object"), ""


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT


def _check_type(value: Any, schema: Schema, path: str, result: _Result) -> None:
    types, format_ = schema.types, _format_of(schema)
    is_, number_format = _type_of(value)
    fits = is_ in types or (_is_whole(value) and "integer" in types) or (is_ == "integer" and "number" in types)
    if is_ not in ("string", "array") and format_ and not fits and number_format != format_:
        result.add(_wrong_type(path, format_, number_format))
    elif format_ and is_ in ("string", "array") and not _NUMBERS & set(types):
        result.matches += 1  # the check of the format decides
    elif fits:
        result.matches += 1
    else:
        result.add(_wrong_type(path, ",".join(types), is_))


def _check_enum(value: Any, raw: Mapping[str, Any], path: str, result: _Result) -> None:
    allowed = raw.get("enum")
    if not allowed or any(_is_same(value, one) for one in allowed):
        return
    supported = [one if isinstance(one, str) else json_text(one) for one in allowed]
    text = f"{path} in body should be one of {allowed}"
    result.add((text, lambda prefix: not_supported(_place(prefix, path), value, supported)))


def _is_same(value: Any, allowed: Any) -> bool:
    """Return whether a value equals a value of an enum.

    Numbers are first converted to the type of the value of the enum.
    """
    if value is None or allowed is None:
        return False
    if _type_of(value)[1] and _type_of(allowed)[1]:
        return bool(type(allowed)(value) == allowed)
    return json_equal(value, allowed)


def _check_text(value: str, raw: Mapping[str, Any], path: str, result: _Result) -> None:
    longest, shortest, pattern = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
    if longest is not None and len(value) > longest:
        text = f"{path} in body should be at most {longest} chars long"
        result.add((text, lambda prefix: too_long(_place(prefix, path), longest)))
    elif shortest is not None and len(value) < shortest:
        result.add(_wrong(path, value, f"{path} in body should be at least {shortest} chars long"))
    elif pattern and (regex := compiled(pattern)) is not None and not regex.search(value):
        result.add(_wrong(path, value, f"{path} in body should match '{pattern}'"))


def _check_number(value: float, schema: Schema, path: str, result: _Result) -> None:
    raw, type_ = schema.raw, schema.types[0] if len(schema.types) == 1 else ""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        value = float(value)
    if type_ == "integer":
        limit = _RANGES.get(_format_of(schema), 2**63)
        if not (-limit <= value < limit and (isinstance(value, int) or value.is_integer())):
            result.add(_wrong_whole(f"Checked value must be of type integer {_how(schema)} in {path}"))
    elif _format_of(schema) == "float" and abs(value) > 3.4028234663852886e38:
        result.add(_wrong_whole(f"Checked value must be of type number with format float in {path}"))
    result.matches += 1
    factor = raw.get("multipleOf")
    if factor is not None and isinstance(value, int) and int(factor) <= 0:
        result.add(_wrong(path, 0, f"factor MultipleOf declared for {path} must be positive: {int(factor)}"))
    elif factor is not None and not _is_multiple(value, factor):
        shown = number_text(int(factor) if isinstance(value, int) else float(factor))
        result.add(_wrong(path, value, f"{path} in body should be a multiple of {shown}"))
    for name, exclusive, words, sign in (
        ("maximum", "exclusiveMaximum", "less than", 1),
        ("minimum", "exclusiveMinimum", "greater than", -1),
    ):
        bound = raw.get(name)
        if bound is None:
            continue
        if type_ == "integer" and bound != int(bound):  # an error for every value; then floats are compared
            result.add(
                _wrong_whole(f"{name.capitalize()} boundary value must be of type integer {_how(schema)} in {path}")
            )
            number = float(bound)
        else:
            number = int(bound) if isinstance(value, int) else float(bound)
        is_exclusive = bool(raw.get(exclusive))
        if sign * value > sign * number or (is_exclusive and value == number):
            word = words if is_exclusive else f"{words} or equal to"
            result.add(_wrong(path, value, f"{path} in body should be {word} {number_text(number)}"))


def _how(schema: Schema) -> str:
    return f"with format {_format_of(schema)}" if _format_of(schema) else "(default format)"


def _is_multiple(value: float, factor: float) -> bool:
    if isinstance(value, int):
        return value % int(factor) == 0
    quotient = 1 / factor * value if factor < 1 else value / factor
    return float(quotient).is_integer() and abs(quotient) <= _MAX_EXACT


# --- combinations of schemas ------------------------------------------------------------------------------------------


def _check_clauses(value: Any, schema: Schema, path: str, old: Any, result: _Result) -> None:
    if choices := schema.clauses.get("anyOf"):
        results = [_check(value, one, path, old) for one in choices]
        if valid := [one for one in results if not one.problems]:
            result.merge(valid[0])
        else:
            result.add(_wrong_whole(f"{quoted(path)} must validate at least one schema (anyOf)"))
            result.merge(max(results, key=lambda one: one.matches))
    if alternatives := schema.clauses.get("oneOf"):
        results = [_check(value, one, path, old) for one in alternatives]
        valid = [one for one in results if not one.problems]
        if len(valid) == 1:
            result.merge(valid[0])
        else:
            found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
            result.add(_wrong_whole(f"{quoted(path)} must validate one and only one schema (oneOf). {found}"))
            if not valid:
                result.merge(max(results, key=lambda one: one.matches))
    if parts := schema.clauses.get("allOf"):
        results = [_check(value, one, path, old) for one in parts]
        for one in results:
            result.merge(one)
        if any(one.problems for one in results):
            none = "" if any(not one.problems for one in results) else ". None validated"
            result.add(_wrong_whole(f"{quoted(path)} must validate all the schemas (allOf){none}"))
    for clause in schema.clauses.get("not", ()):
        if not _check(value, clause, path, old).problems:
            result.add(_wrong_whole(f"{quoted(path)} must not validate the schema (not)"))
    result.matches += 1


# --- lists and objects ------------------------------------------------------------------------------------------------


def _check_child(value: Any, schema: Schema, path: str, old: Any) -> _Result:
    result = _check(value, schema, path, old)
    if result.problems and old is not MISSING and json_equal(value, old):
        result.problems = {}
    return result


def _check_size(size: int, raw: Mapping[str, Any], what: str, path: str, result: _Result) -> None:
    fewest, most = raw.get(f"min{what}"), raw.get(f"max{what}")
    if fewest is not None and size < fewest:
        result.add(_wrong(path, size, f"{path} in body should have at least {fewest} {what.lower()}"))
    if most is not None and size > most:
        text = f"{path} in body should have at most {most} {what.lower()}"
        result.add((text, lambda prefix: too_many(_place(prefix, path), size, most)))


def _check_list(value: list[Any], schema: Schema, path: str, old: Any, result: _Result) -> None:
    if schema.items is not None:
        before = _old_items(value, schema, old)
        for i, item in enumerate(value):
            result.merge(_check_child(item, schema.items, f"{path}[{i}]", before[i] if before else MISSING))
    _check_size(len(value), schema.raw, "Items", path, result)


def _old_items(value: list[Any], schema: Schema, old: Any) -> list[Any]:
    """Return the old item for each new item.  Items can be matched only in lists of type map."""
    if schema.raw.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return []
    keys = schema.raw.get("x-kubernetes-list-map-keys") or ()

    def identity(item: Any) -> str:
        return json_text([item.get(key) for key in keys] if isinstance(item, dict) else None)

    before = {identity(item): item for item in reversed(old)}
    return [before.get(identity(item), MISSING) for item in value]


def _check_object(value: JSONObject, schema: Schema, path: str, old: Any, result: _Result) -> None:
    _check_size(len(value), schema.raw, "Properties", path, result)
    before = old if isinstance(old, dict) else {}
    for name, member in value.items():
        known = schema.properties.get(name)
        if known is None and schema.additional is False:
            result.add(_wrong(path, name, f"{path}.{name} in body is a forbidden property"))
        elif (known := known or schema.values) is not None:
            where = f"{path}.{name}" if path or name not in schema.properties else name
            result.merge(_check_child(member, known, where, before.get(name, MISSING)))
    for name in schema.raw.get("required") or ():
        if name not in value:
            where = f"{path}.{name}"
            result.add((f"{where} in body is required", _required_at(where)))


def _required_at(path: str) -> Callable[[str], JSONObject]:
    return lambda prefix: required(_place(prefix, path))
