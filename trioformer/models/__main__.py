"""The command ``python -m trioformer.models generate crd.yaml …``, which prints classes for custom resources."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ._from_crd import generate, read_definitions


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m trioformer.models", description="Tools for classes of kinds.")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser(
        "generate",
        help="print the classes of CustomResourceDefinitions",
        description="Print a module with a class for each kind and each object in it, for trioformer.crds.",
    )
    command.add_argument("files", nargs="+", metavar="FILE", help="YAML or JSON; - for standard input")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the module to a file")
    command.add_argument(
        "--version", action="append", default=[], metavar="VERSION", help="only this version, such as v1; repeatable"
    )
    options = parser.parse_args(arguments)
    definitions = []
    for name in options.files:
        try:
            text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
            definitions += read_definitions(text)
        except (OSError, ValueError) as error:
            problem = error.strerror if isinstance(error, OSError) and error.strerror else error
            return _fail(f"{name}: {problem}")
    try:
        generated = generate(definitions, options.version)
        if options.output is not None:
            options.output.write_text(generated.text, encoding="utf-8")
    except (OSError, ValueError) as error:
        return _fail(str(error))
    if options.output is None:
        sys.stdout.write(generated.text)
    for note in generated.notes:
        print(f"note: not in the classes: {note}", file=sys.stderr)  # noqa: T201  # output of the command
    return 0


def _fail(text: str) -> int:
    print(f"error: {text}", file=sys.stderr)  # noqa: T201  # output of the command
    return 1


if __name__ == "__main__":
    sys.exit(main())
