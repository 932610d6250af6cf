"""Checks the types in the Python blocks of all pages with mypy and pyright: ``python -m tests.docs.typed_pages``.

The blocks of a page become the body of one async function, in which names that are given to the page have any type, and
each whole program and those that run outside of trio the body of another.  Sessions at a prompt are not checked: a name
changes its type freely there.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.docs.blocks import ROOT, blocks_of, page_name, pages
from tests.docs.running import GIVEN, defined_names, is_program

HEAD = """\
from __future__ import annotations
from typing import Any
import trio
from trioformer import Client
def given() -> Any: ...
async def page(client: Client) -> None:
    ...
"""
CODES = (
    "import-not-found",  # a module of examples/, which pyright finds
    "no-any-return",  # of what is given
    "no-redef",  # the next block shows another reconcile
    "no-untyped-call",
    "no-untyped-def",  # tests are shown without annotations
    "unreachable",  # what follows a loop that only the end of the page cancels
)
PYRIGHT = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    "extraPaths": [str(ROOT), str(ROOT / "examples"), str(ROOT / "examples" / "first_controller")],
    # A block is a part of a program; what is given to it has any type, and tests are shown without annotations.
    **dict.fromkeys(
        (
            *("reportUnusedImport", "reportUnusedVariable", "reportUnusedFunction", "reportUnusedClass"),
            *("reportUnknownParameterType", "reportUnknownVariableType", "reportUnknownArgumentType"),
            *("reportUnknownMemberType", "reportMissingParameterType", "reportMatchNotExhaustive"),
            *("reportRedeclaration", "reportAssignmentType", "reportInvalidTypeForm"),  # the next block shows another
        ),
        "none",
    ),
}
IMPORTS = (ast.Import, ast.ImportFrom)
Line = tuple[str, str]
"""A line of a module, and where it is from."""


def lines_of(path: Path) -> Iterator[Line]:
    """Return the lines of a module with the blocks of a page."""
    yield from ((line, "") for line in HEAD.splitlines())
    given = GIVEN / f"{page_name(path)}.py"
    shown = [block for block in blocks_of(path) if block.language == "python" and not block.not_run]
    blocks = [block for block in shown if block.runs_in == "trio"]
    words = {word for block in blocks if block.included is None for word in re.findall(r"\w+", block.text)}
    if given.exists():
        yield from imports_of(given, given.read_text(), words)
        yield from ((f"    {name}: Any = given()", "") for name in returned_names(ast.parse(given.read_text())))
    programs = [block for block in blocks if block.included is None and is_program(block)]
    for block in blocks:
        if block in programs:
            tree = ast.parse(block.text)
            yield from ((f"    {ast.unparse(each)}", "") for each in tree.body if isinstance(each, IMPORTS))
            yield from ((f"    {name}: Any = given()", "") for name in defined_names(tree) if name != "main")
            continue
        if block.included is not None:
            yield from imports_of(block.included, block.text, words - {"main"})
            continue
        for number, line in enumerate(block.text.splitlines(), start=block.line):
            yield f"    {line}", f"{path.relative_to(ROOT)}:{number}"

    for way, head in (("asyncio", "async def in_asyncio() -> None:"), ("a thread", "def in_a_thread() -> None:")):
        yield from ((line, "") for line in (head, "    ..."))
        for block in shown:
            if block.runs_in == way:
                for number, line in enumerate(block.text.splitlines(), start=block.line):
                    yield f"    {line}", f"{path.relative_to(ROOT)}:{number}"

    for block in programs:
        yield f"async def program_{block.line}() -> None:", ""
        for number, line in enumerate(block.text.splitlines(), start=block.line):
            yield f"    {line}", f"{path.relative_to(ROOT)}:{number}"


def imports_of(path: Path, text: str, words: set[str]) -> Iterator[Line]:
    """Import what a file of ours defines and a page uses."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for name in sorted(words & set(defined_names(ast.parse(text)))):
        # The file of a page with a hyphen cannot be imported by name.
        can_be_imported = module.replace(".", "").isidentifier()
        yield (
            f"    from {module} import {name}" if can_be_imported else f"    {name}: Any = given()",
            str(path.relative_to(ROOT)),
        )


def returned_names(tree: ast.Module) -> Iterator[str]:
    """Return the names that the ``set_up`` of what is given returns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
            yield from (str(ast.literal_eval(key)) for key in node.value.keys if key is not None)


def main() -> int:
    """Write a module for each page, check them, and print what is found with the places in the pages."""
    places: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in pages():
            lines = list(lines_of(path))
            name = f"page_{page_name(path).replace('/', '_').replace('-', '_')}.py"
            places[name] = [place for _, place in lines]
            (Path(folder) / name).write_text("".join(f"{line}\n" for line, _ in lines))
        (Path(folder) / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
        mypy = ["mypy", "--config-file", str(ROOT / "pyproject.toml"), "--explicit-package-bases"]
        codes = [f"--disable-error-code={code}" for code in CODES]
        failed = check([*mypy, *codes, folder], places, MYPYPATH=str(ROOT))
        return check(["pyright", "--project", folder], places, PYRIGHT_PYTHON_IGNORE_WARNINGS="1") or failed


def check(command: list[str], places: dict[str, list[str]], **environment: str) -> int:
    """Run a checker, print what it finds, and return its exit code."""
    result = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, **environment},
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    print(
        re.sub(
            r"^\s*\S*?(page_\w+\.py):(\d+)", lambda m: places[m[1]][int(m[2]) - 1], result.stdout, flags=re.MULTILINE
        ),
        end="",
    )
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
