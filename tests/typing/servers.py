"""The types of the embedded server, checked by mypy and pyright; never executed."""

from __future__ import annotations

from typing import assert_type

from trioformer.testing import APIServer
from trioformer.testing._state import APIServerSnapshot


def check_snapshot(server: APIServer) -> None:
    snapshot = server.snapshot()
    assert_type(snapshot, APIServerSnapshot)
    assert_type(snapshot.revision, int)
