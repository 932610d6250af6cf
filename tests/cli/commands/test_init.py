"""``init``: the project that it writes, whose own tests run here, and what it refuses.

``tests/e2e/test_init.py`` installs a project in an environment of its own, checks its code and runs it on a cluster.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
import trio
import yaml

from tests.support.cli import run_alone
from tests.support.processes import ROOT
from trioformer.manifests import load_manifests


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_in(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "arguments",
    [
        ("website-operator", "--kind", "Website"),
        ("pg", "--kind", "PostgresPolicy", "--group", "db.acme.dev", "--webhook"),
    ],
    ids=["usual", "with other words and webhooks"],
)
async def test_the_tests_of_a_new_project_pass_and_use_its_role(folder: Path, arguments: tuple[str, ...]) -> None:
    result = await run_alone("init", *arguments)
    assert (result.code, result.err) == (0, "")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    with trio.fail_after(120):
        tested = await trio.run_process(
            [*command, "--trioformer-rbac=deploy/role.yaml"],
            cwd=folder / arguments[0],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_stdout=True,
            check=False,
        )
    assert tested.returncode == 0, tested.stdout.decode()


async def test_the_tutorial_shows_what_is_printed_and_the_files(folder: Path) -> None:
    result = await run_alone("init", "website-operator", "--kind", "Website", "--group", "example.com")
    page = (ROOT / "docs" / "tutorial" / "your-own-operator.rst").read_text()
    assert f"   {result.out}" in page
    listed = set(re.findall(r"^``(\S+)``  ", page, re.MULTILINE))
    unlisted = {".gitignore", "README.md", "website_operator/__init__.py"}
    assert set(files_in(folder / "website-operator")) == listed | unlisted


async def test_no_word_of_the_templates_is_left(folder: Path) -> None:
    words = ["init", "pg", "--kind", "PostgresPolicy", "--group", "db.acme.dev"]
    assert (await run_alone(*words, "--webhook")).code == 0
    files = files_in(folder)
    text = "\n".join([*files, *files.values()]).lower()
    assert [word for word in ("website", "example.com", "--webhook\n") if word in text] == []
    assert "pg/deploy/postgrespolicies.db.acme.dev.yaml" in files
    assert "class PostgresPolicySpec(" in files["pg/pg/kinds.py"]
    assert "deployment_of(postgres_policy)" in files["pg/pg/controller.py"]
    assert "for PostgresPolicies" in files["pg/README.md"]


async def test_without_webhooks_no_file_mentions_them(folder: Path) -> None:
    assert (await run_alone("init", "web", "--kind", "Website")).code == 0
    assert "webhook" not in "\n".join([*(files := files_in(folder)), *files.values()]).lower()


async def test_the_manifests_fit_the_program(folder: Path) -> None:
    assert (await run_alone("init", "website-operator", "--kind", "Website")).code == 0
    deploy = folder / "website-operator" / "deploy"
    names = {each.object.name for each in load_manifests(deploy)}
    assert names == {"website-operator", "websites.example.com"}
    documents = [each for path in deploy.iterdir() for each in yaml.safe_load_all(path.read_text())]
    (pods,) = (each["spec"]["template"]["spec"] for each in documents if each["kind"] == "Deployment")
    (container,) = pods["containers"]
    (port,) = container["ports"]
    assert container["args"] == ["--http", f":{port['containerPort']}"]
    version = '"' + container["image"].partition(":")[2] + '"'
    assert f"version = {version}" in (deploy.parent / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ([], "name"),
        (["web"], "kind"),
        (["web", "operator", "--kind", "Website"], "name"),
        (["Web", "--kind", "Website"], "'Web'"),
        (["../web", "--kind", "Website"], "'../web'"),
        (["1-web", "--kind", "Website"], "'1-web'"),
        (["class", "--kind", "Website"], "'class'"),
        (["json", "--kind", "Website"], "'json'"),
        (["trio", "--kind", "Website"], "'trio'"),
        (["yaml", "--kind", "Website"], "'yaml'"),
        (["test", "--kind", "Website"], "'test'"),
        (["tests", "--kind", "Website"], "'tests'"),
        (["web", "--kind", "website"], "'website'"),
        (["web", "--kind", "Web-Site"], "'Web-Site'"),
        (["web", "--kind", "W" * 61], "'WWW"),
        (["web", "--kind", "Deployment"], "named Deployment"),
        (["web", "--kind", "Import"], "named import"),
        (["web", "--kind", "Warning"], "named Warning"),
        (["web", "--kind", "Website", "--group", "example"], "'example'"),
        (["web", "--kind", "Website", "--group", "Example.com"], "'Example.com'"),
        (["web", "--kind", "Website", "--group", "apps.k8s.io"], "'apps.k8s.io'"),
    ],
)
async def test_wrong_words_are_refused_and_nothing_is_written(folder: Path, arguments: list[str], wrong: str) -> None:
    result = await run_alone("init", *arguments)
    assert (result.code, result.out) == (1, "")
    assert wrong in result.err.splitlines()[0]
    assert os.listdir(folder) == []


async def test_the_help_lists_no_flags_for_a_connection() -> None:
    listed = re.findall("--[a-z]+", (await run_alone("init", "--help")).out.partition("options:")[2])
    assert listed == ["--kind", "--group", "--webhook"]


async def test_a_kind_may_have_a_word_of_the_descriptions(folder: Path) -> None:
    assert (await run_alone("init", "web", "--kind", "Cluster")).code == 0


@pytest.mark.parametrize("existing", ["README.md", "deploy/websites.example.com.yaml"])
async def test_no_file_is_overwritten_and_none_is_written_beside_it(folder: Path, existing: str) -> None:
    path = folder / "web" / existing
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    result = await run_alone("init", "web", "--kind", "Website")
    assert result.code == 1
    assert result.err.startswith(f"error: {Path('web', existing)} exists")
    assert files_in(folder) == {f"web/{existing}": "mine"}


async def test_a_folder_with_other_files_is_filled(folder: Path) -> None:
    path = folder / "web" / ".git" / "config"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert (await run_alone("init", "web", "--kind", "Website")).code == 0
    assert path.read_text() == "mine"
    assert (folder / "web" / "web" / "kinds.py").exists()


async def test_a_folder_that_cannot_be_made_is_one_line(folder: Path) -> None:
    (folder / "web").touch()
    result = await run_alone("init", "web", "--kind", "Website")
    assert result.code == 1
    assert result.err.startswith("error: cannot write web")
    assert result.err.count("\n") == 1
