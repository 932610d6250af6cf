"""What the commands in the documentation need: programs, modules, flags, sessions and extras that exist."""

from __future__ import annotations

import functools
import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.docs.blocks import ROOT, Block

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
SESSION = re.compile(r'name="([\w-]+)"|name=f"(\w+)-|^def (\w+)\(session', re.MULTILINE)
SESSIONS = set(SESSION.findall((ROOT / "noxfile.py").read_text()))


def commands_in(block: Block) -> Iterator[list[str]]:
    """Return the commands of a block, in words; those of a pipe or a sequence are several."""
    text = block.text.replace("\\\n", " ")
    if block.language == "console":
        text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
    for line in text.splitlines():
        for command in re.split(r"\s(?:\||&&|>)\s", line):
            yield [word for word in shlex.split(command, comments=True) if not re.match(r"[A-Z_]+=", word)]


def mistakes(command: list[str]) -> Iterator[str]:
    """Return what is wrong with a command; a program that is not ours has no mistakes."""
    match [Path(word).name if number == 0 else word for number, word in enumerate(command)]:
        case ["python" | "python3", "-m", module, *arguments] if module.split(".")[0] in (
            "tests",
            "trioformer",
            "examples",
        ):
            path = source_of(module)
            yield from [f"there is no module {module}"] if path is None else unknown_flags(path, arguments)
        case ["python" | "python3", str(program), *arguments] if program.endswith(".py") and "/" in program:
            path = ROOT / program
            yield from unknown_flags(path, arguments) if path.exists() else [f"there is no {program}"]
        case ["nox", "-s", session, *_] if session.split("-")[0] not in sessions():
            yield f"there is no session {session}"
        case ["pip", "install", *words]:
            named = {extra for word in words for extra in re.findall(r"trioformer\[([\w,-]+)\]", word)}
            wanted = {name for names in named for name in names.split(",")}
            yield from [f"there is no extra {name}" for name in sorted(wanted - EXTRAS)]


TRANSCRIPT = re.compile(
    r"\$ (?P<set>(?:[A-Z_]+=\S+ )*)python (?P<command>examples/\w+\.py(?: [\w./=-]+)*)\n(?P<output>[^$].*)", re.DOTALL
)
CLOCK = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\\\.\d+)?")
"""A time in a line, in a pattern."""


def transcript_of(block: Block) -> tuple[dict[str, str], list[str], str] | None:
    """Return variables, words and output of a block with one command, an example, and what it prints; otherwise None.

    One that serves a port needs real time and is left out.  The tutorial has tests of its own.
    """
    found = TRANSCRIPT.fullmatch(block.text)
    if found is None or "\n$ " in found["output"] or "--http" in found["command"]:
        return None
    return dict(word.split("=", 1) for word in found["set"].split()), found["command"].split(), found["output"]


def pattern_of(output: str) -> re.Pattern[str]:
    """Return what finds the lines that a program prints, at any time; … stands for anything, on a line for lines."""
    parts = output.replace("\n…\n", "\n\0").split("\0")
    patterns = ["[^\n]*".join(re.escape(text).replace("\\ ", " ") for text in part.split("…")) for part in parts]
    return re.compile("^" + "(?:.*\n)*?".join(CLOCK.sub(r"[\\d/]+ [\\d:.]+", each) for each in patterns), re.MULTILINE)


@functools.cache
def sessions() -> set[str]:
    return {name for found in SESSIONS for name in found if name}


def source_of(module: str) -> Path | None:
    """Return the file, or the folder of the package, that ``python -m`` runs."""
    spec = importlib.util.find_spec(module)
    if spec is None:
        return None
    locations = spec.submodule_search_locations
    return Path(next(iter(locations))) if locations else Path(spec.origin or "")


def unknown_flags(path: Path, arguments: list[str]) -> list[str]:
    """Return the flags that the source of a program does not mention."""
    files = sorted(path.glob("*.py")) if path.is_dir() else [path, *path.parent.glob("command_line.py")]
    text = "\n".join(file.read_text() for file in files)
    flags = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
    return [f"{path.name} has no flag {flag}" for flag in flags if f'"{flag}"' not in text]
