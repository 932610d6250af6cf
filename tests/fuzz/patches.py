"""JSON patches and merge patches, applied by a second implementation (RFC 6902, RFC 7386)."""

from __future__ import annotations

import copy
import json
from typing import Any

MAX_SIZE = 3_000_000
"""Bytes of JSON that an object may have; above this, kube-apiserver refuses it."""


class PatchError(Exception):
    """The patch cannot be applied, or the result is too large."""


def merge(old: Any, patch: Any) -> Any:
    """Apply a merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def apply(document: Any, operations: Any) -> Any:
    """Apply a JSON patch.

    Raises:
        PatchError: It is not one, does not fit the document, or makes it too large.
    """
    if not isinstance(operations, list):
        raise PatchError("not a list")
    document = copy.deepcopy(document)
    for operation in operations:
        try:
            document = _apply_one(document, operation)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as exc:
            raise PatchError(str(exc)) from exc
        if len(json.dumps(document)) > MAX_SIZE:
            raise PatchError("too large")
    return document


def _apply_one(document: Any, operation: dict[str, Any]) -> Any:
    name, path = operation["op"], _tokens(operation["path"])
    match name:
        case "add":
            return _add(document, path, operation["value"])
        case "remove":
            _take(document, path)
        case "replace":
            if not path:
                return operation["value"]
            _get(document, path)
            parent = _get(document, path[:-1])
            parent[_index(parent, path[-1])] = operation["value"]
        case "move":
            source = _tokens(operation["from"])
            if path[: len(source)] == source and path != source:
                raise ValueError("a move below itself")
            return _add(document, path, _take(document, source))
        case "copy":
            return _add(document, path, copy.deepcopy(_get(document, _tokens(operation["from"]))))
        case "test":
            if json.dumps(_get(document, path), sort_keys=True) != json.dumps(operation["value"], sort_keys=True):
                raise ValueError("test failed")
        case _:
            raise ValueError("op")
    return document


def _tokens(path: Any) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise ValueError("pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def _index(parent: Any, token: str) -> Any:
    if isinstance(parent, dict):
        return token
    if isinstance(parent, list):
        if not (token.isascii() and token.isdigit()) or (len(token) > 1 and token[0] == "0"):
            raise ValueError("index")
        return int(token)
    raise TypeError("no container")


def _get(document: Any, path: list[str]) -> Any:
    for token in path:
        document = document[_index(document, token)]
    return document


def _take(document: Any, path: list[str]) -> Any:
    parent = _get(document, path[:-1])
    return parent.pop(_index(parent, path[-1]))


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        index = len(parent) if path[-1] == "-" else _index(parent, path[-1])
        if index > len(parent):
            raise IndexError("index")
        parent.insert(index, value)
    else:
        parent[_index(parent, path[-1])] = value
    return document
