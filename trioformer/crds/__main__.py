"""The command ``python -m trioformer.crds module:Class …``, which prints CustomResourceDefinitions as YAML.

An argument without a class, such as ``module``, selects all custom resources in the module.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from ..errors import SchemaError
from ..models import KubernetesObject, to_dict
from ..models.apiextensions_v1 import CustomResourceDefinition
from ._definition import crds_of, is_custom_resource


class _UsageError(Exception):
    """The exception for a class that was not found, with a one-line message."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m trioformer.crds",
        description="Print the CustomResourceDefinitions of classes as YAML, for kubectl apply -f -.",
    )
    parser.add_argument("classes", nargs="+", metavar="MODULE[:CLASS]", help="a class, or all classes of a module")
    parser.add_argument("-o", "--output", type=Path, metavar="DIRECTORY", help="write a file for each definition")
    options = parser.parse_args(arguments)
    if "" not in sys.path:  # an installed script has its own directory there
        sys.path.insert(0, "")
    try:
        classes = dict.fromkeys(cls for name in options.classes for cls in _classes_of(name))
        definitions = crds_of(*classes)
        _write(definitions, options.output)
    except (_UsageError, SchemaError, OSError) as exc:
        print(f"error: {exc}", file=sys.stderr)  # noqa: T201  # output of the command
        return 1
    return 0


def _classes_of(text: str) -> Iterator[type[KubernetesObject]]:
    name, _, cls = text.partition(":")
    try:
        module = importlib.import_module(name)
    except ImportError as exc:
        raise _UsageError(f"{name} cannot be imported: {exc}") from exc
    found = vars(module).values() if not cls else [getattr(module, cls, None)]
    kinds = [one for one in found if is_custom_resource(one) and (cls or one.__module__ == module.__name__)]
    if not kinds:
        what = f"{name} has no class {cls}" if cls else f"{name} defines no class"
        raise _UsageError(f"{what} with @custom_resource")
    yield from kinds


def _write(definitions: tuple[CustomResourceDefinition, ...], directory: Path | None) -> None:
    for definition in definitions:
        text = yaml.safe_dump(to_dict(definition), sort_keys=False, allow_unicode=True, width=120)
        if directory is None:
            print(f"---\n{text}", end="")  # noqa: T201  # output of the command
        else:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"{definition.name}.yaml").write_text(text)


if __name__ == "__main__":
    sys.exit(main())
