"""The command ``python -m trioformer.models._generate``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ._check import check
from ._emit import emit
from ._schema import Schema, reduce

MODELS = Path(__file__).parent.parent


def _reduce(arguments: argparse.Namespace) -> str | None:
    directory: Path = arguments.documents
    # As tests/e2e/fetch_schema.py saves them: "/" in a path is "__" in the file's name.
    openapi = [json.loads(path.read_bytes()) for path in sorted(directory.glob("api*__v*.json"))]
    discovery = [json.loads((directory / name).read_bytes()) for name in ("api.json", "apis.json")]
    (arguments.models / "_schema.json").write_text(reduce(openapi, discovery).dumps(), encoding="utf-8")
    return None


def _write(arguments: argparse.Namespace) -> str | None:
    for name, text in emit(_read(arguments)).items():
        (arguments.models / name).write_text(text, encoding="utf-8")
    return None


def _check(arguments: argparse.Namespace) -> str | None:
    found = list(check(_read(arguments), arguments.models))
    if not found:
        return None
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{found[0]}{more}; run: nox -s models"


def _read(arguments: argparse.Namespace) -> Schema:
    return Schema.loads((arguments.models / "_schema.json").read_text(encoding="utf-8"))


def main(argv: list[str] | None = None) -> str | None:
    """Run a command, and return a one-line error message or None."""
    parser = argparse.ArgumentParser(prog="python -m trioformer.models._generate", description=__doc__)
    parser.add_argument("--models", type=Path, default=MODELS, help="the directory of the modules and _schema.json")
    commands = parser.add_subparsers(required=True)
    reducing = commands.add_parser("reduce", help="saved OpenAPI and discovery documents to _schema.json")
    reducing.add_argument("documents", type=Path)
    reducing.set_defaults(run=_reduce)
    commands.add_parser("write", help="_schema.json to modules").set_defaults(run=_write)
    commands.add_parser("check", help="check that the modules are those of _schema.json").set_defaults(run=_check)
    arguments = parser.parse_args(argv)
    result: str | None = arguments.run(arguments)
    return result


if __name__ == "__main__":
    sys.exit(main())
