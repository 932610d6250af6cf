"""Write files below a local directory, and never outside the directory.

Each directory is opened by its name in its parent directory, and never through a symbolic link.  So no path is
resolved twice.  Each file is written under a temporary name, and renamed when it is complete.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeAlias, final

from ..._text import quoted
from ._results import CopyProblem, local_problem

Parts: TypeAlias = tuple[str, ...]
"""The parts of a path relative to the directory; empty for the directory itself."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_CLOSED: Final = 100_000
"""The maximum number of directories without write permission; their modes are set only at the end."""


@final
class LocalTree:
    """A writer for files below a directory, to be used in a thread and closed afterwards.

    Raises:
        CopyProblem: A path cannot be written, contains a link, or must not be replaced.  Every method can also raise
            this exception.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with self._naming(()):
            self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._parent: Parts = ()
        self._parent_fd = self._root
        self._closed: list[tuple[Parts, int]] = []

    def close(self) -> None:
        """Close the directory."""
        self._leave()
        os.close(self._root)

    def set_mode(self, mode: int) -> None:
        """Set the permissions of the directory itself, as the last operation."""
        with self._naming(()):
            os.fchmod(self._root, mode & 0o777)

    def make_directory(self, parts: Parts, mode: int) -> None:
        """Create a directory; an existing directory keeps its permissions."""
        parent, name = self._enter(parts), parts[-1]
        with self._naming(parts):
            try:
                os.mkdir(name, 0o700, dir_fd=parent)
            except FileExistsError:
                os.close(self._open(parent, parts))  # it must be a directory
                return
            if mode & 0o700 == 0o700:
                self._chmod(parent, parts, mode)
            elif len(self._closed) < _MAX_CLOSED:
                self._closed.append((parts, mode))
            else:
                raise CopyProblem(f"the archive contains more than {_MAX_CLOSED} directories without write permission")

    def write_file(self, parts: Parts, mode: int, write: Callable[[int], None]) -> None:
        """Create or replace a file; ``write`` is called with a descriptor and writes the content."""
        parent, name = self._enter(parts), parts[-1]
        with self._naming(parts), self._temporary(parent, parts) as temporary:
            descriptor = os.open(temporary, _NEW_FILE, 0o600, dir_fd=parent)
            try:
                write(descriptor)
                os.fchmod(descriptor, mode & 0o777)
            finally:
                os.close(descriptor)
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)

    def make_symlink(self, parts: Parts, target: str) -> None:
        """Create or replace a symbolic link; the caller must check its target first."""
        parent, name = self._enter(parts), parts[-1]
        with self._naming(parts), self._temporary(parent, parts) as temporary:
            os.symlink(target, temporary, dir_fd=parent)
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)

    def make_hard_link(self, parts: Parts, existing: Parts) -> None:
        """Create or replace a hard link to another file below the directory."""
        if parts == existing:
            return
        with self._naming(existing):
            source = os.dup(self._enter(existing))
        try:
            parent, name = self._enter(parts), parts[-1]
            with self._naming(existing):
                if not stat.S_ISREG(os.stat(existing[-1], dir_fd=source, follow_symlinks=False).st_mode):
                    problem = "is not a regular file, so no hard link to it is created"
                    raise CopyProblem(f"{quoted(self._whole(existing))} {problem}")
            with self._naming(parts), self._temporary(parent, parts) as temporary:
                os.link(existing[-1], temporary, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False)
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
                # rename() does nothing if both are the same file.
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
        finally:
            os.close(source)

    def finish(self) -> None:
        """Set the final permissions of directories that must not be writable."""
        for parts, mode in reversed(self._closed):
            self._chmod(self._enter(parts), parts, mode)
        self._closed.clear()

    # --- paths ---

    def _whole(self, parts: Parts) -> str:
        return os.path.join(self._path, *parts)

    @contextmanager
    def _naming(self, parts: Parts) -> Iterator[None]:
        """Convert operating system errors to problems that contain the full path."""
        try:
            yield
        except OSError as exc:
            raise local_problem(exc, self._whole(parts)) from exc

    def _enter(self, parts: Parts) -> int:
        """Return a descriptor of a path's parent directory, which is created if it does not exist."""
        above = parts[:-1]
        if above == self._parent:
            return self._parent_fd
        self._leave()
        current = self._root
        for depth in range(1, len(above) + 1):
            found = -1
            try:
                with self._naming(above[:depth]):
                    with suppress(FileExistsError):
                        os.mkdir(above[depth - 1], 0o755, dir_fd=current)
                    found = self._open(current, above[:depth])
            finally:
                if current != self._root:
                    os.close(current)
            current = found
        self._parent, self._parent_fd = above, current
        return current

    def _leave(self) -> None:
        if self._parent_fd != self._root:
            os.close(self._parent_fd)
        self._parent, self._parent_fd = (), self._root

    def _open(self, parent: int, parts: Parts) -> int:
        try:
            return os.open(parts[-1], _DIRECTORY, dir_fd=parent)
        except OSError as exc:
            if exc.errno not in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK):
                raise
            problem = "is not a directory but a symbolic link or file; nothing is written through it"
            raise CopyProblem(f"{quoted(self._whole(parts))} {problem}") from exc

    def _chmod(self, parent: int, parts: Parts, mode: int) -> None:
        with self._naming(parts):
            descriptor = self._open(parent, parts)
            try:
                os.fchmod(descriptor, mode & 0o777)
            finally:
                os.close(descriptor)

    @contextmanager
    def _temporary(self, parent: int, parts: Parts) -> Iterator[str]:
        """Yield a temporary file name, and remove the file at the end if it was not renamed."""
        try:
            found = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False).st_mode
        except FileNotFoundError:
            pass
        else:
            if stat.S_ISDIR(found):
                raise CopyProblem(f"{quoted(self._whole(parts))} is a directory and cannot be replaced by a file")
            if not (stat.S_ISREG(found) or stat.S_ISLNK(found)):
                problem = "is not a regular file, so it is not replaced"
                raise CopyProblem(f"{quoted(self._whole(parts))} {problem}")
        name = f".trioformer-{secrets.token_hex(8)}.part"
        try:
            yield name
        except BaseException:
            with suppress(OSError):
                os.unlink(name, dir_fd=parent)
            raise
