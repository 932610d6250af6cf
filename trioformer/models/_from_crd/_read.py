"""Read CustomResourceDefinitions from YAML or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import yaml

__all__ = ["read_definitions"]

_KIND: Final = "CustomResourceDefinition"
_API_VERSION: Final = "apiextensions.k8s.io/v1"


def read_definitions(text: str) -> list[Mapping[str, Any]]:
    """Return the CustomResourceDefinitions in a YAML stream, including items of lists; other objects are ignored.

    Raises:
        ValueError: The text is not YAML, contains no definition, or contains a definition with a version other than
            ``v1``.
    """
    try:
        documents: list[object] = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise ValueError(f"{place}not YAML: {problem}") from error
    except RecursionError as error:
        raise ValueError("not a CustomResourceDefinition: it has too many levels") from error
    found = [one for document in documents for one in _definitions_in(document)]
    if not found:
        raise ValueError(f"no {_KIND} found")
    return found


def _definitions_in(document: object) -> Iterator[Mapping[str, Any]]:
    if not isinstance(document, Mapping):
        return
    members = cast("Mapping[str, Any]", document)
    if members.get("kind") in ("List", f"{_KIND}List") and isinstance(members.get("items"), list):
        for item in members["items"]:
            yield from _definitions_in(item)
    elif members.get("kind") == _KIND:
        if members.get("apiVersion") != _API_VERSION:
            raise ValueError(f"a {_KIND} of {members.get('apiVersion')} is not supported; use {_API_VERSION}")
        yield members
