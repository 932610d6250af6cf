"""``diff``: what ``apply`` would change, shown by a program such as diff(1)."""

from __future__ import annotations

import argparse
import io
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from ...errors import AlreadyExistsError, ConflictError
from ...models import merge_patch
from .._arguments import Parser
from .._failures import CommandError, UsageError
from .._manifests import Document, add_file_flags, has_files, raise_all, read_documents
from .._merging import LAST_APPLIED
from .._session import Session
from ..printing import to_yaml
from ._apply import CLIENT_SIDE, SERVER_SIDE
from ._apply_by_server import send_apply
from ._apply_one import get_live, merged_object, send_patch

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["add_flags", "run"]

_ATTEMPTS: Final = 4
_WORD: Final = re.compile(r"[a-zA-Z0-9-=]+")


def add_flags(parser: Parser) -> None:
    """Add the flags of ``diff``."""
    add_file_flags(parser, "that contain the configuration to diff")
    parser.add_argument("-l", "--selector", default="", help="Selector (label query) to filter on.")
    parser.add_argument("--field-manager", default="", help="Name of the manager used to track field ownership.")
    parser.add_switch("--server-side", help="If true, apply runs in the server instead of the client.")
    parser.add_switch("--force-conflicts", help="If true, server-side apply will force the changes against conflicts.")
    parser.add_switch("--show-managed-fields", help="If true, include managed fields in the diff.")
    parser.add_switch("--show-secrets", help="If true, do not mask secret values in the diff.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``diff``."""
    if flags.arguments:
        raise UsageError(f"Unexpected args: [{' '.join(flags.arguments)}]")
    if not has_files(flags):
        raise CommandError("must specify one of -f and -k")
    if flags.force_conflicts and not flags.server_side:
        raise CommandError("--force-conflicts only works with --server-side")
    params = {
        "dryRun": "All",
        "fieldManager": flags.field_manager or (SERVER_SIDE if flags.server_side else CLIENT_SIDE),
    }
    if flags.server_side:
        params["force"] = "true" if flags.force_conflicts else "false"
    files: list[tuple[str, str, str]] = []
    async with session.open_client() as client:
        documents, errors = await read_documents(session, flags, client, selector=flags.selector)
        raise_all(errors)
        for document in documents:
            live, merged = await _states(session, client, document, params, by_server=flags.server_side)
            if not flags.show_secrets and document.object["kind"] == "Secret":
                live, merged = _masked(live, merged)
            before, after = (_text(obj, with_managers=flags.show_managed_fields) for obj in (live, merged))
            files.append((_file_name(document), before, after))
    return await _run_program(session, files)


async def _states(
    session: Session, client: Client, document: Document, params: dict[str, str], *, by_server: bool
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the object as it is, and as it would be."""
    for attempt in range(1, _ATTEMPTS + 1):
        live = await get_live(client, document)
        if live is not None and live["metadata"].get("deletionTimestamp"):
            session.note(f"Warning: Detected changes to resource {document.name} which is currently being deleted.")
        try:
            if by_server:
                return live, await send_apply(client, document, document.object, params)
            if live is None:
                path = document.path(is_collection=True)
                response = await client.request("POST", path, params=params, body=document.object)
                return live, cast("dict[str, Any]", response.json())
            patch = merge_patch(live, merged_object(document, live, annotate=False))
            return live, await send_patch(client, document, live, patch, params) if patch else live
        except (AlreadyExistsError, ConflictError):
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _masked(live: dict[str, Any] | None, merged: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Replace the values of a Secret; those that differ still do."""
    data: list[dict[str, Any]] = [(obj or {}).get("data") or {} for obj in (live, merged)]
    masked: list[dict[str, str]] = [{}, {}]
    for key in {**data[0], **data[1]}:
        differs = key in data[0] and key in data[1] and data[0][key] != data[1][key]
        for index, when in enumerate(("before", "after")):
            if key in data[index]:
                masked[index][key] = f"*** ({when})" if differs else "***"
    return None if live is None else _with_data(live, masked[0]), _with_data(merged, masked[1])


def _with_data(obj: dict[str, Any], data: dict[str, str]) -> dict[str, Any]:
    masked = {**obj, "data": data} if "data" in obj else dict(obj)
    annotations = obj["metadata"].get("annotations") or {}
    if LAST_APPLIED in annotations:  # it has the values as well
        masked["metadata"] = {**obj["metadata"], "annotations": {**annotations, LAST_APPLIED: "***"}}
    return masked


def _text(obj: dict[str, Any] | None, *, with_managers: bool) -> str:
    if obj is None:
        return ""
    if not with_managers:
        metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
        obj = {**obj, "metadata": metadata}
    return to_yaml(obj)


def _file_name(document: Document) -> str:
    resource = document.resource
    group = f"{resource.group}." if resource.group else ""
    return f"{group}{resource.version}.{resource.kind}.{document.namespace or ''}.{document.name}"


# --- the program ------------------------------------------------------------------------------------------------------


async def _run_program(session: Session, files: list[tuple[str, str, str]]) -> int:
    given = session.environ.get("KUBECTL_EXTERNAL_DIFF", "")
    program, *words = given.split(" ") if given else ["diff", "-u", "-N"]
    words = [word for word in words if _WORD.fullmatch(word)]
    with _directory("LIVE-") as live, _directory("MERGED-") as merged:
        for name, before, after in files:
            _write(live, name, before)
            _write(merged, name, after)
        session.out.flush()
        try:
            code = await _pass_on([program, *words, live, merged], session)
        except OSError as exc:
            what = "executable file not found in $PATH" if isinstance(exc, FileNotFoundError) else exc.strerror
            raise CommandError(f'failed to run "{program}": exec: "{program}": {what}') from exc
    if code > 1 or code < 0:
        raise CommandError(f'failed to run "{program}": exit status {code}')
    return code


def _directory(prefix: str) -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix=prefix)
    except OSError as exc:
        raise CommandError(f"no temporary directory can be created: {(exc.strerror or str(exc)).lower()}") from exc


def _write(directory: str, name: str, text: str) -> None:
    path = Path(directory, name)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise CommandError(f"open {path}: {(exc.strerror or str(exc)).lower()}") from exc


async def _pass_on(command: list[str], session: Session) -> int:
    """Run a program whose output is that of the tool, and return its exit code."""
    try:
        done = await trio.run_process(command, stdout=session.out.fileno(), stderr=session.err.fileno(), check=False)
    except io.UnsupportedOperation:  # not files, but buffers
        done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
        session.print(done.stdout.decode(errors="replace"), end="")
        session.err.write(done.stderr.decode(errors="replace"))
    return done.returncode
