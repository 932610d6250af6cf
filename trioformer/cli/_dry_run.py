"""The flag ``--dry-run``, and what commands print that change objects."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

import attrs

from ._failures import CommandError
from .printing import Printer, make_printer

if TYPE_CHECKING:
    from ._arguments import Parser
    from ._session import Session

__all__ = ["Reporter", "add_change_flags", "query_of_change", "strategy_of"]

_SUFFIXES = {"none": "", "client": " (dry run)", "server": " (server dry run)"}


def add_change_flags(parser: Parser, *, field_manager: str) -> None:
    """Add the flags of commands that write objects.

    Args:
        parser: The parser.
        field_manager: The default of ``--field-manager``.
    """
    parser.add_argument(
        "--dry-run",
        nargs="?",
        const="unchanged",
        default="none",
        help='Must be "none", "server", or "client". client: send nothing; server: send it, and nothing is stored.',
    )
    parser.add_argument(
        "--field-manager", default=field_manager, help="Name of the manager used to track field ownership."
    )
    parser.add_argument("-o", "--output", default="", help="Output format.")
    parser.add_switch("--show-managed-fields", help="If true, keep the managedFields when printing objects")
    parser.add_argument("--template", default="", help="Template string, or path to a template file, for -o jsonpath")


def strategy_of(session: Session, flags: argparse.Namespace) -> str:
    """Return ``none``, ``client`` or ``server``.

    Raises:
        CommandError: The value is another one.
    """
    value: str = flags.dry_run
    if value == "unchanged":
        session.note("Warning: --dry-run is deprecated and can be replaced with --dry-run=client.")
        return "client"
    if value not in _SUFFIXES:
        raise CommandError(f'Invalid dry-run value ({value}). Must be "none", "server", or "client".')
    return value


def query_of_change(flags: argparse.Namespace, dry_run: str, *, validation: str = "") -> dict[str, str]:
    """Return the query of a request that writes."""
    params = {"fieldManager": flags.field_manager}
    if dry_run == "server":
        params["dryRun"] = "All"
    if validation:
        params["fieldValidation"] = validation
    return {key: value for key, value in params.items() if value}


@final
@attrs.define(eq=False)
class Reporter:
    """Prints what was done with objects: a line for each, or the objects, as ``-o`` says."""

    session: Session
    dry_run: str
    """``none``, ``client`` or ``server``."""
    printer: Printer | None
    """What prints whole objects; None for lines."""
    is_name_only: bool
    """Whether lines have only the names."""
    gathers: bool = False
    """Whether several objects are printed as one list."""
    _objects: list[Mapping[str, Any]] = attrs.field(factory=list, init=False)

    @classmethod
    def of(cls, session: Session, flags: argparse.Namespace, dry_run: str, *, gathers: bool = False) -> Reporter:
        """Return the reporter for the flags.

        Raises:
            CommandError: The form of output does not exist.
        """
        printer = None
        if flags.output not in ("", "name") or flags.template:
            printer = make_printer(
                flags.output, session.out, template=flags.template, show_managed_fields=flags.show_managed_fields
            )
            if printer is None:
                raise CommandError(f'unable to match a printer suitable for the output format "{flags.output}"')
        return cls(session, dry_run, printer, flags.output == "name", gathers)

    def report(self, label: str, operation: str, obj: Mapping[str, Any]) -> None:
        """Print what was done with an object.

        Args:
            label: Its name, such as ``pod/web-0``.
            operation: What was done, such as ``created``.
            obj: The object as it is now.
        """
        if self.printer is None:
            self.session.print(label if self.is_name_only else f"{label} {operation}{_SUFFIXES[self.dry_run]}")
        elif self.gathers:
            self._objects.append(obj)
        else:
            self.printer.print(obj)

    def finish(self) -> None:
        """Print the objects that were gathered."""
        if self.printer is None:
            return
        if len(self._objects) == 1:
            self.printer.print(self._objects[0])
        elif self._objects:
            self.printer.print({"apiVersion": "v1", "items": self._objects, "kind": "List", "metadata": {}})
        self._objects.clear()
        self.printer.finish()
