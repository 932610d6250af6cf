"""The tables that the embedded server takes from a release of kube-apiserver.

A line of a text table has a key, a space and a value.  The modules that use a table explain its values.
"""

from __future__ import annotations

import functools
import lzma
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, final

import attrs


@final
@attrs.frozen(eq=False)
class Release:
    """A directory with the tables of a release.  Files are read when they are first needed."""

    directory: Path
    _tables: dict[str, Mapping[str, bytes]] = attrs.field(init=False, repr=False, factory=dict)

    def read(self, name: str) -> bytes:
        """Return the decompressed content of a file, or no content if there is no file."""
        file = self.directory / name
        content = file.read_bytes() if file.is_file() else b""
        return lzma.decompress(content) if name.endswith(".xz") else content

    def table(self, name: str) -> Mapping[str, bytes]:
        """Return the values in a text table by their keys.  The file is read once."""
        table = self._tables.get(name)
        if table is None:
            lines = (line.partition(b" ") for line in self.read(name).splitlines())
            table = self._tables[name] = {key.decode(): value for key, _, value in lines}
        return table


INSTALLED: Final = Release(Path(__file__).parents[1] / "tables")
"""The release whose tables are part of trioformer."""


def open_release(path: str | os.PathLike[str] | None) -> Release:
    """Return the release whose tables are in a directory, or the installed release.

    Servers with the same directory share what was read.

    Raises:
        ValueError: The directory does not have all tables.
    """
    return INSTALLED if path is None else _open(Path(path).absolute())


@functools.cache
def _open(directory: Path) -> Release:
    names = sorted(each.name for each in INSTALLED.directory.iterdir())
    if missing := [name for name in names if not (directory / name).exists()]:
        problem = f"has no {', '.join(missing)}" if directory.is_dir() else "is not a directory"
        how = f"make the tables of a release with nox -s tables -- VERSION {directory}"
        raise ValueError(f"{directory} {problem}; {how}")
    return Release(directory)
