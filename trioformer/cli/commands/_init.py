"""The command ``init``, which writes the project of an operator: a kind, a controller, tests and manifests.

The templates in ``trioformer/cli/project`` are the project of ``init website-operator --kind Website``.
"""

from __future__ import annotations

import argparse
import builtins
import io
import keyword
import os
import re
import sys
import sysconfig
import tokenize
from collections.abc import Collection, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

import trio

from ...models._internal import guess_plural, is_subdomain, is_version
from .._arguments import Parser
from .._failures import CommandError, UsageError
from .._session import Session

__all__ = ["add_flags", "run"]

_TEMPLATES: Final = Path(__file__).parents[1] / "project"
_EXCEPTIONS: Final = {name for name in dir(builtins) if name[0].isupper()}


def add_flags(parser: Parser) -> None:
    """Add the flags of ``init``."""
    parser.add_argument("--kind", help="The kind of the operator's objects, such as Website")
    parser.add_argument("--group", default="example.com", help="The API group of the kind, a domain of yours")
    parser.add_switch("--webhook", help="Add webhooks that check and complete the objects")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``init``."""
    if len(flags.arguments) != 1 or flags.kind is None:
        raise UsageError("a name and a kind are required, such as website-operator --kind Website")
    (name,) = flags.arguments
    templates = _templates(has_webhook=flags.webhook)
    taken = _names_in(templates)
    words = _words_of_name(name, taken) | _words_of_kind(flags.kind, flags.group, taken)
    pattern = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))

    def fill_in(template: str) -> str:
        return pattern.sub(lambda found: words[found[0]], template)

    files = {Path(name, fill_in(path)): fill_in(text) for path, text in templates.items()}
    definition = Path(name, "deploy", fill_in("websites.example.com.yaml"))
    _write(files, definition)
    # The command that writes the definition after each change of the kind.
    command = [sys.executable, "-B", "-m", "trioformer.crds", fill_in("website_operator.kinds"), "-o", "deploy"]
    await trio.run_process(command, cwd=name)
    session.print(f"wrote {len(files) + 1} files to {name}; the next steps are in {Path(name, 'README.md')}")
    return None


def _templates(*, has_webhook: bool) -> dict[str, str]:
    """Return the templates by the paths of their files.

    The lines that end with ``# --webhook``, and the files named ``webhooks``, are only in projects with webhooks.
    """
    dropped, kept = ("no-webhook", "webhook") if has_webhook else ("webhook", "no-webhook")
    found: dict[str, str] = {}
    for path in sorted(_TEMPLATES.rglob("*.txt")):
        if has_webhook or "webhooks" not in path.name:
            text = re.sub(rf"^.*  # --{dropped}\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            found[path.relative_to(_TEMPLATES).with_suffix("").as_posix()] = text.replace(f"  # --{kept}\n", "\n")
    return found


def _write(files: Mapping[Path, str], definition: Path) -> None:
    """Write the files of a project, or none of them if one exists or the definition does."""
    if found := [path for path in (*files, definition) if os.path.lexists(path)]:
        raise CommandError(f"{found[0]} exists, and init never overwrites a file: choose another name or folder")
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except OSError as exc:
        raise CommandError(f"cannot write {exc.filename}: {exc.strerror}") from exc


def _names_in(templates: Mapping[str, str]) -> set[str]:
    """Return the names that the code of a project has already, but not those that are replaced."""
    names = set(keyword.kwlist)
    for path, text in templates.items():
        if path.endswith(".py"):
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            names |= {each.string for each in tokens if each.type == tokenize.NAME}
    return {each for each in names if "website" not in each.lower()}


def _words_of_name(name: str, taken: Collection[str]) -> dict[str, str]:
    """Return the words for the name of the templates' project."""
    if not is_version(name):  # a DNS label that begins with a letter
        raise CommandError(
            f"{name!r} is not a valid name: use at most 63 lower-case letters, digits and hyphens, first a letter"
        )
    package = name.replace("-", "_")
    if package in taken or package in sys.stdlib_module_names or package in ("test", "tests") or _is_installed(package):
        raise CommandError(f"{name!r}: Python or a package already has the name {package}: choose another name")
    return {"website-operator": name, "website_operator": package}


def _is_installed(package: str) -> bool:
    """Return whether another project installs a package, such as PyYAML's yaml, which the new one would hide."""
    return PathFinder.find_spec(package, [sysconfig.get_path("purelib")]) is not None


def _words_of_kind(kind: str, group: str, taken: Collection[str]) -> dict[str, str]:
    """Return the words for the kind and the group of the templates' project."""
    if re.fullmatch("[A-Z][A-Za-z0-9]{0,59}", kind) is None:
        raise CommandError(f"{kind!r} is not a valid kind: use letters and digits in camel case, such as Website")
    singular, plural = kind.lower(), guess_plural(kind)
    variable = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind).lower()
    if found := [each for each in (kind, variable, guess_plural(variable)) if each in taken or each in _EXCEPTIONS]:
        raise CommandError(f"{kind!r}: the project's code has another object named {found[0]}: choose another kind")
    if "." not in group or not is_subdomain(f"{plural}.{group}"):
        raise CommandError(f"{group!r} is not a valid group: use a domain in lower case, such as example.com")
    if f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        raise CommandError(f"{group!r} is not a valid group: it is a domain of Kubernetes, so use one of yours")
    stem = len(kind) if plural.startswith(singular) else len(kind) - 1  # as in Policies
    return {
        "Website": kind,
        "Websites": kind[:stem] + plural[stem:],
        "website": variable,
        "websites": guess_plural(variable),
        # The API's names, which have no underscore.
        "example.com": group,
        "example.com/website": f"{group}/{singular}",
        "websites.example.com": f"{plural}.{group}",
        "[websites": f"[{plural}",
    }
