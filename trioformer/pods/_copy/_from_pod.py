"""Files that are copied from a container."""

from __future__ import annotations

import os
import posixpath
from typing import Final

import trio

from ...client import Api, ObjectRef
from ...client._internal import check_api, located
from ...errors import CopyFailedError
from ...models.core_v1 import Pod
from .._exec import exec_in_pod
from .._processes import PodProcess
from ._process import StandardError, check_end, run_beside, run_in_thread, safe_argument
from ._process import split_path as _split
from ._results import CopyProblem, CopyResult, Counter
from ._unpack import DamagedArchive, RemoteLink, Unpacker

_MAX_LINKS: Final = 40
"""Symbolic links in a row, as for Linux."""


async def copy_from_pod(
    api: Api[Pod],
    name: str | ObjectRef | Pod,
    source: str,
    target: str | os.PathLike[str],
    *,
    namespace: str | None = None,
    container: str | None = None,
) -> CopyResult:
    """Copy a file or a directory from a container to this machine.

    ::

        await copy_from_pod(client.api(Pod, namespace="default"), "db-0", "/var/backups", "backups")

    The container needs ``tar``.
    The archive that it sends is not trusted: nothing is written outside of the target, and through no symbolic link
    below it, whatever the archive contains.
    The permissions of files and new directories are copied, without setuid, setgid and sticky; owners and times are
    not.
    Symbolic links are copied if they lead to something inside of the directory; other links, devices, FIFOs and
    sockets are skipped, and the result names them.
    A file is written under another name, and has its own when it is complete.

    Args:
        api: The API of pods.
        name: As for :func:`exec_in_pod`.
        source: The path in the container, relative to its working directory; a symbolic link is followed.
        target: What it is called here, as for :func:`shutil.copytree`: a directory that exists gets the content of the
            directory, and a file that exists is replaced.  Text that ends with ``/`` is the directory to copy it into.
        namespace: As for :func:`exec_in_pod`.
        container: As for :func:`exec_in_pod`.

    Raises:
        CopyFailedError: There is no such file, or tar has failed, or is missing; or the archive is damaged, or has
            paths that were not requested; or a file cannot be written, for which the directory of the target must
            exist.  If tar has left out some files, the others are there.
        StatusError: As for :func:`exec_in_pod`.
        ValueError: ``source`` is empty.
        UnexpectedResponseError: As for :func:`exec_in_pod`.
        ConnectionFailedError: As for :func:`exec_in_pod`; or the connection ended before the archive did.

    Cancellation:
        Ends the connection.  The files that are complete are there, and no other file.

    Memory:
        A few MiB, whatever the size of the files.
    """
    check_api(api, "api")
    if not source:
        raise ValueError("the source must be a path, not an empty text")
    path, local = source, os.fspath(target)
    if local.endswith("/"):
        base = posixpath.basename(path.rstrip("/"))
        if base in ("", ".", ".."):
            raise ValueError(f"{source!r} has no name that it could have in {local!r}; name the target")
        local = os.path.join(local, base)
    pod = located(api, "copy_from_pod", name, namespace)
    where = f"{pod.operation('copy from')}: {source} to {local}"
    for _ in range(_MAX_LINKS):
        directory, root = _split(path)
        command = ["tar", "-cf", "-", "-C", directory, safe_argument(root)]
        counter = Counter()
        async with exec_in_pod(api, pod.name, command, namespace=pod.namespace, container=container) as process:
            link = await _receive(process, root, local, where, counter)
        if link is None:
            return counter.result()
        path = posixpath.join(posixpath.dirname(path.rstrip("/")), link)
    raise CopyFailedError(f"{where}: more than {_MAX_LINKS} symbolic links in a row")


async def _receive(process: PodProcess, root: str, local: str, where: str, counter: Counter) -> str | None:
    """Write the files of the archive; returns the target if the source is a symbolic link."""

    def unpack() -> None:
        unpacker = Unpacker(lambda: bytes(trio.from_thread.run(process.stdout.receive_some)), root, local, counter)
        try:
            unpacker.run()
        finally:
            unpacker.close()

    async def run(errors: StandardError) -> str | None:
        damage: DamagedArchive | None = None
        try:
            await run_in_thread(unpack)
        except RemoteLink as link:
            return link.target
        except DamagedArchive as exc:
            damage = exc  # perhaps because tar has failed
        except CopyProblem as exc:
            raise CopyFailedError(f"{where}: {exc}") from exc
        except trio.BrokenResourceError:
            pass  # check_end() raises why
        await check_end(process, errors, where, "tar")
        if damage is not None:
            raise CopyFailedError(f"{where}: {damage}") from damage
        return None

    return await run_beside(process, run)
