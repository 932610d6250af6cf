"""Which of our tests assert what client-go's own tests do: the table of docs/design/parity.rst.

A test says it in its docstring, in a line of its own: ``client-go: TestIndexer, TestMultiIndexKeys``.
What client-go's tests assert is in docs/design/parity_rows.toml.  ``python -m tests.parity.table`` says what does
not fit; the documentation's build makes the table of both, so that nothing generated is checked in.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

TESTS = Path(__file__).resolve().parents[1]
ROWS = TESTS.parent / "docs" / "design" / "parity_rows.toml"

LINE = re.compile(r"^[ \t]*client-go:[ \t]*(.*?)\.?[ \t]*$", re.MULTILINE)
STATUSES = ("covered", "left out", "not yet")


@attrs.frozen
class Row:
    """What one or several of client-go's tests assert."""

    tests: tuple[str, ...]
    """Their names."""
    asserts: str
    """What, in a sentence."""
    number: int = 0
    """The place in the list of what was to be ported; 0 for what was added to it."""
    differs: str = ""
    """Where ours asserts something else on purpose."""
    left_out: str = ""
    """Why it does not apply."""
    not_yet: str = ""
    """What it will come with."""

    @property
    def name(self) -> str:
        """The name to speak of it by."""
        return self.tests[0]


@attrs.frozen
class Group:
    """Rows about one thing."""

    title: str
    """Its name."""
    source: str
    """Where client-go's tests of it are."""
    rows: tuple[Row, ...]
    """In client-go's order."""


@attrs.frozen
class Claim:
    """A line of a docstring."""

    path: str
    """The file, from the repository's root."""
    function: str
    """Whose docstring it is."""
    name: str
    """One of client-go's tests."""

    @property
    def is_tests(self) -> bool:
        """Whether a test says it."""
        return self.function.startswith("test_")

    @property
    def sentence(self) -> str:
        """What the test asserts."""
        return self.function.removeprefix("test_").replace("_", " ")


def read_rows(path: Path = ROWS) -> tuple[Group, ...]:
    """Read what client-go's tests assert."""
    groups = tomllib.loads(path.read_text())["group"]
    return tuple(
        Group(
            group["title"],
            group["source"],
            tuple(Row(**(row | {"tests": tuple(row["tests"])})) for row in group["row"]),
        )
        for group in groups
    )


def sources(folder: Path = TESTS) -> list[Path]:
    """The files whose docstrings are read."""
    return sorted(folder.rglob("*.py"))


def claims_of(source: str, path: str) -> Iterator[Claim]:
    """Read a file's docstrings, without importing it; those of helpers too, where a claim is a mistake."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            for line in LINE.findall(ast.get_docstring(node) or ""):
                for name in line.split(","):
                    yield Claim(path, getattr(node, "name", "the module"), name.strip())


def read_claims(folder: Path = TESTS) -> tuple[Claim, ...]:
    """Read the docstrings of all tests."""
    return tuple(
        claim
        for path in sources(folder)
        for claim in claims_of(path.read_text(), path.relative_to(folder.parent).as_posix())
    )


def is_meant(name: str, claimed: str) -> bool:
    """Whether a claim means one of client-go's tests; of a subtest it may give the title, whole or in part."""
    test, slash, subtest = name.partition("/")
    claimed_test, _, title = claimed.partition("/")
    if not slash:
        return name == claimed
    return test == claimed_test and subtest.replace("_", " ") in title.replace("_", " ")


def covering(row: Row, claims: Sequence[Claim]) -> list[Claim]:
    """The tests that assert a row; one that names several of its names is one test."""
    found = {
        (claim.path, claim.function): claim
        for claim in claims
        if claim.is_tests and any(is_meant(name, claim.name) for name in row.tests)
    }
    return list(found.values())


def status(row: Row, claims: Sequence[Claim]) -> str:
    """One of ``STATUSES``, or nothing."""
    if covering(row, claims):
        return "covered"
    return "left out" if row.left_out else "not yet" if row.not_yet else ""


def complaints(groups: Sequence[Group], claims: Sequence[Claim]) -> list[str]:
    """What does not fit together, each in a line that says what to do."""
    rows = [row for group in groups for row in group.rows]
    found: list[str] = []
    names = Counter(name for row in rows for name in row.tests)
    found += [f"{name} is in {count} rows; keep one" for name, count in names.items() if count > 1]
    found += [
        f"{claim.path}: {claim.function} names {claim.name!r}, which is in no row; correct it, or add a row"
        for claim in claims
        if not any(is_meant(name, claim.name) for name in names)
    ]
    found += [
        f"{claim.path}: {claim.function} is no test and names {claim.name}; move the line to the test"
        for claim in claims
        if not claim.is_tests
    ]
    for row in rows:
        ours = covering(row, claims)
        if row.left_out and row.not_yet:
            found.append(f"{row.name} is left out and not yet there; keep one")
        if ours and (row.left_out or row.not_yet):
            key = "left_out" if row.left_out else "not_yet"
            found.append(f"{row.name} is covered by {ours[0].function}; take its {key} out of {ROWS.name}")
        if not status(row, claims):
            found.append(f"{row.name} is neither covered by a test nor listed with a reason in {ROWS.name}")
    return found


def counts(groups: Sequence[Group], claims: Sequence[Claim]) -> dict[str, int]:
    """How many rows have which status."""
    each = Counter(status(row, claims) for group in groups for row in group.rows)
    return {name: each[name] for name in STATUSES}


def summary(groups: Sequence[Group], claims: Sequence[Claim]) -> str:
    """The counts in a sentence."""
    each = counts(groups, claims)
    return (
        f"Of {sum(each.values())} rows {each['covered']} are covered, {each['left out']} are left out because they do "
        f"not apply, and {each['not yet']} are not there yet."
    )


def _cell(row: Row, claims: Sequence[Claim]) -> list[str]:
    """What ours has for a row, as lines of reST."""
    lines = [f"- {claim.sentence} (``{claim.path}``)" for claim in covering(row, claims)]
    if row.left_out:
        lines = [f"*Left out.* {row.left_out}"]
    elif row.not_yet:
        lines = [f"*Not yet*; comes with {row.not_yet}."]
    if row.differs:
        lines += ["", f"*Differs.* {row.differs}"]
    return lines


def table(groups: Sequence[Group], claims: Sequence[Claim]) -> str:
    """The tables of all groups, as reST."""
    lines: list[str] = []
    for group in groups:
        each = Counter(status(row, claims) for row in group.rows)
        numbers = ", ".join(f"{each[name]} {name}" for name in STATUSES if each[name])
        lines += [group.title, "~" * len(group.title), "", f"``{group.source}``: {numbers}.", ""]
        lines += [".. list-table::", "   :header-rows: 1", "   :widths: 25 35 40", ""]
        lines += ["   * - client-go's test", "     - What it asserts", "     - Here"]
        for row in group.rows:
            lines.append(f"   * - | ``{row.tests[0]}``")
            lines += [f"       | ``{name}``" for name in row.tests[1:]]
            lines.append(f"     - {row.asserts}")
            first, *rest = _cell(row, claims)
            lines.append(f"     - {first}")
            lines += [f"       {line}" if line else "" for line in rest]
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Say how far it is, and what does not fit."""
    groups, claims = read_rows(), read_claims()
    found = complaints(groups, claims)
    print(summary(groups, claims), *found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
