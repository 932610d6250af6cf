"""``examples/web``, on trio, served by hypercorn from the cache of an embedded cluster."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.processes import ROOT

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: default}
spec: {containers: [{name: main, image: nginx}]}
"""


@contextmanager
def started(*arguments: str, cwd: Path, kubeconfig: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a Python module that prints where it serves."""
    with subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=cwd,
        env={"KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(ROOT), "PATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = next(url for line in process.stdout if (url := re.search(r"https?://127\.0\.0\.1:\d+", line)))
            yield process, found[0]
        finally:
            process.kill()


def test_a_web_app_answers_from_its_cache(tmp_path: Path) -> None:
    config, pods = tmp_path / "config", tmp_path / "pods.yaml"
    pods.write_text(PODS)
    serve = ("trioformer.testing", "serve", "--bind=127.0.0.1:0", f"--load={pods}", f"--write-kubeconfig={config}")
    hypercorn = ("hypercorn", "-k", "trio", "--bind=127.0.0.1:0", "--access-logfile=-", "app:app")
    with (
        started(*serve, cwd=tmp_path, kubeconfig=config),
        started(*hypercorn, cwd=ROOT / "examples" / "web", kubeconfig=config) as (process, url),
    ):
        response = httpx.get(f"{url}/pods/default", trust_env=False)
        assert (response.status_code, response.json()) == (200, ["web-0"])
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    assert "Traceback" not in output
