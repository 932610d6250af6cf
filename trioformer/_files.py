"""Read small files, such as kubeconfigs, tokens, certificates and manifests, and write private files."""

from __future__ import annotations

import errno
import os
import stat

from ._secret import Secret


def read_file(path: str | os.PathLike[str]) -> Secret[bytes]:
    """Return the content of a file.

    If the file is a FIFO or a device, the thread blocks until the writer has closed the file.

    Raises:
        OSError: The file does not exist or cannot be read, or the path is not valid.
    """
    try:
        with open(path, "rb") as file:
            return Secret(file.read())
    except ValueError:  # a NUL or a character that a path cannot have
        pass
    raise OSError(errno.EINVAL, "the path is not valid")


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a FIFO, such as a shell's ``<(…)``, or a character device.

    Reading such a file may block.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # reading the file says what is wrong
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def write_private(path: str | os.PathLike[str], content: Secret[bytes]) -> None:
    """Write a file that only its owner can read and write, and wait until its content is on the disk."""
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        if hasattr(os, "fchmod"):  # Windows has no modes
            os.fchmod(file.fileno(), 0o600)  # it may have existed
        file.write(content.reveal())
        file.flush()
        os.fsync(file.fileno())
