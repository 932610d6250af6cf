"""Applies one object as ``kubectl apply --server-side`` does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from ...errors import ApplyConflictError
from .._failures import CommandError
from .._manifests import Document
from .._session import Session
from ._apply_migration import migrate

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["apply_by_server"]

_ADVICE: Final = """\
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the `--force-conflicts` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts"""


async def apply_by_server(
    session: Session, client: Client, document: Document, params: dict[str, str]
) -> dict[str, Any]:
    """Apply an object by server-side apply.

    Args:
        session: The session, which prints warnings.
        client: The client.
        document: The object.
        params: The query of the request.

    Returns:
        The object as it is then.

    Raises:
        CommandError: Another manager has set a field to another value.
        TrioformerError: The server rejected the request otherwise, or no response arrived.
    """
    try:
        obj = await send_apply(client, document, document.object, params)
    except ApplyConflictError as exc:
        # The server writes a line for each field; the text of an error is one line.
        text = re.sub(r'(?<!:) (?=conflicts with ")| (?=- \.)', "\n", exc.status_message)
        raise CommandError(f"{text}\n{_ADVICE}") from exc
    if "dryRun" not in params:
        obj = await migrate(session, client, document, obj, params, send_apply)
    if obj["metadata"].get("deletionTimestamp"):
        session.note(f"Warning: Detected changes to resource {document.name} which is currently being deleted.")
    return obj


async def send_apply(client: Client, document: Document, obj: dict[str, Any], params: dict[str, str]) -> dict[str, Any]:
    """Send an apply patch."""
    response = await client.request(
        "PATCH", document.path(), params=params, body=obj, content_type="application/apply-patch+yaml"
    )
    return cast("dict[str, Any]", response.json())
