"""What a control plane checks before it starts a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from trioformer.testing import ControlPlane, ControlPlaneError


async def test_nodes_need_the_stages_of_kwok_before_anything_is_started(tmp_path: Path) -> None:
    for program in ("etcd", "kube-apiserver", "kwok"):
        (tmp_path / program).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / program).chmod(0o755)
    with pytest.raises(ControlPlaneError, match=r"no file kwok\.yaml"):
        await ControlPlane(assets=tmp_path, nodes=["node-1"]).__aenter__()
