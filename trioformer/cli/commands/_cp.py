"""The command ``cp``, which copies files and directories to and from containers (kubectl ``pkg/cmd/cp``)."""

from __future__ import annotations

import argparse
import os
import posixpath
from typing import TYPE_CHECKING, final

import attrs
import trio

from ..._text import one_line
from ...errors import StatusError
from ...models import to_dict
from ...models.core_v1 import Pod
from ...pods import run_in_pod
from .._arguments import Parser
from .._failures import CommandError
from .._session import Session
from ._pods import choose_container, has_ended

if TYPE_CHECKING:
    from ...client import Api, Client

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``cp``."""
    parser.add_argument("-c", "--container", default="", help="Container name; by default as for exec")


@final
@attrs.frozen
class _Place:
    """The path of a file, either local or in a pod."""

    path: str
    pod: str = ""
    namespace: str = ""

    @classmethod
    def parse(cls, text: str) -> _Place:
        before, colon, path = text.partition(":")
        parts = before.split("/")
        if not colon:
            return cls(_without_slash(text))
        if not before or len(parts) > 2:
            raise CommandError("filespec must match the canonical format: [[namespace/]pod:]file/path")
        return cls(_without_slash(path), parts[-1], parts[0] if len(parts) == 2 else "")


def _without_slash(path: str) -> str:
    return path.rstrip("/") or path[:1]


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``cp``."""
    from ...pods import copy_from_pod, copy_to_pod  # noqa: PLC0415  # not available on Windows

    if len(flags.arguments) != 2:
        raise CommandError("source and destination are required")
    source, target = (_Place.parse(each) for each in flags.arguments)
    if source.pod and target.pod:
        raise CommandError("one of src or dest must be a local file specification")
    if not source.path or not target.path:
        raise CommandError("filepath can not be empty")
    if not (source.pod or target.pod):
        raise CommandError("one of src or dest must be a remote file specification")
    if target.pod and not await trio.to_thread.run_sync(os.path.exists, source.path):
        raise CommandError(f"{source.path} doesn't exist in local filesystem")
    async with session.open_client() as client:
        container, pods = await _find(client, session, source if source.pod else target, flags.container)
        if source.pod:
            await _make_directory(trio.Path(target.path).parent)
            result = await copy_from_pod(pods, source.pod, source.path, target.path, container=container)
        else:
            path = await _path_for(pods, target, container)
            result = await copy_to_pod(pods, target.pod, source.path, path, container=container)
    for path, reason in result.skipped.items():
        session.note(f"warning: skipping {one_line(path)}: {reason}")
    if more := result.skipped_count - len(result.skipped):
        session.note(f"warning: skipping {more} more")
    return None


async def _find(client: Client, session: Session, place: _Place, container: str) -> tuple[str, Api[Pod]]:
    """Return the name of the container, and the API for pods in its namespace."""
    pods = client.api(Pod, namespace=place.namespace or session.namespace)
    pod = to_dict(await pods.get(place.pod))
    if phase := has_ended(pod):
        raise CommandError(f"cannot exec into a container in a completed pod; current phase is {phase}")
    return choose_container(pod, container, session.note)["name"], pods


async def _make_directory(directory: trio.Path) -> None:
    try:
        await directory.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise CommandError(f"mkdir {directory}: {(exc.strerror or str(exc)).lower()}") from exc


async def _path_for(pods: Api[Pod], target: _Place, container: str) -> str:
    """Return the path to copy to, with a trailing slash if the path is an existing directory.

    As in kubectl, a file is then copied into the directory.
    """
    try:
        checked = await run_in_pod(pods, target.pod, ["test", "-d", target.path], container=container, check=False)
    except StatusError:
        return target.path  # copy_to_pod() raises the error
    return target.path if checked.exit_code else posixpath.join(target.path, "")
