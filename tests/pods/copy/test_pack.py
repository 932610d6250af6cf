"""Archives of directories that change, or cannot be read, while they are made."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from trioformer.pods._copy._pack import Packer
from trioformer.pods._copy._results import CopyProblem, Counter


def test_a_file_that_is_deleted_meanwhile_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "first").write_bytes(bytes(600_000))
    (tmp_path / "second").write_text("x")
    counter = Counter()
    packer = Packer(str(tmp_path), counter)
    try:
        packer.run("", lambda _: (tmp_path / "second").unlink(missing_ok=True))
    finally:
        packer.close()
    assert (counter.files, counter.skipped) == (1, {"second": "deleted during the copy"})


@pytest.mark.parametrize("size", [200_000, 400_000])
def test_a_file_that_becomes_shorter_is_an_error_and_longer_is_not(size: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(300_000))
    counter = Counter()
    packer = Packer(str(tmp_path / "file"), counter)
    expected = pytest.raises(CopyProblem, match="became shorter") if size < 300_000 else nullcontext()
    try:
        with expected:
            packer.run("file", lambda _: os.truncate(tmp_path / "file", size))
    finally:
        packer.close()
    assert counter.bytes == (262_144 - 512 if size < 300_000 else 300_000)


@pytest.mark.parametrize("function", ["open", "listdir"])
def test_a_directory_that_cannot_be_read_is_named_and_none_stays_open(
    function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "inner").mkdir(parents=True)
    packer = Packer(str(tmp_path / "data"), Counter())
    before = len(os.listdir("/proc/self/fd"))
    real, calls = getattr(os, function), list[object]()

    def fail(path: object, *args: object, **more: object) -> object:
        calls.append(path)
        if path == "inner" or (function == "listdir" and len(calls) == 2):
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **more)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, function, fail)
            with pytest.raises(CopyProblem) as caught:
                packer.run("", lambda _: None)
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        packer.close()
    assert str(caught.value) == f"'{tmp_path}/data/inner': Permission denied"
