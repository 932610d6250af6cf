"""The options of writes, and the bodies of server-side apply requests.

Source: apiserver ``pkg/endpoints/handlers/patch.go``, apimachinery ``pkg/apis/meta/v1/validation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ._bodies import decode_yaml
from ._field_errors import forbidden, invalid_value, not_supported, required, too_long
from ._status import NOT_AN_OBJECT, bad_request, invalid_options
from ._storage import JSONObject
from ._tracking import LONGEST_MANAGER

APPLY: Final = "application/apply-patch+yaml"
"""The content type of an apply."""
_OPTIONS: Final = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
_DIRECTIVES: Final = ("", "Ignore", "Strict", "Warn")


def check_options(verb: str, query: Mapping[str, str], *, is_apply: bool) -> None:
    """Check the options of a request, if it creates, updates or patches an object.

    Args:
        verb: The verb.
        query: The query parameters.
        is_apply: Whether the request is an apply. An apply requires a field manager, and may be forced.

    Raises:
        APIStatusError: An option is not valid (422).
    """
    if verb not in _OPTIONS:
        return
    manager = query.get("fieldManager", "")
    causes = []
    if is_apply and not manager:
        causes.append(required("fieldManager", "is required for apply patch"))
    if verb == "patch" and not is_apply and query.get("force"):
        causes.append(forbidden("force", "may not be specified for non-apply patch"))
    if len(manager.encode()) > LONGEST_MANAGER:
        causes.append(too_long("fieldManager", LONGEST_MANAGER))
    for index, character in enumerate(manager):
        if not character.isprintable():
            problem = f"invalid character U+{ord(character):04X} (at position {index})"
            causes.append(invalid_value("fieldManager", manager, problem))
    if query.get("dryRun", "All") != "All":
        causes.append(not_supported("dryRun", [query["dryRun"]], ["All"]))
    if (directive := query.get("fieldValidation", "")) not in _DIRECTIVES:
        causes.append(not_supported("fieldValidation", directive, _DIRECTIVES))
    if causes:
        raise invalid_options(_OPTIONS[verb], causes)


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
