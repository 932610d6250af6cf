"""``examples/apply_manifests.py`` applies, prunes and deletes, and names what is wrong by file and line."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.support.processes import HERE_OR_AS_PROCESS, KUBECONFIG, Result, serving_in_a_thread
from trioformer.testing import APIServer, serve_http

PROGRAM = "examples/apply_manifests.py"


@pytest.fixture(params=HERE_OR_AS_PROCESS)
def result(request: pytest.FixtureRequest) -> Result:
    """Runs a program that ends by itself."""
    return request.param  # type: ignore[no-any-return]  # pytest does not know


def config_map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"


def test_manifests_are_applied_pruned_and_deleted(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "all.yaml"
    with serving_in_a_thread(partial(serve_http, APIServer())) as url:
        (tmp_path / "kubeconfig").write_text(KUBECONFIG.format(url=url))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        file.write_text(f"{config_map('a')}---\n{config_map('b')}")
        lines = [f"ConfigMap {name} in namespace default created" for name in "ab"]
        lines += [f"ConfigMap {name} ({file}:{line}): it exists" for name, line in (("a", 1), ("b", 6))]
        code, output, errors = result(PROGRAM, str(file), "--set", "all")
        assert (code, sorted(output), errors) == (0, sorted(lines), [])
        file.write_text(config_map("a"))
        lines = [
            "ConfigMap a in namespace default unchanged",
            "ConfigMap b in namespace default pruned",
            f"ConfigMap a ({file}:1): it exists",
        ]
        assert result(PROGRAM, str(file), "--set", "all") == (0, lines, [])
        assert result(PROGRAM, str(file), "--delete") == (0, ["ConfigMap a deleted"], [])


def test_a_mistake_is_one_line_with_file_and_line(result: Result, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(f"{config_map('a')}  name: b\n")
    problem = f"{file}:5:3: has a key twice in one mapping: remove one of them"
    code, output, errors = result(PROGRAM, "--embedded", str(file))
    assert (code, output) == (1, [])
    (line,) = errors
    assert line.endswith(problem)
