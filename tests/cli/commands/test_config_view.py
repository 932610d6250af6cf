"""``config view``: what of the kubeconfig is shown, and what cannot be."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli import Result, run_alone

CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "",
    "clusters": [{"name": "c", "cluster": {"server": "https://c.example", "certificate-authority": "ca.crt"}}],
    "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}, {"name": "two", "context": None}],
    "users": [
        {"name": "u", "user": {"client-certificate": "u.crt", "client-key": "u.key"}},
        {"name": "v", "user": {"exec": {"command": "x", "env": [{"name": "TOKEN", "value": "secret"}]}}},
        {"name": "w", "user": {"username": "w", "password": "secret", "token": "secret"}},
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(CONFIG))
    return path


async def view(file: Path, *arguments: str) -> Result:
    return await run_alone("config", "view", "--kubeconfig", str(file), *arguments)


async def test_files_are_put_into_the_output(file: Path) -> None:
    for name in ("ca.crt", "u.crt", "u.key"):
        (file.parent / name).write_text(f"content of {name}")
    shown = yaml.safe_load((await view(file, "--flatten", "--raw")).out)
    texts = [shown["clusters"][0]["cluster"]["certificate-authority-data"]]
    texts += [shown["users"][0]["user"][f"client-{name}-data"] for name in ("certificate", "key")]
    assert [base64.b64decode(text).decode() for text in texts] == [
        "content of ca.crt",
        "content of u.crt",
        "content of u.key",
    ]
    assert not {"client-certificate", "client-key"} & set(shown["users"][0]["user"])
    assert shown["users"][2] == CONFIG["users"][2]


async def test_what_is_secret_is_not_shown(file: Path) -> None:
    result = await view(file)
    users = yaml.safe_load(result.out)["users"]
    assert users[1]["user"]["exec"]["env"] == [{"name": "TOKEN", "value": "REDACTED"}]
    assert users[2]["user"] == {"username": "w", "password": "REDACTED", "token": "REDACTED"}
    assert "secret" not in result.out


async def test_a_context_without_parts_has_neither_cluster_nor_user(file: Path) -> None:
    shown = yaml.safe_load((await view(file, "--minify", "--context", "two")).out)
    assert (shown["clusters"], shown["users"], shown["current-context"]) == (None, None, "two")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["more"], "error: unexpected arguments: [more]\nSee 'trioformer config view -h' for help and examples"),
        (["-o", ""], 'error: unable to match a printer suitable for the output format ""'),
        (["-o", "wide"], 'error: unable to match a printer suitable for the output format "wide"'),
        (["--minify"], "error: current-context must exist in order to minify"),
        (["--minify", "--context", "three"], "error: cannot locate context three"),
        (["--flatten"], "error: open ca.crt: no such file or directory"),
    ],
)
async def test_what_cannot_be_shown_is_an_error(file: Path, arguments: list[str], error: str) -> None:
    result = await view(file, *arguments)
    assert (result.code, result.out, result.err) == (1, "", f"{error}\n")
