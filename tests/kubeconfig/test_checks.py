"""What an error about a server's URL shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from trioformer.kubeconfig._checks import CheckError, parse_server


def test_a_wrong_url_is_shown_without_query_and_fragment(tmp_path: Path) -> None:
    for url in ("ftp://h/p?token=s3cret", "https://h:port/p?token=s3cret", "h/p#s3cret?", "https:///p?s3cret#s3cret"):
        with pytest.raises(CheckError) as caught:
            parse_server(url)
        assert "s3cret" not in str(caught.value)
        assert "/p'" in str(caught.value)
