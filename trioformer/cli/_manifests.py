"""The files of ``-f``: which they are, the objects in them, and where each of these belongs on the server."""

from __future__ import annotations

import argparse
import glob
import io
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import attrs
import trio

from .._files import is_stream
from ._failures import CommandError, describe_failure
from ._resources import group_kind

if TYPE_CHECKING:
    from ..client import Client
    from ..errors import TrioformerError
    from ..manifests import Manifest
    from ..manifests._internal import Target
    from ..models import ResourceInfo
    from ._arguments import Parser
    from ._session import Session

__all__ = ["Document", "add_file_flags", "find_documents", "has_files", "raise_all", "read_documents", "source_error"]

_NOTE: Final = "error when "
_URLS: Final = ("http://", "https://")


@final
@attrs.frozen
class Document:
    """An object of a file."""

    object: dict[str, Any]
    """The object as it was written, with its namespace."""
    resource: ResourceInfo
    """Its resource."""
    namespace: str | None
    """Its namespace; None if its kind is not namespaced."""
    source: str
    """The file; ``STDIN`` for standard input."""
    target: Target
    """The object as the library has loaded it, and its API."""

    @property
    def name(self) -> str:
        """Its name; empty if the server shall make one."""
        return str(self.object["metadata"].get("name") or "")

    @property
    def label(self) -> str:
        """How it is named in output: ``deployment.apps/web``."""
        return f"{group_kind(self.resource)}/{self.name}"

    def path(self, *, is_collection: bool = False) -> str:
        """Return the path of the object, or of its kind."""
        return self.resource.path(namespace=self.namespace, name=None if is_collection else self.name)


def add_file_flags(parser: Parser, what: str) -> None:
    """Add the flags that name files.

    Args:
        parser: The parser.
        what: What the files do, such as ``that contain the configuration to apply``.
    """
    parser.add_argument(
        "-f", "--filename", action="append", default=[], help=f"The files, or directories with files, {what}."
    )
    parser.add_argument("-k", "--kustomize", default="", help="Not supported: only kubectl has kustomize.")
    parser.add_switch(
        "-R", "--recursive", help="Process the directory used in -f, --filename recursively, with all it contains."
    )


def has_files(flags: argparse.Namespace) -> bool:
    """Whether files are given."""
    return bool(flags.filename or flags.kustomize)


async def read_documents(
    session: Session, flags: argparse.Namespace, client: Client, *, selector: str = "", may_generate_names: bool = False
) -> tuple[list[Document], list[Exception]]:
    """Load the files that are given, and find where each object belongs.

    Args:
        session: The session.
        flags: The flags of the command.
        client: The client.
        selector: A label selector; objects without these labels are left out.
        may_generate_names: Whether objects may have only a ``generateName``.

    Returns:
        The objects, in the order in which they should be applied, and an error for each whose kind is not served.

    Raises:
        CommandError: A file is not valid; a line for each problem.
        TrioformerError: The server did not say which kinds it serves.
    """
    manifests = await _load(flags)
    if selector:
        from ..models import LabelSelector  # noqa: PLC0415  # few uses have a selector

        try:
            parsed = LabelSelector.of(selector)
        except ValueError as exc:
            raise CommandError(str(exc)) from exc
        manifests = [each for each in manifests if parsed.matches(each.object.metadata.labels)]
    return await find_documents(session, client, manifests, may_generate_names=may_generate_names)


async def find_documents(
    session: Session, client: Client, manifests: list[Manifest], *, may_generate_names: bool = False
) -> tuple[list[Document], list[Exception]]:
    """Find where each object belongs; see :func:`read_documents`."""
    from ..errors import ManifestError, NotFoundError  # noqa: PLC0415  # with the files
    from ..manifests._internal import CRDS, find_targets  # noqa: PLC0415  # with the files
    from ..models import to_dict  # noqa: PLC0415  # with the files

    given = session.flags.namespace
    try:
        targets = await find_targets(client, manifests, session.namespace, may_generate_names=may_generate_names)
    except ManifestError as exc:
        raise _problems(exc) from exc
    documents: list[Document] = []
    places = {id(manifest): index for index, manifest in enumerate(manifests)}
    # The order of the files, as for kubectl; but what the others need to exist comes first.
    for target in sorted(targets.found, key=lambda one: (min(one.rank, CRDS + 1), places[id(one.manifest)])):
        obj = to_dict(target.object)
        place = target.api.namespace
        if place is not None:
            if given and place != given:
                raise CommandError(
                    f'the namespace from the provided object "{place}" does not match the namespace "{given}". You '
                    f"must pass '--namespace={place}' to perform this operation."
                )
            metadata = dict(obj["metadata"])
            obj["metadata"] = {**metadata, "namespace": place}
        source = target.manifest.file or "STDIN"
        documents.append(Document(obj, target.api.resource, place, source, target))
    errors: list[Exception] = []
    for manifest, error in targets.not_served:
        if not isinstance(error, NotFoundError):
            errors.append(error)
            continue
        obj = to_dict(manifest.object)
        errors.append(
            CommandError(
                f'resource mapping not found for name: "{manifest.object.name}" namespace: '
                f'"{manifest.object.namespace or ""}" from "{manifest.file or "STDIN"}": no matches for kind '
                f'"{obj["kind"]}" in version "{obj["apiVersion"]}"\nensure CRDs are installed first'
            )
        )
    return documents, errors


async def _load(flags: argparse.Namespace) -> list[Manifest]:
    if flags.kustomize:
        raise CommandError("-k is not supported; pipe the output of `kubectl kustomize DIRECTORY` into -f -")
    names = [name for each in flags.filename for name in each.split(",")]
    if not names:
        raise CommandError("must specify one of -f and -k")
    found: list[Manifest] = []
    for name in names:
        if name.startswith(_URLS):
            raise CommandError(f"{name}: URLs are not supported; pipe the output of `curl -fsSL URL` into -f -")
    for name in names:
        # In a thread: large files take seconds, and standard input as long as somebody writes.
        load = partial(_load_one, name, recursive=flags.recursive)
        found += await trio.to_thread.run_sync(load, abandon_on_cancel=True)
    return found


def _load_one(name: str, *, recursive: bool) -> tuple[Manifest, ...]:
    from ..errors import ManifestError  # noqa: PLC0415  # with the files
    from ..manifests import load_manifests  # noqa: PLC0415  # with the files

    stream = "STDIN" if name == "-" else ""
    try:
        if name == "-":
            return load_manifests(text=_standard_input())
        if is_stream(name):  # such as <(envsubst < web.yaml), or /dev/stdin
            stream = name
            return tuple(attrs.evolve(each, file=name) for each in load_manifests(text=_stream(name)))
        paths = [name] if os.path.lexists(name) else sorted(glob.glob(name))
        if not paths:
            raise CommandError(f'the path "{name}" does not exist')
        return load_manifests(*paths, recursive=recursive)
    except ManifestError as exc:
        raise _problems(exc, stream) from exc


def _stream(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as exc:
        raise CommandError(f"{name} cannot be read: {exc.strerror}") from exc


def _standard_input() -> bytes:
    """Read standard input to its end, below Python's buffer: that is locked when the program ends in the middle."""
    if sys.stdin is None:
        raise CommandError("standard input is closed")
    try:
        descriptor = sys.stdin.fileno()
    except io.UnsupportedOperation:  # not a file, but a buffer
        return sys.stdin.buffer.read()
    try:
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            return file.read()
    except OSError as exc:
        raise CommandError(f"standard input cannot be read: {exc.strerror}") from exc


def _problems(error: Any, source: str = "") -> CommandError:
    """Return the problems of files, each as a line that says where it is."""
    before = f"{source}: " if source else ""
    lines = [f"error: {before}{problem}" for problem in error.problems]
    return CommandError("\n".join(lines).replace("or pass recursive=True", "or use -R"), is_bare=True)


def source_error(verb: str, source: str, error: TrioformerError) -> Exception:
    """Return a rejection with the file that the object is in, as kubectl says it."""
    from ..errors import InvalidError, StatusError  # noqa: PLC0415  # after requests alone

    if isinstance(error, InvalidError):
        note = f'{_NOTE}{verb} "{source}"'
        if not error.details.kind and not error.details.name:  # of a patch, and nothing else says of which
            text = describe_failure(error, "")
            return CommandError(text.replace(" is invalid", f" is invalid: {note}", 1), is_bare=True)
        error.add_note(note)  # which kubectl says only of several errors
        return error
    if not isinstance(error, StatusError):
        return error
    message = f'error when {verb} "{source}": {error.status_message}'
    plain = describe_failure(error, "")
    return CommandError(plain.replace(error.status_message, message) if error.status_message else plain, is_bare=True)


def raise_all(errors: list[Exception]) -> None:
    """Raise the errors, if there are any."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("some objects failed", [_one_of_several(each) for each in errors])


def _one_of_several(error: Exception) -> Exception:
    """Return an error as kubectl prints it among others: without ``error: ``, and on one line."""
    from ..errors import InvalidError  # noqa: PLC0415  # after several errors alone

    if isinstance(error, CommandError):
        return CommandError(str(error), code=error.code, is_bare=True)
    if isinstance(error, InvalidError):
        notes = [each for each in getattr(error, "__notes__", ()) if each.startswith(_NOTE)]
        parts = [*notes, error.status_message]
        return CommandError(f"Error from server ({error.reason}): {': '.join(parts)}", is_bare=True)
    return error
