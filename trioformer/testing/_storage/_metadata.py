"""What the embedded server knows of ``metadata``: which names are valid, who sets which field, and in which order.

Source: apimachinery ``pkg/api/validation`` and apiserver ``pkg/registry/rest``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ._kinds import Served
from ._status import bad_request, cause, invalid
from ._storage import JSONObject

_ORDER = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
)
_SERVER_FIELDS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_STRINGS = ("name", "generateName", "namespace", "uid", "resourceVersion")
_NAME_LENGTH = 253
_LABEL_LENGTH = 63

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_PROBLEM = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    f" an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_PROBLEM = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)


def metadata_of(obj: JSONObject) -> JSONObject:
    """Return an object's metadata after a look at its shape.

    Raises:
        RefusedError: 400: it is not what ``metav1.ObjectMeta`` can hold.
    """
    metadata = obj.setdefault("metadata", {})
    if metadata is None:
        metadata = obj["metadata"] = {}
    if not isinstance(metadata, dict):
        raise _wrong("metadata", "an object")
    for name in _STRINGS:
        if not isinstance(metadata.get(name, ""), str | None):
            raise _wrong(f"metadata.{name}", "a string")
    for name in ("labels", "annotations"):
        texts = metadata.get(name)
        if texts is not None and not (
            isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values())
        ):
            raise _wrong(f"metadata.{name}", "a map of strings")
    finalizers = metadata.get("finalizers")
    if finalizers is not None and not (
        isinstance(finalizers, list) and all(isinstance(one, str) for one in finalizers)
    ):
        raise _wrong("metadata.finalizers", "a list of strings")
    return metadata


def check_type(served: Served, obj: JSONObject) -> None:
    """Make sure that an object says the kind and version that it is sent as, or none.

    Raises:
        RefusedError: 400: it says another.
    """
    kind, version = obj.get("kind"), obj.get("apiVersion")
    info = served.info
    if kind and kind != info.kind:
        into = f"converting (v1.{kind}) to (core.{info.kind}): unknown conversion"
        said = version or info.api_version
        raise bad_request(f'{kind} in version "{said}" cannot be handled as a {info.kind}: {into}')
    if version and version != info.api_version:
        expected = f"does not match the expected API version ({info.api_version})"
        raise bad_request(f"the API version in the data ({version}) {expected}")


def check_shape(served: Served, obj: JSONObject) -> None:
    """Make sure that the parts which the server itself reads can be read.

    Raises:
        RefusedError: 400: they cannot.
    """
    for name in ("spec", "status"):
        part = obj.get(name)
        if served.is_builtin and part is None:
            obj.pop(name, None)
        elif served.is_builtin and not isinstance(part, dict):
            raise _wrong(name, "an object")


def _wrong(path: str, expected: str) -> Exception:
    return bad_request(f"the object provided is unrecognized: {path} must be {expected}")


def ordered(metadata: Mapping[str, Any]) -> JSONObject:
    """Put metadata into the real server's order, without what is empty."""
    full = {key: value for key, value in metadata.items() if value not in (None, "", {}, [])}
    rest = [key for key in full if key not in _ORDER and key != "selfLink"]
    return {key: full[key] for key in (*(key for key in _ORDER if key in full), *rest)}


def without_server_fields(metadata: Mapping[str, Any]) -> JSONObject:
    """Drop what a creator may not set."""
    return {key: value for key, value in metadata.items() if key not in _SERVER_FIELDS}


def with_server_fields(new: Mapping[str, Any], old: Mapping[str, Any]) -> JSONObject:
    """Take what a writer may not change from the old metadata."""
    kept = {key: old[key] for key in (*_SERVER_FIELDS, "name", "namespace") if key in old}
    return ordered({**without_server_fields(new), **kept})


def check_name(served: Served, name: str) -> None:
    """Make sure that an object can be created under a name.

    Raises:
        RefusedError: 422: it cannot.
    """
    field = "metadata.name"
    causes = [
        cause("FieldValueInvalid", f'Invalid value: "{name}": {problem}', field) for problem in _problems(served, name)
    ]
    if not name:
        causes = [cause("FieldValueRequired", "Required value: name or generateName is required", field)]
    if causes:
        raise invalid(served.info.group, served.info.kind, name, causes)


def _problems(served: Served, name: str) -> Iterable[str]:
    if served.info.group == "rbac.authorization.k8s.io":  # names such as system:node
        if name in (".", ".."):
            yield f"may not be '{name}'"
        yield from (f"may not contain '{character}'" for character in "/%" if character in name)
        return
    is_label = served.resource in ("namespaces", "services")
    length = _LABEL_LENGTH if is_label else _NAME_LENGTH
    if len(name) > length:
        yield f"must be no more than {length} bytes"
    if not re.fullmatch(_LABEL if is_label else _SUBDOMAIN, name):
        yield _LABEL_PROBLEM if is_label else _SUBDOMAIN_PROBLEM


def check_finalizers(served: Served, old: JSONObject, new: JSONObject) -> None:
    """Make sure that an object that is being deleted gets no new finalizers.

    Raises:
        RefusedError: 422: it does.
    """
    if "deletionTimestamp" not in old:
        return
    added = [one for one in new.get("finalizers", ()) if one not in old.get("finalizers", ())]
    if added:
        problem = "no new finalizers can be added if the object is being deleted, found new finalizers"
        listed = ", ".join(f'"{one}"' for one in added)
        message = f"Forbidden: {problem} []string{{{listed}}}"
        wrong = cause("FieldValueForbidden", message, "metadata.finalizers")
        raise invalid(served.info.group, served.info.kind, old["name"], [wrong])


def same(one: object, other: object) -> bool:
    """Tell whether two decoded JSON values are equal; Python alone would take true for 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)
