"""Copy files from a container."""

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
"""The maximum number of symbolic links to follow, as in Linux."""


async def copy_from_pod(
    api: Api[Pod],
    name: str | ObjectRef | Pod,
    source: str,
    target: str | os.PathLike[str],
    *,
    namespace: str | None = None,
    container: str | None = None,
) -> CopyResult:
    """Copy a file or directory from a container to this machine.

    ::

        await copy_from_pod(client.api(Pod, namespace="default"), "db-0", "/var/backups", "backups")

    The container must have the program ``tar``.
    The archive from the container is not trusted.  Nothing is written outside the target or through a symbolic link in
    the target.
    The permissions of files and new directories are copied, except the setuid, setgid and sticky bits.  Owners and
    times are not copied.
    A symbolic link is copied if it points to a path inside the source directory.  Other links, devices, FIFOs and
    sockets are skipped and listed in the result.
    Each file is written under a temporary name, and renamed when it is complete.

    Args:
        api: The API of pods.
        name: The pod; see :func:`exec_in_pod`.
        source: The path in the container, relative to the container's working directory. A symbolic link is followed.
        target: The local path of the copy. The contents of a source directory are copied into an existing directory,
            and an existing file is replaced.  If the path ends with ``/``, the source itself is copied into this
            directory.
        namespace: The namespace of the pod; see :func:`exec_in_pod`.
        container: The name of the container; see :func:`exec_in_pod`.

    Raises:
        CopyFailedError: The source or the target's parent directory does not exist, tar failed or is missing, the
            archive is damaged or contains paths that were not requested, or a file cannot be written.  If tar could
            not read some files, all other files are still copied.
        StatusError: The server rejected the request; see :func:`exec_in_pod`.
        ValueError: ``source`` is empty.
        UnexpectedResponseError: The server or a proxy does not support WebSockets.
        ConnectionFailedError: No response arrived, or the connection ended before the archive was complete.

    Cancellation:
        Closes the connection.  Complete files remain, and partial files are removed.

    Memory:
        The copy needs a few MiB of memory for files of any size.

    Returns:
        The numbers of copied ``files``, ``directories``, ``links`` and ``bytes``, the first 1,000 ``skipped`` files
        with the reasons, and the total number of skipped files as ``skipped_count``.
    """
    check_api(api, "api")
    if not source:
        raise ValueError("source must not be empty")
    path, local = source, os.fspath(target)
    if local.endswith("/"):
        base = posixpath.basename(path.rstrip("/"))
        if base in ("", ".", ".."):
            raise ValueError(f"{source!r} does not end with a name; pass a full target path instead of {local!r}")
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
    raise CopyFailedError(f"{where}: more than {_MAX_LINKS} symbolic links to follow")


async def _receive(process: PodProcess, root: str, local: str, where: str, counter: Counter) -> str | None:
    """Write the files from the archive; if the source is a symbolic link, return the target of the link."""

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
            damage = exc  # perhaps because tar failed
        except CopyProblem as exc:
            raise CopyFailedError(f"{where}: {exc}") from exc
        except trio.BrokenResourceError:
            pass  # check_end() raises why
        await check_end(process, errors, where, "tar")
        if damage is not None:
            raise CopyFailedError(f"{where}: {damage}") from damage
        return None

    return await run_beside(process, run)
