"""``version``: that of this tool, and of the server."""

from __future__ import annotations

import argparse
import platform
from typing import Any

from ..._version import __version__
from ...errors import ConfigError
from .._arguments import Parser
from .._failures import CommandError
from .._session import Session

__all__ = ["add_flags", "run"]


def add_flags(parser: Parser) -> None:
    """Add the flags of ``version``."""
    parser.add_switch("--client", help="If true, shows client version only (no server required).")
    parser.add_argument("-o", "--output", default="", help="One of 'yaml' or 'json'.")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``version``."""
    if flags.arguments:
        raise CommandError(f"extra arguments: [{' '.join(flags.arguments)}]")
    if flags.output not in ("", "yaml", "json"):
        raise CommandError("--output must be 'yaml' or 'json'")
    client_version: dict[str, Any] = {
        "gitVersion": f"v{__version__}",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
        "pythonVersion": platform.python_version(),
    }
    versions: dict[str, Any] = {"clientVersion": client_version}
    failure: Exception | None = None
    if not flags.client:
        try:
            async with session.open_client() as client:
                versions["serverVersion"] = (await client.request("GET", "/version")).json()
        except ConfigError:
            raise
        except Exception as exc:  # noqa: BLE001  # raised again, when the version of the client is printed
            failure = exc
    _print(session, flags.output, versions)
    if failure is not None:
        raise failure
    return None


def _print(session: Session, output: str, versions: dict[str, Any]) -> None:
    if not output:
        session.print(f"Client Version: {versions['clientVersion']['gitVersion']}")
        if "serverVersion" in versions:
            session.print(f"Server Version: {versions['serverVersion'].get('gitVersion', '')}")
        return
    from ..printing import to_json, to_yaml  # noqa: PLC0415  # `version --client` should start fast

    session.print(to_yaml(versions) if output == "yaml" else to_json(versions, indent=2))
