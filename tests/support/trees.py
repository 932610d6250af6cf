"""Directories with files of all kinds, and what is in them."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def make_tree(root: Path) -> None:
    """Create a directory with directories, links, unusual names and unusual permissions."""
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "text").write_text("hello\n")
    (root / "a" / "program").write_text("#!/bin/sh\n")
    (root / "a" / "program").chmod(0o751)
    (root / "secret").write_bytes(b"\x00\xff" * 1_000)
    (root / "secret").chmod(0o600)
    (root / "empty").touch()
    (root / "empty directory").mkdir(mode=0o700)
    (root / "ünï\n-cödé\\ \t$(x)").write_text("unicode")
    (root / "-rf").write_text("a flag")
    os.close(os.open(os.fsencode(root) + b"/not utf-8 \xff", os.O_CREAT))
    deep = root / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    (deep / ("f" * 200)).write_text("a long path")
    (root / ("l" * 150)).symlink_to("d" * 120 + "/" + "e" * 120)
    (root / "block").write_bytes(bytes(512))
    (root / "batch").write_bytes(bytes(range(256)) * 1_024)
    (root / "a" / "up").symlink_to("../secret")
    (root / "down").symlink_to("a/b/text")
    (root / "closed").mkdir()
    (root / "closed" / "file").write_text("inside")
    (root / "closed").chmod(0o555)


def describe_tree(root: Path) -> dict[str, object]:
    """Return what is in a directory: permissions and content of files, permissions of directories, links."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        name = str(path.relative_to(root))
        if stat.S_ISLNK(mode):
            found[name] = os.readlink(path)
        elif stat.S_ISDIR(mode):
            found[name] = oct(mode & 0o7777)
        else:
            found[name] = (oct(mode & 0o7777), path.read_bytes())
    return found
