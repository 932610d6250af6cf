"""Decoded JSON values in Go's formats, which some error messages of kube-apiserver contain."""

from __future__ import annotations

from ._field_sets import json_text


def go_type(value: object) -> str:
    """Return the Go type of a value, in the format ``%T``."""
    names = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool"}
    return names.get(type(value), "<nil>")


def go_value(value: object) -> str:
    """Return a value as Go prints a pointer to it in the format ``%v``."""
    return f"&{{{go_text(value)}}}"


def go_text(value: object) -> str:
    """Return a value in Go's format ``%v``."""
    match value:
        case dict():
            return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(go_text, value))}]"
        case str():
            return value
        case None:
            return "<nil>"
        case _:
            return json_text(value)


def go_syntax(value: object) -> str:
    """Return a value in Go's format ``%#v``."""
    match value:
        case dict():
            members = [f"{json_text(key)}:{go_syntax(value[key])}" for key in sorted(value)]
            return f"{go_type(value)}{{{', '.join(members)}}}"
        case list():
            return f"{go_type(value)}{{{', '.join(map(go_syntax, value))}}}"
        case None:
            return "interface {}(nil)"
        case _:
            return json_text(value)
