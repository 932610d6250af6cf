"""The options and bodies of server-side apply requests.

Source: apiserver ``pkg/endpoints/handlers/patch.go``, apimachinery ``pkg/apis/meta/v1/validation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ._bodies import decode_yaml
from ._status import NOT_AN_OBJECT, bad_request, cause, invalid_options
from ._storage import JSONObject
from ._tracking import LONGEST_MANAGER

APPLY: Final = "application/apply-patch+yaml"
"""The content type of an apply."""


def check_manager(options: str, query: Mapping[str, str], *, is_apply: bool = False) -> None:
    """Check the options of a write request that specify its field manager.

    Args:
        options: The kind of the options, which is ``CreateOptions``, ``UpdateOptions`` or ``PatchOptions``.
        query: The query parameters.
        is_apply: Whether the request is an apply. An apply requires a field manager, and may be forced.
    """
    manager = query.get("fieldManager", "")
    causes = []
    if is_apply and not manager:
        causes.append(cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager"))
    if not is_apply and query.get("force"):
        force = "Forbidden: may not be specified for non-apply patch"
        causes.append(cause("FieldValueForbidden", force, "force"))
    if len(manager.encode()) > LONGEST_MANAGER:
        long = f"Too long: may not be more than {LONGEST_MANAGER} bytes"
        causes.append(cause("FieldValueTooLong", long, "fieldManager"))
    for index, character in enumerate(manager):
        if not character.isprintable():
            problem = f'Invalid value: "{manager}": invalid character U+{ord(character):04X} (at position {index})'
            causes.append(cause("FieldValueInvalid", problem, "fieldManager"))
    if causes:
        raise invalid_options(options, causes)


def is_forced(query: Mapping[str, str]) -> bool:
    """Return whether an apply may take fields from other managers.

    As in kube-apiserver, every value of ``force`` means True, except for ``false``, ``0`` and an empty value.
    """
    return query.get("force", "").lower() not in ("", "false", "0")


def read_config(body: bytes) -> JSONObject:
    """Decode the body of an apply request, which is YAML or JSON."""
    try:
        config: Any = decode_yaml(body)
    except ValueError as exc:
        raise bad_request(f"error decoding YAML: {exc}") from exc
    if not isinstance(config, dict):
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {NOT_AN_OBJECT}")
    return config
