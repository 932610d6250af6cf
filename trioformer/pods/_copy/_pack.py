"""Create a tar archive of local files, piece by piece.

The archive has the GNU format, because busybox ignores long names in the POSIX format.
"""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from typing import Final, final

from ..._text import quoted
from ._results import CopyProblem, Counter, is_inside, local_problem

_BATCH: Final = 256 * 1024
_BLOCK: Final = tarfile.BLOCKSIZE
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS: Final = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@final
class Packer:
    """A writer for the archive of a file or directory, to be used in a thread and closed afterwards.

    Attributes:
        name: The base name of the file or directory.
        is_file: Whether the source is a file.
        mode: The permissions of the file or directory.

    Raises:
        CopyProblem: The source cannot be read, or is neither a file nor a directory.
    """

    def __init__(self, path: str, counter: Counter) -> None:
        self._path = path
        self.name = os.path.basename(os.path.abspath(path))
        self._counter = counter
        self._buffer = bytearray(_BATCH)
        self._view = memoryview(self._buffer)
        self._used = 0
        self._sent = 0
        try:
            # Before opening, because opening some devices has side effects.
            found = os.stat(path)
            if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
                raise CopyProblem(f"{quoted(path)} is {_kind(found.st_mode)}, not a file or directory")
            self._fd = os.open(path, _FILE & ~os.O_NOFOLLOW)
        except OSError as exc:
            raise local_problem(exc, path) from exc
        self._stat = os.fstat(self._fd)
        self.is_file = stat.S_ISREG(self._stat.st_mode)
        self.mode = self._stat.st_mode & 0o777

    def close(self) -> None:
        """Close the source."""
        os.close(self._fd)

    def run(self, name: str, send: Callable[[memoryview], None]) -> None:
        """Create the archive.

        Args:
            name: The name in the archive if the source is a single file.
            send: A function that is called with the next bytes of the archive. The function must not keep a reference
                to the bytes.
        """
        try:
            if self.is_file:
                self._counter.path = self.name
                self._put_file(self._fd, self._stat, name, send)
            else:
                self._put_directory(send)
        except OSError as exc:
            path = self._path if self.is_file else os.path.join(self._path, self._counter.path)
            raise local_problem(exc, path) from exc
        self._put(bytes(2 * _BLOCK), send)
        # With whole records, GNU tar does not wait for the end of its input.
        self._put(bytes(-(self._sent + self._used) % tarfile.RECORDSIZE), send)
        self._flush(send)

    def _put_directory(self, send: Callable[[memoryview], None]) -> None:
        stack: list[tuple[int, tuple[str, ...], Iterator[str]]] = []
        try:
            stack.append((os.dup(self._fd), (), self._names(self._fd)))
            while stack:
                fd, parts, names = stack[-1]
                name = next(names, None)
                if name is None:
                    stack.pop()
                    os.close(fd)
                    continue
                path = (*parts, name)
                entered = self._put_entry(fd, path, send)
                if entered is not None:
                    try:
                        stack.append((entered, path, self._names(entered)))
                    except BaseException:
                        os.close(entered)
                        raise
        finally:
            for fd, _, _ in stack:
                os.close(fd)

    @staticmethod
    def _names(fd: int) -> Iterator[str]:
        return iter(sorted(os.listdir(fd)))

    def _put_entry(self, parent: int, path: tuple[str, ...], send: Callable[[memoryview], None]) -> int | None:
        """Add a directory entry to the archive; if the entry is a directory, return its descriptor."""
        counter, name, whole = self._counter, path[-1], "/".join(path)
        counter.path = whole
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                target = os.readlink(name, dir_fd=parent)
                if is_inside(path, target):
                    counter.links += 1
                    self._put_header(whole, found, tarfile.SYMTYPE, send, linkname=target)
                else:
                    counter.skip(whole, f"a link to {quoted(target)}, outside of the directory")
                return None
            if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
                counter.skip(whole, _kind(found.st_mode))
                return None
            fd = os.open(name, _DIRECTORY if stat.S_ISDIR(found.st_mode) else _FILE, dir_fd=parent)
        except FileNotFoundError:
            counter.skip(whole, "deleted during the copy")
            return None
        except OSError as exc:
            raise local_problem(exc, os.path.join(self._path, *path)) from exc
        try:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                counter.directories += 1
                self._put_header(whole, found, tarfile.DIRTYPE, send)
                return os.dup(fd)
            if stat.S_ISREG(found.st_mode):
                self._put_file(fd, found, whole, send)
            else:
                counter.skip(whole, _kind(found.st_mode))
            return None
        finally:
            os.close(fd)

    def _put_file(self, fd: int, found: os.stat_result, name: str, send: Callable[[memoryview], None]) -> None:
        size = found.st_size
        self._put_header(name, found, tarfile.REGTYPE, send, size=size)
        left = size
        while left > 0:
            if self._used == _BATCH:
                self._flush(send)
            read = os.readv(fd, [self._view[self._used : self._used + min(left, _BATCH - self._used)]])
            if not read:
                problem = f"the file became shorter by {left} bytes during the copy; copy it again"
                raise CopyProblem(f"{quoted(os.path.join(self._path, self._counter.path))}: {problem}")
            left -= read
            self._used += read
            self._counter.bytes += read
        self._put(bytes(-size % _BLOCK), send)
        self._counter.files += 1

    def _put_header(
        self,
        name: str,
        found: os.stat_result,
        kind: bytes,
        send: Callable[[memoryview], None],
        *,
        size: int = 0,
        linkname: str = "",
    ) -> None:
        header = tarfile.TarInfo(name)
        header.type = kind
        header.size = size
        header.mode = found.st_mode & 0o777
        header.mtime = int(found.st_mtime)
        header.linkname = linkname
        self._put(header.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"), send)

    def _put(self, data: bytes, send: Callable[[memoryview], None]) -> None:
        for start in range(0, len(data), _BLOCK):
            piece = data[start : start + _BLOCK]
            if self._used + len(piece) > _BATCH:
                self._flush(send)
            self._view[self._used : self._used + len(piece)] = piece
            self._used += len(piece)

    def _flush(self, send: Callable[[memoryview], None]) -> None:
        if self._used:
            send(self._view[: self._used])
            self._sent += self._used
            self._used = 0


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "a special file")
