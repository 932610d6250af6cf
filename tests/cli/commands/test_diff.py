"""``diff``: what apply would change, by an external program."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.cli import run
from trioformer.testing import APIServer

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: '1', b: '2'}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\ndata: {a: YWFh, b: YmJi}\n"


@pytest.fixture(autouse=True)
def _in_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str) -> None:
    Path("web.yaml").write_text(text)


def write_program() -> None:
    """Write a program that prints its arguments and the files, and exits with the number after ``-x``."""
    program = Path("show")
    program.write_text(
        f"#!{sys.executable}\nimport sys, os\nprint(sys.argv[1:-2], os.listdir(sys.argv[-1]))\n"
        "sys.exit(int(sys.argv[1][2:]))\n"
    )
    program.chmod(0o755)


def changes(out: str) -> list[str]:
    """Return the lines that differ."""
    return [line for line in out.splitlines() if line[0] in "+-" and line[:3] not in ("+++", "---")]


@pytest.mark.parametrize("mode", [[], ["--server-side"]])
async def test_differences_are_shown_and_the_exit_code_says_so(api_server: APIServer, mode: list[str]) -> None:
    write(CONFIG)
    result = await run(api_server, "diff", "-f", "web.yaml", *mode)
    assert (result.code, result.err) == (1, "")
    assert '+  a: "1"' in changes(result.out)
    assert "v1.ConfigMap.default.web" in result.out
    await run(api_server, "apply", "-f", "web.yaml", *mode)
    result = await run(api_server, "diff", "-f", "web.yaml", *mode)
    assert (result.code, result.out, result.err) == (0, "", "")
    write(CONFIG.replace("'2'", "'3'").replace("a: '1', ", ""))
    result = await run(api_server, "diff", "-f", "web.yaml", *mode)
    assert (result.code, changes(result.out)) == (1, ['-  a: "1"', '-  b: "2"', '+  b: "3"'])


async def test_values_of_secrets_are_masked_also_in_the_annotation(api_server: APIServer) -> None:
    write(SECRET)
    await run(api_server, "apply", "-f", "web.yaml")
    write(SECRET.replace("YmJi", "Y2Nj").replace("metadata: {name", "metadata: {labels: {x: z}, name"))
    result = await run(api_server, "diff", "-f", "web.yaml")
    assert changes(result.out) == ["-  b: '*** (before)'", "+  b: '*** (after)'", "+  labels:", "+    x: z"]
    assert not any(value in result.out for value in ("YWFh", "YmJi", "Y2Nj"))
    result = await run(api_server, "diff", "-f", "web.yaml", "--show-secrets")
    assert "+  b: Y2Nj" in changes(result.out)


async def test_another_program_is_called_with_plain_words_only(api_server: APIServer) -> None:
    write(CONFIG)
    write_program()
    for code in (0, 1):
        environ = {"KUBECTL_EXTERNAL_DIFF": f"./show -x{code} ;ls --b=c"}
        result = await run(api_server, "diff", "-f", "web.yaml", environ=environ)
        assert (result.code, result.err) == (code, "")
        assert result.out == f"['-x{code}', '--b=c'] ['v1.ConfigMap.default.web']\n"
    result = await run(api_server, "diff", "-f", "web.yaml", environ={"KUBECTL_EXTERNAL_DIFF": "./show -x3"})
    assert (result.code, result.err) == (2, 'error: failed to run "./show": exit status 3\n')


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "error: must specify one of -f and -k\n"),
        (["-f", "nope.yaml"], 'error: the path "nope.yaml" does not exist\n'),
        (["-f", "web.yaml", "--foo"], "error: unknown flag: --foo\nSee 'trioformer diff --help' for usage.\n"),
        (["-f", "web.yaml", "--force-conflicts"], "error: --force-conflicts only works with --server-side\n"),
        (["-f", "web.yaml", "-n", "nope"], 'Error from server (NotFound): namespaces "nope" not found\n'),
    ],
)
async def test_errors_have_another_exit_code_than_differences(
    api_server: APIServer, arguments: list[str], error: str
) -> None:
    write(CONFIG)
    result = await run(api_server, "diff", *arguments)
    assert (result.code, result.out, result.err) == (2, "", error)


async def test_a_missing_program_is_an_error(api_server: APIServer) -> None:
    write(CONFIG)
    result = await run(api_server, "diff", "-f", "web.yaml", environ={"KUBECTL_EXTERNAL_DIFF": "no-such-program"})
    problem = 'failed to run "no-such-program": exec: "no-such-program": executable file not found in $PATH'
    assert (result.code, result.err) == (2, f"error: {problem}\n")


async def test_files_that_cannot_be_written_are_errors(
    api_server: APIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "n" * 253
    write(CONFIG.replace("web", name))
    result = await run(api_server, "diff", "-f", "web.yaml")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith("error: open ")
    assert result.err.endswith(f"/v1.ConfigMap.default.{name}: file name too long\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    result = await run(api_server, "diff", "-f", "web.yaml")
    assert (result.code, result.out) == (2, "")
    assert result.err == "error: no temporary directory can be created: no such file or directory\n"
