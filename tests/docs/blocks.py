"""The code blocks of the documentation and of the README, and what is said about them in comments.

A block is what the text shows as code: ``code-block`` and ``literalinclude`` in a page, a fence in the README.
A comment directly before it says how it is treated, for example ``.. not run: it needs a cloud``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LANGUAGES = {"console", "dockerfile", "ini", "json", "pycon", "python", "sh", "text", "toml", "yaml"}
"""The languages that a block may have; ``text`` is what programs print."""

PARTS = {"end-at", "end-before", "lines", "pyobject", "start-after", "start-at"}
"""The options of an include that shows a part of a file."""

DIRECTIVE = re.compile(r"( *)\.\. (code-block|literalinclude):: *(\S*)$")
OPTION = re.compile(r" *:([\w-]+):(?: +(.*))?$")
COMMENT = re.compile(r" *\.\. (logs|not run|raises|runs in): +(.+)$")
FENCE = re.compile(r"```(\w*)$")
README_COMMENT = re.compile(r"<!-- (logs|not run|raises): (.+) -->$")


@attrs.frozen
class Block:
    """A code block."""

    path: Path
    """The file that it is in."""
    line: int
    """The number of its first line there."""
    language: str
    text: str
    """The code; for an include the text of the whole file that is included."""
    included: Path | None = None
    """The file that it shows, or shows a part of."""
    is_whole: bool = True
    """Whether it shows the whole file."""
    said: Mapping[str, str] = attrs.field(factory=dict)
    """What comments before it say."""

    @property
    def not_run(self) -> str:
        """The reason why it cannot run."""
        return self.said.get("not run", "")

    @property
    def raises(self) -> str:
        """The name of the error that it shows."""
        return self.said.get("raises", "")

    @property
    def runs_in(self) -> str:
        """What the program around it runs: ``trio``, ``asyncio`` or ``a thread``."""
        return self.said.get("runs in", "trio")

    @property
    def logs(self) -> str:
        """A part of a warning that it leads to."""
        return self.said.get("logs", "")

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def page_name(path: Path) -> str:
    """Return how a page is called here: ``howto/informers``, or ``README``."""
    return path.relative_to(DOCS).with_suffix("").as_posix() if path.is_relative_to(DOCS) else path.stem


def pages() -> list[Path]:
    """Return all pages of the documentation, but not the entries of the next changelog, and the README."""
    found = sorted(path for path in DOCS.rglob("*.rst") if "newsfragments" not in path.parts)
    return [*found, ROOT / "README.md"]


def blocks_of(path: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    lines = path.read_text().splitlines()
    return list(_fences(path, lines) if path.suffix == ".md" else _directives(path, lines))


def code_lines(block: Block) -> list[str]:
    """Return the lines that a reader types: of a console those after a prompt, each with its continuations.

    Lines of ``sh`` do not count: the README's commands have one line each.
    """
    match block.language:
        case "python":
            return block.text.splitlines()
        case "console":
            prompt = r"\$ "
        case "pycon":
            prompt = r">>> |\.\.\. "
        case _:
            return []
    commands = re.findall(rf"^(?:{prompt})(?:.*\\\n)*.*$", block.text, re.MULTILINE)
    return [line for command in commands for line in command.splitlines()]


def _directives(path: Path, lines: list[str]) -> Iterator[Block]:
    said: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if comment := COMMENT.match(line):
            said[comment[1]] = comment[2]
            continue
        found = DIRECTIVE.match(line)
        if found is None:
            if line.strip():
                said = {}
            continue
        indent = len(found[1])
        body = []
        while number < len(lines) and (not lines[number].strip() or _indent(lines[number]) > indent):
            body.append(lines[number])
            number += 1
        first = number - len(body)
        options = {}
        while body and (option := OPTION.match(body[0])):
            options[option[1]] = option[2] or ""
            body, first = body[1:], first + 1
        while body and not body[0].strip():
            body, first = body[1:], first + 1
        comments, said = said, {}
        if found[2] == "code-block":
            yield Block(
                path,
                first + 1,
                found[3],
                textwrap.dedent("\n".join(body)).rstrip() + "\n",
                said=comments,
            )
        else:
            included = (path.parent / found[3]).resolve()
            language = options.get("language") or {".py": "python", ".yml": "yaml"}.get(
                included.suffix, included.suffix[1:] or included.name.lower()
            )
            text = included.read_text() if included.exists() else ""
            is_whole = not PARTS & options.keys()
            yield Block(path, number, language, text, included, is_whole=is_whole, said=comments)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _fences(path: Path, lines: list[str]) -> Iterator[Block]:
    said: dict[str, str] = {}
    start: int | None = None
    language = ""
    for number, line in enumerate(lines, start=1):
        if start is not None:
            if line == "```":
                text = "\n".join(lines[start : number - 1]) + "\n"
                yield Block(path, start + 1, language, text, said=said)
                said, start = {}, None
        elif fence := FENCE.match(line):
            language, start = fence[1], number
        elif comment := README_COMMENT.match(line):
            said[comment[1]] = comment[2]
        elif line.strip():
            said = {}


def literal_blocks(path: Path) -> Iterator[tuple[int, str]]:
    """Return the blocks after ``::``, with their lines: they have no language and are not run."""
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        if not line.rstrip().endswith("::") or line.lstrip().startswith(".. "):
            continue
        body = []
        for following in lines[number + 1 :]:
            if following.strip() and _indent(following) <= _indent(line):
                break
            body.append(following)
        yield number + 2, textwrap.dedent("\n".join(body)).strip("\n")
