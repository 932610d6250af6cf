"""Keeps words out that a reader of Kubernetes' or trio's documentation would not understand: ``nox -s lint``.

``python -m tests.project.words`` names file, line, phrase and the better word.  A phrase is listed when it was used for
something that Kubernetes, client-go, controller-runtime or trio have a word for, or when it was a metaphor.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("trioformer", "tests", "examples", "docs", "benchmarks")
FILES: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "noxfile.py", "pyproject.toml")
SUFFIXES: Final = (".py", ".rst", ".md", ".toml")
LEFT_OUT: Final = (
    "docs/_build/",
    "docs/changelog.rst",
    "docs/newsfragments/names.breaking.rst",  # lists the old names
    "docs/newsfragments/public-lists.breaking.rst",
    "tests/project/words.py",
    "tests/project/test_words.py",
    "benchmarks/results/",
)

# phrase (a regular expression, any case) → what to write instead
PHRASES: Final[dict[str, str]] = {
    r"(?:is|are|was|were) (?-i:none)\b(?! of)": "is not a valid …",
    r"overheard": "ignored",
    r"go(?:es|ne)? on from\b": "retried",
    r"passing weakness": "transient",
    r"in all but name": "say what it is",
    r"own hand\b": "direct API",
    r"front doors?": "public API",
    r"strangers?": "another process, another object",
    r"the rooms?\b|\brooms? of\b|private rooms?": "module",
    r"tells? of\b|\btold of\b": "reports, is notified of",
    r"hears? of\b|\bheard of\b": "is notified of, receives",
    r"mailbox(?:es)?": "listener buffer",
    r"streamed lists?": "watch-list",
    r"hopeless": "permanent",
    r"unreadable": "undecodable",
    r"verdicts?": "error class",
    r"living cluster": "simulated cluster",
    r"the way there": "the connection, the transport",
    r"floor plan": "layout",
}
PATTERN: Final = re.compile("|".join(rf"(?P<p{n}>\b(?:{phrase}))" for n, phrase in enumerate(PHRASES)), re.IGNORECASE)


@attrs.frozen
class Finding:
    """A phrase in a file."""

    path: str
    line: int
    phrase: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.phrase!r}: write {self.instead!r}"


def findings_in(text: str, path: str) -> Iterator[Finding]:
    """Find the phrases in a text; underscores count as spaces, so that names are read as well."""
    better = list(PHRASES.values())
    for number, line in enumerate(text.splitlines(), start=1):
        for found in PATTERN.finditer(line.replace("_", " ")):
            assert found.lastgroup is not None
            yield Finding(path, number, found.group(), better[int(found.lastgroup[1:])])


def sources() -> Iterator[Path]:
    """Yield the files that are read."""
    for folder in FOLDERS:
        yield from (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES)
    yield from (ROOT / name for name in FILES)


def is_generated(text: str) -> bool:
    """Whether a tool has written it: its sentences are Kubernetes' own."""
    return "GENERATED" in text.partition("\n")[0]


def findings() -> list[Finding]:
    """Find the phrases in all files."""
    found = []
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text()
        if not name.startswith(LEFT_OUT) and not is_generated(text):
            found += findings_in(text, name)
    return found


def main(arguments: Sequence[str]) -> int:
    """Print what was found."""
    found = findings()
    for each in found:
        print(each, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
