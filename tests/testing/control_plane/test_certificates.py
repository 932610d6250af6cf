"""The certificates of a control plane need an extra."""

from __future__ import annotations

import importlib
import sys

import pytest


def test_without_trustme_the_import_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    monkeypatch.delitem(sys.modules, "trioformer.testing.control_plane._certificates", raising=False)
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("trioformer.testing.control_plane._certificates")
    assert str(caught.value) == (
        "trioformer.testing.ControlPlane needs trustme; install it with `pip install 'trioformer[testing]'`"
    )
    assert caught.value.name == "trustme"
