"""Hands the fields of objects that were applied without ``--server-side`` over to the manager of server-side apply.

Otherwise both managers own them, and the server would not remove a field that is in the manifest no more.

Source: kubectl ``pkg/cmd/apply``, client-go ``util/csaupgrade``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from ...errors import ConflictError, TrioformerError
from .._manifests import Document
from .._merging import LAST_APPLIED
from .._session import Session

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["migrate", "unite_fields"]

_DEFAULT_MANAGER: Final = "kubectl"
_ANNOTATION_MANAGER: Final = "kubectl-last-applied"
_ATTEMPTS: Final = 5
_PATH: Final = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")


async def migrate(
    session: Session,
    client: Client,
    document: Document,
    obj: dict[str, Any],
    params: Mapping[str, str],
    send: Callable[..., Any],
) -> dict[str, Any]:
    """Migrate an object that was applied by the server just now; most need nothing.

    What fails is only a warning, since the object is applied, and the next apply tries it again.

    Args:
        session: The session, which prints warnings.
        client: The client.
        document: The object as the file has it.
        obj: The object as it is.
        params: The query of the request that has applied it.
        send: Sends an apply patch of a client, a document, an object and a query.

    Returns:
        The object as it is then.
    """
    manager = params["fieldManager"]
    what = "last-applied annotation"
    try:
        if manager == _DEFAULT_MANAGER:
            obj = await _keep_annotation(client, document, obj, params, send)
        what = "managed fields"
        migrated = await _hand_over(client, document, obj, manager)
        if migrated is None:
            return obj
        # Once more: the fields that are not in the manifest are removed only now.
        return cast("dict[str, Any]", await send(client, document, document.object, params))
    except TrioformerError as exc:
        session.note(f"Warning: failed to migrate the {what} of {document.label} to server-side apply: {exc}")
        return obj


async def _keep_annotation(
    client: Client, document: Document, obj: dict[str, Any], params: Mapping[str, str], send: Callable[..., Any]
) -> dict[str, Any]:
    """Give the annotation a manager of its own: without one it would go with the other fields.

    The server keeps it up to date, so that the object can be applied without ``--server-side`` again.
    """
    text = (obj["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    if text is None or _owners(obj, "Apply"):
        return obj
    metadata = {
        key: document.object["metadata"][key] for key in ("name", "namespace") if key in document.object["metadata"]
    }
    alone = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {**metadata, "annotations": {LAST_APPLIED: text}},
    }
    query = {**params, "fieldManager": _ANNOTATION_MANAGER, "force": "false"}
    return cast("dict[str, Any]", await send(client, document, alone, query))


async def _hand_over(client: Client, document: Document, obj: dict[str, Any], manager: str) -> dict[str, Any] | None:
    """Change the managers; returns the object, or None if there was nothing to do."""
    for attempt in range(1, _ATTEMPTS + 1):
        old = obj["metadata"].get("managedFields") or []
        new = old
        for each in _owners(obj, "Update"):
            new = _migrated(new, each, manager)
        if new == old:
            return None
        patch = [
            {"op": "replace", "path": "/metadata/managedFields", "value": new},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": obj["metadata"]["resourceVersion"]},
        ]
        try:
            response = await client.request(
                "PATCH", document.path(), body=patch, content_type="application/json-patch+json"
            )
        except ConflictError:
            if attempt == _ATTEMPTS:
                raise
            obj = cast("dict[str, Any]", (await client.request("GET", document.path())).json())
        else:
            return cast("dict[str, Any]", response.json())
    raise AssertionError("unreachable")


def _owners(obj: Mapping[str, Any], operation: str) -> list[str]:
    """Return the managers that own the annotation by an operation."""
    owners: dict[str, None] = {}
    for entry in obj["metadata"].get("managedFields") or []:
        fields: Any = entry.get("fieldsV1")
        for name in _PATH:
            fields = fields.get(name) if isinstance(fields, dict) else None
        if fields is not None and entry["operation"] == operation:
            owners[entry["manager"]] = None
    return list(owners)


def _migrated(entries: list[dict[str, Any]], old: str, new: str) -> list[dict[str, Any]]:
    """Return the entries after what one manager has updated was applied by another one."""

    def is_of(entry: Mapping[str, Any], manager: str, operation: str) -> bool:
        found = entry["manager"], entry["operation"], entry.get("subresource") or ""
        return found == (manager, operation, "")

    updates = [entry for entry in entries if is_of(entry, old, "Update")]
    target = next((entry for entry in entries if is_of(entry, new, "Apply")), None)
    if not updates:
        return entries
    if target is None:
        target = updates[0]
    same = next((entry for entry in updates if entry.get("apiVersion") == target.get("apiVersion")), None)
    fields = target.get("fieldsV1") or {}
    if same is not None:
        fields = unite_fields(fields, same.get("fieldsV1") or {})
    changed = {**target, "manager": new, "operation": "Apply", "fieldsV1": fields}
    kept = [entry for entry in entries if entry is target or not is_of(entry, old, "Update")]
    return [changed if entry is target else entry for entry in kept]


def unite_fields(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of both; an empty object is a field that is owned itself."""
    union: dict[str, Any] = {}
    for key in sorted({**one, **other}):
        if key not in one or key not in other:
            union[key] = one.get(key, other.get(key))
        elif bool(one[key]) is bool(other[key]):
            union[key] = unite_fields(one[key], other[key])
        else:
            union[key] = {".": {}, **one[key], **other[key]}
    return union
