"""The kubeconfig files that ``config`` shows: which are read, and what is not valid."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.cli import run_alone


async def test_files_are_merged_and_the_first_with_an_entry_wins(tmp_path: Path) -> None:
    for number, server in enumerate(("https://a.example", "https://b.example")):
        clusters = [{"name": "c", "cluster": {"server": server}}, {"cluster": "without a name"}, "no entry"]
        (tmp_path / str(number)).write_text(yaml.safe_dump({"clusters": clusters, "current-context": str(number)}))
    (tmp_path / "empty").write_text("")
    files = [str(tmp_path / name) for name in ("empty", "0", "absent", "1", "0")]
    result = await run_alone("config", "view", environ={"KUBECONFIG": ":".join(files)})
    shown = yaml.safe_load(result.out)
    assert (result.code, shown["current-context"]) == (0, "0")
    assert shown["clusters"] == [{"cluster": {"server": "https://a.example"}, "name": "c"}]


async def test_without_a_variable_it_is_that_of_the_home_directory(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("current-context: here")
    assert (await run_alone("config", "current-context", environ={"HOME": str(tmp_path)})).out == "here\n"
    assert (await run_alone("config", "current-context", environ={})).err == "error: current-context is not set\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "cannot be read"),
        (b"[1]", "is not a kubeconfig"),
        (b"users: [{name: me, user: {token: secret", "is not YAML"),
    ],
)
async def test_what_is_no_kubeconfig_is_a_line_without_its_content(
    tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "config"
    file.write_bytes(content)
    result = await run_alone("config", "view", "--kubeconfig", str(file))
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert str(file) in result.err
    assert message in result.err
    assert "secret" not in result.err


async def test_a_file_that_is_named_must_exist(tmp_path: Path) -> None:
    result = await run_alone("config", "view", "--kubeconfig", str(tmp_path / "absent"))
    assert result.err == f"error: stat {tmp_path / 'absent'}: no such file or directory\n"
