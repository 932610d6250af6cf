"""Applies one object as ``kubectl apply`` without ``--server-side`` does: its last manifest is in an annotation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from ...errors import AlreadyExistsError, ConflictError, NotFoundError, TrioformerError
from ...models import merge_patch
from .._failures import CommandError
from .._manifests import Document, source_error
from .._merging import LAST_APPLIED, annotated, merge_manifest, with_annotation, without_nulls
from .._session import Session

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["apply_one", "get_live", "merged_object", "send_patch"]

_ATTEMPTS: Final = 5
_PERIOD: Final = 1.0
"""Seconds between attempts to write what another program writes as well, from the second one on."""


async def apply_one(
    session: Session, client: Client, document: Document, params: dict[str, str], *, dry_run: str
) -> tuple[str, dict[str, Any]]:
    """Apply an object.

    Args:
        session: The session, which prints warnings.
        client: The client.
        document: The object.
        params: The query of requests that write.
        dry_run: With ``client``, nothing is written.

    Returns:
        What was done, ``created``, ``configured`` or ``unchanged``, and the object as it is then.

    Raises:
        CommandError: The server rejected a request, or the annotation of the object is not valid.
        TrioformerError: Likewise, or no response arrived.
    """
    attempt = 0
    while True:
        attempt += 1
        live = await get_live(client, document)
        try:
            if live is None:
                return "created", await _create(client, document, params, dry_run=dry_run)
            return await _change(session, client, document, live, params, dry_run=dry_run)
        except AlreadyExistsError as exc:  # somebody else has created it at this moment
            if attempt == _ATTEMPTS:
                raise source_error("creating", document.source, exc) from exc
        except ConflictError as exc:
            # A version in the manifest is a condition of the user's, which no repetition fulfils.
            if attempt == _ATTEMPTS or document.object["metadata"].get("resourceVersion"):
                raise source_error("patching", document.source, exc) from exc
        except TrioformerError as exc:
            raise source_error("creating" if live is None else "patching", document.source, exc) from exc
        if attempt > 1:
            await trio.sleep(_PERIOD)


async def get_live(client: Client, document: Document) -> dict[str, Any] | None:
    """Request an object; None if it does not exist."""
    try:
        found: Any = (await client.request("GET", document.path())).json()
    except NotFoundError as exc:
        if exc.is_unexpected_server_error:  # a proxy's page
            raise
        return None
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        raise CommandError(f"unexpected response to GET {document.path()}: not an object of the API")
    return found


async def _create(client: Client, document: Document, params: dict[str, str], *, dry_run: str) -> dict[str, Any]:
    obj: dict[str, Any] = without_nulls(annotated(document.object))
    if dry_run == "client":
        return obj
    response = await client.request("POST", document.path(is_collection=True), params=params, body=obj)
    return cast("dict[str, Any]", response.json())


async def _change(
    session: Session,
    client: Client,
    document: Document,
    live: dict[str, Any],
    params: dict[str, str],
    *,
    dry_run: str,
) -> tuple[str, dict[str, Any]]:
    resource = document.resource
    if LAST_APPLIED not in (live["metadata"].get("annotations") or {}):
        session.note(
            f"Warning: resource {resource.plural}/{document.name} is missing the {LAST_APPLIED} annotation which is "
            "required by trioformer apply. trioformer apply should only be used on resources created declaratively by "
            "either trioformer create --save-config or trioformer apply. The missing annotation will be patched "
            "automatically."
        )
    merged = merged_object(document, live, annotate=True)
    patch = merge_patch(live, merged)
    if live["metadata"].get("deletionTimestamp"):
        session.note(f"Warning: Detected changes to resource {document.name} which is currently being deleted.")
    if not patch:
        return "unchanged", live
    if dry_run == "client":
        return "configured", merged
    return "configured", await send_patch(client, document, live, patch, params)


async def send_patch(
    client: Client, document: Document, live: dict[str, Any], patch: Mapping[str, Any], params: dict[str, str]
) -> dict[str, Any]:
    """Change an object, if it is still as it was read."""
    metadata = {"resourceVersion": live["metadata"].get("resourceVersion"), **(patch.get("metadata") or {})}
    response = await client.request(
        "PATCH",
        document.path(),
        params=params,
        body={**patch, "metadata": metadata},
        content_type="application/merge-patch+json",
    )
    return cast("dict[str, Any]", response.json())


def merged_object(document: Document, live: dict[str, Any], *, annotate: bool) -> dict[str, Any]:
    """Return what the object becomes.

    Args:
        document: The object as the file has it.
        live: The object as the server has it.
        annotate: Whether the annotation is changed as well.

    Raises:
        CommandError: The annotation is not valid.
    """
    annotations = live["metadata"].get("annotations") or {}
    try:
        last = json.loads(annotations.get(LAST_APPLIED) or "{}")
    except ValueError:
        last = None
    if not isinstance(last, dict):
        raise CommandError(
            f'error when applying "{document.source}": the annotation {LAST_APPLIED} of {document.label} is not the '
            "JSON of an object: remove it"
        )
    wanted = annotated(document.object) if annotate else with_annotation(document.object, None)
    # The file may have been exported with these; that the object has them is no reason to write it.
    own = {key: value for key, value in wanted["metadata"].items() if key not in ("managedFields", "selfLink")}
    return merge_manifest(last, {**wanted, "metadata": own}, live)
