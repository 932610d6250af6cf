"""The result of a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import attrs

from ..._text import quoted

MAX_SKIPPED: Final = 1_000
"""The maximum number of skipped files in a result."""


@final
@attrs.frozen
class CopyResult:
    """The result of a copy."""

    files: int
    """The number of files that were copied."""
    directories: int
    """The number of directories that were copied, without the requested one."""
    links: int
    """The number of symbolic links that were copied."""
    bytes: int
    """The size of the files together."""
    skipped: Mapping[str, str]
    """The first 1,000 files that were not copied, each with the reason, such as "a FIFO"."""
    skipped_count: int
    """The number of all files that were not copied."""


class CopyProblem(Exception):  # noqa: N818  # it becomes a CopyFailedError
    """The reason why files cannot be copied, without the source and target."""


def local_problem(error: OSError, path: str | None = None) -> CopyProblem:
    """Return the problem of a local file that cannot be read or written."""
    return CopyProblem(f"{quoted(path or str(error.filename))}: {error.strerror}")


@final
@attrs.define(eq=False)
class Counter:
    """Counts copied files."""

    path: str = ""
    """The current file."""
    files: int = 0
    directories: int = 0
    links: int = 0
    bytes: int = 0
    skipped: dict[str, str] = attrs.field(factory=dict)
    skipped_count: int = 0

    def skip(self, path: str, reason: str) -> None:
        """Count a skipped file."""
        self.skipped_count += 1
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped[path] = reason

    def result(self) -> CopyResult:
        """Return the result."""
        return CopyResult(self.files, self.directories, self.links, self.bytes, self.skipped, self.skipped_count)


def is_inside(parts: tuple[str, ...], target: str) -> bool:
    """Return whether a symbolic link points inside of the copied directory.

    Args:
        parts: The path of the link, relative to that directory.
        target: The target of the link.

    ``..`` is accepted only at the start: after a name that is a link, it would be the parent of the link's target.
    """
    if not target or target.startswith("/") or "\0" in target:
        return False
    depth = len(parts) - 1
    has_name = False
    for part in target.split("/"):
        if part == "..":
            if has_name or depth == 0:
                return False
            depth -= 1
        elif part not in ("", "."):
            has_name = True
    return True
