"""Reads a small file of the configuration: a kubeconfig, a token, a certificate, a key.

What a path names may have been made by somebody else, or by mistake: reading a FIFO waits for a writer, a device may
never end, and a file of ``/proc`` has more bytes than it says.
So only regular files are read, and only up to a limit.
Links are followed: Kubernetes mounts ConfigMaps and Secrets through them.
"""

from __future__ import annotations

import os
import stat
from typing import Final

from ._secret import Secret

MAX_SIZE: Final = 1 << 20
"""Bytes of a file that is read: as much as a ConfigMap or Secret may hold."""

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_PIECE: Final = 1 << 16
_TYPES: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class FileRefusedError(Exception):
    """The file is not read; the text is a predicate that follows its path."""


def read_file(path: str | os.PathLike[str], max_size: int = MAX_SIZE) -> Secret[bytes]:
    """Return the content of a regular file of at most ``max_size`` bytes, without waiting for a writer.

    Raises:
        FileRefusedError: It is no regular file, or is too large, or the path is not valid.
        OSError: It does not exist or cannot be read.
    """
    return read_file_and_mode(path, max_size)[0]


def read_file_and_mode(path: str | os.PathLike[str], max_size: int = MAX_SIZE) -> tuple[Secret[bytes], int]:
    """Return the content like :func:`read_file`, and the permissions (``st_mode``) of the file it was read from.

    Raises:
        FileRefusedError: As for :func:`read_file`.
        OSError: As for :func:`read_file`.
    """
    try:
        # Before it is opened, because opening some devices does something.
        _check(os.stat(path), max_size)
        descriptor = os.open(path, _FLAGS)
    except ValueError:  # a NUL or a character that a path cannot have
        descriptor = -1
    if descriptor < 0:
        raise FileRefusedError("is not a valid path")
    try:
        status = os.fstat(descriptor)
        _check(status, max_size)  # the file may be another one by now
        return _read(descriptor, max_size), status.st_mode
    finally:
        os.close(descriptor)


def _check(status: os.stat_result, max_size: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        found = _TYPES.get(stat.S_IFMT(status.st_mode), "something else")
        advice = ": write a file instead" if stat.S_ISFIFO(status.st_mode) else ""
        raise FileRefusedError(f"is {found}, not a regular file{advice}")
    if status.st_size > max_size:
        raise _too_large(max_size)


def _read(descriptor: int, max_size: int) -> Secret[bytes]:
    pieces: list[Secret[bytes]] = []
    left = max_size + 1
    while left > 0 and (piece := Secret(os.read(descriptor, min(left, _PIECE)))):
        pieces.append(piece)
        left -= len(piece.reveal())
    if left == 0:
        raise _too_large(max_size)
    return Secret(b"".join(piece.reveal() for piece in pieces))


def _too_large(max_size: int) -> FileRefusedError:
    text = f"has more than {max_size:,} bytes, the most that is read of such a file"
    return FileRefusedError(f"{text}: check the path, or remove what is not needed")
