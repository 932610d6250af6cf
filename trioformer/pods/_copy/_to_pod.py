"""Copy files to a container."""

from __future__ import annotations

import os
import secrets
from typing import Final

import trio

from ...client import Api, ObjectRef
from ...client._internal import check_api, located
from ...errors import CopyFailedError, TrioformerError
from ...models.core_v1 import Pod
from .._exec import exec_in_pod
from .._processes import PodProcess
from ._pack import Packer
from ._process import StandardError, check_end, run_beside, run_in_thread, safe_argument
from ._process import split_path as _split
from ._results import CopyProblem, CopyResult, Counter

# tar -m: the clock of the container may differ.
# A broken connection ends the input of tar inside of the archive, which is an error for tar.
_FILE_SCRIPT: Final = """\
if [ -e "$1/$3" ] && [ ! -f "$1/$3" ]; then echo "$1/$3 exists and is not a file" >&2; exit 1; fi
tar -xpmf - -C "$1" && mv -f "$1/$2" "$1/$3" || { code=$?; rm -f "$1/$2"; exit $code; }
"""
_DIRECTORY_SCRIPT: Final = """\
is_new=
if [ ! -d "$1" ]; then mkdir "$1" || exit 1; is_new=1; fi
tar -xpmf - -C "$1" || exit $?
if [ -n "$is_new" ]; then chmod "$2" "$1"; fi
"""


async def copy_to_pod(
    api: Api[Pod],
    name: str | ObjectRef | Pod,
    source: str | os.PathLike[str],
    target: str,
    *,
    namespace: str | None = None,
    container: str | None = None,
) -> CopyResult:
    """Copy a local file or directory to a container.

    ::

        await copy_to_pod(client.api(Pod, namespace="default"), "web-0", "site", "/srv/www")

    The container must have the programs ``sh`` and ``tar``.  Copying a single file also requires ``mv`` and ``rm``, and
    a new directory requires ``mkdir`` and ``chmod``.
    A single file is written under a temporary name, and renamed when it is complete.  The files in a directory are
    written in place.
    Permissions are copied, except the setuid, setgid and sticky bits.  Owners and times are not copied.
    A symbolic link is copied if it points to a path inside the source directory.  Other links, devices, FIFOs and
    sockets are skipped and listed in the result.

    Args:
        api: The API of pods.
        name: The pod; see :func:`exec_in_pod`.
        source: The local file or directory. A symbolic link is followed.
        target: The path of the copy in the container. The contents of a source directory are copied into an existing
            directory, and an existing file is replaced.  If the path ends with ``/``, the source itself is copied into
            this directory.
        namespace: The namespace of the pod; see :func:`exec_in_pod`.
        container: The name of the container; see :func:`exec_in_pod`.

    Raises:
        CopyFailedError: tar failed, a program is missing in the container, the source cannot be read or is neither a
            file nor a directory, or a file became shorter during the copy.
        TrioformerError: The server is older than Kubernetes 1.30 and cannot close the stdin of tar.
        StatusError: The server rejected the request; see :func:`exec_in_pod`.
        UnexpectedResponseError: The server or a proxy does not support WebSockets.
        ConnectionFailedError: No response arrived, or the connection ended before tar did.

    Cancellation:
        Closes the connection, which also closes the stdin of tar.  If a single file is incomplete, it is removed.  If a
        directory is copied, some of its files may remain, and one of them may be incomplete.

    Memory:
        The copy needs a few MiB of memory for files of any size, and memory for the names in the current directories.

    Returns:
        The result, which has the same fields as the result of :func:`copy_from_pod`.
    """
    check_api(api, "api")
    local = os.fspath(source)
    pod = located(api, "copy_to_pod", name, namespace)
    where = f"{pod.operation('copy to')}: {local} to {target}"
    counter = Counter()
    try:
        packer = await run_in_thread(lambda: Packer(local, counter))
        try:
            part, command, needs = _command(packer, target)
            async with exec_in_pod(
                api, pod.name, command, namespace=pod.namespace, container=container, stdin=True, stdout=False
            ) as process:
                if not process.can_close_stdin:
                    raise TrioformerError(
                        f"{where}: the server cannot close the stdin of tar; this requires Kubernetes 1.30 or later"
                    )
                await _send(process, packer, part, where, needs)
        finally:
            packer.close()
    except CopyProblem as exc:
        raise CopyFailedError(f"{where}: {exc}") from exc
    return counter.result()


def _command(packer: Packer, target: str) -> tuple[str, list[str], str]:
    """Return a single file's name in the archive, the command that reads the archive, and the required programs."""
    if target.endswith("/"):
        target += packer.name
    if packer.is_file:
        directory, name = _split(target)
        if name == ".":
            raise CopyProblem(f"{target!r} does not end with the name of a file")
        part = f".trioformer-{secrets.token_hex(8)}.part"
        return part, ["sh", "-c", _FILE_SCRIPT, "sh", directory, part, name], "sh, tar, mv and rm"
    return (
        "",
        ["sh", "-c", _DIRECTORY_SCRIPT, "sh", safe_argument(target), f"{packer.mode:o}"],
        "sh, tar, mkdir and chmod",
    )


async def _send(process: PodProcess, packer: Packer, part: str, where: str, needs: str) -> None:
    stdin = process.stdin

    async def run(errors: StandardError) -> None:
        is_complete = False
        with trio.CancelScope() as scope:
            errors.call_at_end(scope.cancel)
            try:
                await run_in_thread(lambda: packer.run(part, lambda data: trio.from_thread.run(stdin.send_all, data)))
                is_complete = True
                await stdin.aclose()
            except trio.BrokenResourceError:
                pass  # check_end() raises why
        await check_end(process, errors, where, needs)
        if not is_complete:
            raise CopyFailedError(f"{where}: tar exited before it had read the whole archive")

    await run_beside(process, run)
