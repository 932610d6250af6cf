"""``config view``: the kubeconfig, without its secrets."""

from __future__ import annotations

import argparse
import base64
from pathlib import Path
from typing import Any, Final

from .._arguments import Parser
from .._failures import CommandError, UsageError
from .._kubeconfig import kubeconfig_files, read_kubeconfig
from .._session import Session
from ..printing import make_printer

__all__ = ["add_flags", "run"]

_REDACTED: Final = {
    "clusters": {"certificate-authority-data": "DATA+OMITTED"},
    "users": {
        "client-certificate-data": "DATA+OMITTED",
        "client-key-data": "DATA+OMITTED",
        "token": "REDACTED",
        "password": "REDACTED",
    },
}
_FILES: Final = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key"),
}


def add_flags(parser: Parser) -> None:
    """Add the flags of ``config view``."""
    parser.add_argument("-o", "--output", default="yaml", help="Output format.")
    parser.add_argument("--template", default="", help="Template string, or path to a template file, for -o jsonpath")
    parser.add_switch("--raw", help="Display raw byte data and sensitive data")
    parser.add_switch("--flatten", help="Put the content of files into the output")
    parser.add_switch("--minify", help="Remove all information not used by current-context from the output")
    parser.add_switch("--merge", default=True, help="Merge the full hierarchy of kubeconfig files")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``config view``."""
    if flags.arguments:
        raise UsageError(f"unexpected arguments: [{' '.join(flags.arguments)}]")
    printer = make_printer(flags.output, session.out, template=flags.template)
    if printer is None:
        raise CommandError(f'unable to match a printer suitable for the output format "{flags.output}"')
    config = read_kubeconfig(session)
    if flags.minify:
        _minify(config, flags.context or config["current-context"])
    if flags.flatten:
        _flatten(config, kubeconfig_files(flags, session.environ))
    elif not flags.raw:
        _redact(config)
    if not config.get("preferences"):
        config.pop("preferences", None)
    printer.print(config)
    printer.finish()
    return None


def _minify(config: dict[str, Any], name: str) -> None:
    if not name:
        raise CommandError("current-context must exist in order to minify")
    contexts = [each for each in config["contexts"] or [] if each["name"] == name]
    if not contexts:
        raise CommandError(f"cannot locate context {name}")
    context = contexts[0].get("context") or {}
    config["current-context"] = name
    config["contexts"] = contexts
    for section, key in (("clusters", "cluster"), ("users", "user")):
        config[section] = [each for each in config[section] or [] if each["name"] == context.get(key)] or None


def _flatten(config: dict[str, Any], files: list[str]) -> None:
    folder = Path(files[0]).parent if files else Path()
    for section, names in _FILES.items():
        for entry in config[section] or []:
            body = entry.get(section.removesuffix("s")) or {}
            for name in names:
                if file := body.pop(name, None):
                    try:
                        content = (folder / str(file)).read_bytes()
                    except OSError as exc:
                        raise CommandError(f"open {file}: {(exc.strerror or '').lower()}") from exc
                    body[f"{name}-data"] = base64.b64encode(content).decode()


def _redact(config: dict[str, Any]) -> None:
    for section, names in _REDACTED.items():
        for entry in config[section] or []:
            body = entry.get(section.removesuffix("s")) or {}
            for name, text in names.items():
                if body.get(name):
                    body[name] = text
            for variable in (body.get("exec") or {}).get("env") or []:
                variable["value"] = "REDACTED"
