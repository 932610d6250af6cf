"""Only regular files of a limited size are read, and nothing waits for them."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from trioformer import _files
from trioformer._files import MAX_SIZE, FileRefusedError, read_file, read_file_and_mode

TOO_LARGE = (
    "has more than 1,048,576 bytes, the most that is read of such a file: check the path, or remove what is not needed"
)


def refusal(path: str | Path) -> str:
    """Why the file is refused; in a thread, so that a read that waits fails the test instead of hanging it."""

    async def read() -> str:
        with trio.fail_after(10), pytest.raises(FileRefusedError) as caught:
            await trio.to_thread.run_sync(read_file, path, abandon_on_cancel=True)
        return str(caught.value)

    return trio.run(read)


def test_the_content_and_the_permissions_of_a_file_are_returned(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 200_000)
    path.chmod(0o640)
    content, mode = read_file_and_mode(path)
    assert content.reveal() == b"a" * 200_000
    assert stat.S_IMODE(mode) == 0o640
    assert "a" * 10 not in repr(content)
    assert read_file(str(path)) == content


def test_links_are_followed_as_in_a_mounted_secret(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "token").write_text("t")
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "token").symlink_to("..data/token")
    assert read_file(tmp_path / "token").reveal() == b"t"


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))  # the absolute path may be too long for a socket


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (make_fifo, "a FIFO"),
        (make_socket, "a socket"),
        (Path.mkdir, "a directory"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to("/dev/null"), "a device"),
    ],
)
def test_what_is_no_regular_file_is_refused_at_once(make: Callable[[Path], None], kind: str, tmp_path: Path) -> None:
    make(tmp_path / "it")
    advice = ": write a file instead" if kind == "a FIFO" else ""
    assert refusal(tmp_path / "it") == f"is {kind}, not a regular file{advice}"


def test_a_fifo_that_takes_the_place_of_the_file_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    before = os.stat(tmp_path / "file")
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.setattr(_files.os, "stat", lambda path: before)  # what was seen before the change
    assert refusal(tmp_path / "fifo") == "is a FIFO, not a regular file: write a file instead"


def test_a_file_may_have_a_mebibyte_and_not_a_byte_more(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * MAX_SIZE)
    assert len(read_file(path).reveal()) == 1_048_576
    path.write_bytes(b"a" * (MAX_SIZE + 1))
    assert refusal(path) == TOO_LARGE


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 40)
    monkeypatch.setattr(_files.os, "read", None)
    assert refusal(tmp_path / "sparse") == TOO_LARGE


def test_a_file_with_more_bytes_than_it_says_is_read_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert os.stat("/proc/self/status").st_size == 0
    assert read_file("/proc/self/status").reveal().startswith(b"Name:")
    (tmp_path / "file").write_text("x")
    asked: list[int] = []

    def endless(descriptor: int, size: int) -> bytes:
        asked.append(size)
        return b"0" * min(size, 4000)

    monkeypatch.setattr(_files.os, "read", endless)
    assert refusal(tmp_path / "file") == TOO_LARGE
    assert len(asked) == 263  # pieces of 4,000 bytes in 1,048,577


@pytest.mark.parametrize("path", ["/a\0b", "/\ud800"])
def test_a_path_that_cannot_be_is_refused(path: str) -> None:
    assert refusal(path) == "is not a valid path"


def test_a_file_that_cannot_be_opened_raises_the_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "gone")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic link"):
        read_file(tmp_path / "loop")


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "fifo")
    before = os.listdir("/proc/self/fd")
    read_file(tmp_path / "file")
    for path in (tmp_path / "fifo", tmp_path, tmp_path / "gone"):
        with pytest.raises((FileRefusedError, OSError)):
            read_file(path)
    assert os.listdir("/proc/self/fd") == before
