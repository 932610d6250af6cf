"""The certificates of a control plane need an extra."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest

from trioformer.testing.control_plane._certificates import issue_certificates


def test_without_trustme_the_import_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    monkeypatch.delitem(sys.modules, "trioformer.testing.control_plane._certificates", raising=False)
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("trioformer.testing.control_plane._certificates")
    assert str(caught.value) == (
        "trioformer.testing.ControlPlane needs trustme; install it with `pip install 'trioformer[testing]'`"
    )
    assert caught.value.name == "trustme"


def test_files_are_the_owners_alone_before_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    fchmod = os.fchmod

    def spy(file: int, mode: int) -> None:
        fchmod(file, mode)
        sizes.append(os.fstat(file).st_size)

    monkeypatch.setattr(os, "fchmod", spy)
    (tmp_path / "server.key").write_text("an earlier key")
    (tmp_path / "server.key").chmod(0o666)
    issue_certificates(tmp_path)
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {"0o600"}
    assert {*sizes} == {0}
    assert (tmp_path / "server.key").read_text().startswith("-----BEGIN")
