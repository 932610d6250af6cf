"""The session of ``docs/howto/repl.rst`` at trio's own prompt."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.support.processes import KUBECONFIG, ROOT, serving_in_a_thread
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, serve_http

PAGE = ROOT / "docs/howto/repl.rst"
POD = "web-7d9c8b6f5-vj794"
"""As a simulated cluster names its pods; the page must not depend on it."""


def test_the_prompt_of_trio_awaits_and_keeps_a_client_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = APIServer()
    server.create(Pod(metadata=ObjectMeta(name=POD, namespace="default")))
    typed = PAGE.read_text().split("The prompt of trio\n")[1].split("A watch or an informer")[0]
    lines = [line.strip().removeprefix(">>> ") for line in typed.splitlines() if line.strip().startswith(">>> ")]
    kubeconfig = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    with serving_in_a_thread(partial(serve_http, server)) as url:
        kubeconfig.write_text(KUBECONFIG.format(url=url))
        ended = subprocess.run(
            [sys.executable, "-m", "trio"],
            input="\n".join([*lines, ""]),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert "Error" not in ended.stderr
    assert str([POD]) in ended.stdout
