"""Connect the standard streams of the tool to a process in a container, for the command ``exec``."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Final

from ...errors import ConnectionFailedError, StatusError
from ...pods import interact
from .._arguments import Parser, duration
from .._failures import CommandError
from .._session import Session

if TYPE_CHECKING:
    from ...pods import PodProcess

__all__ = ["add_process_flags", "connect", "has_terminal"]

_STDIN: Final = 0
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The error numbers that only a write can cause."""


def add_process_flags(parser: Parser) -> None:
    """Add the flags of commands that execute a process."""
    parser.add_argument("-c", "--container", default="", help="Container name; by default the annotated or first one")
    parser.add_switch("-i", "--stdin", help="Pass stdin to the container")
    parser.add_switch("-t", "--tty", help="Stdin is a TTY")
    parser.add_switch("-q", "--quiet", help="Only print output from the remote session")
    parser.add_argument(
        "--pod-running-timeout", type=duration, default=60.0, help="How long to wait for a pod, such as 30s"
    )


def has_terminal(session: Session, *, stdin: bool, tty: bool, quiet: bool) -> bool:
    """Return whether the process gets a terminal.

    The process can only have a terminal if standard input is a terminal too.
    """
    if not stdin:
        return False
    if sys.stdin is None:  # another file may have its file descriptor
        raise CommandError("-i requires standard input, but it is closed")
    if not tty:
        return False
    is_terminal = os.isatty(_STDIN)
    if not is_terminal and not quiet:
        session.note("Unable to use a TTY - input is not a terminal or the right kind of file")
    return is_terminal


async def connect(session: Session, process: PodProcess) -> int:
    """Connect the standard streams to a process until the process exits, and return its exit code.

    Raises:
        CommandError: If the node cannot execute the process, or if the connection or a standard stream fails.
    """
    session.out.flush()
    session.err.flush()
    try:
        out, err = session.out.fileno(), session.err.fileno()
    except (OSError, ValueError):
        return await _through_files(session, process)
    return await _interact(process, out, err)


async def _through_files(session: Session, process: PodProcess) -> int:
    """Connect a process to temporary files, and copy their content to outputs that have no file descriptor."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            return await _interact(process, out.fileno(), err.fileno())
        finally:
            for file, target in ((out, session.out), (err, session.err)):
                file.seek(0)
                target.write(file.read().decode(errors="replace"))


async def _interact(process: PodProcess, out: int, err: int) -> int:
    try:
        return await interact(process, stdin=_STDIN, stdout=out, stderr=err)
    except StatusError as exc:
        raise CommandError(exc.status_message) from exc
    except ConnectionFailedError as exc:
        raise CommandError(str(exc)) from exc
    except BrokenPipeError:  # the reader of the output has gone, which is not a failure
        raise
    except OSError as exc:
        is_output = process._stdin is None or exc.errno in _FULL
        what = "write to standard output" if is_output else "use standard input"
        raise CommandError(f"cannot {what}: {exc.strerror or exc}") from exc
