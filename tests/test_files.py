"""Files are read whole, and the error of one that is not says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from trioformer._files import is_stream, read_file


def test_the_content_is_a_secret(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a" * 2_000_000)
    (tmp_path / "link").symlink_to("file")
    content = read_file(tmp_path / "link")
    assert content.reveal() == b"a" * 2_000_000
    assert "a" * 10 not in repr(content)


@pytest.mark.parametrize("path", ["/a\0b", "/\ud800", "/gone", "/"])
def test_what_cannot_be_read_is_an_os_error(path: str) -> None:
    assert not is_stream(path)
    with pytest.raises(OSError, match=r"not valid|No such file|Is a directory"):
        read_file(path)
