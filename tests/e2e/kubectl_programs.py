"""Runs kubectl and the command line tool with the same arguments, and says how their outputs differ."""

from __future__ import annotations

import difflib
import io
import re
import shlex
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import trio
import yaml

from tests.support.kubectl_invocations import DIFFERENCES
from trioformer.cli._main import run_command

__all__ = ["PAGE", "Printed", "Programs", "config_of", "difference_of", "write_kubeconfig"]

PROGRAM: Final = re.compile(r"\b(kubectl|trioformer)\b")
AGE: Final = re.compile(r"(?<![\w.=/])\d+[dhms](?:\d+[hms])?(?![\w/])( *)")
REPEATED: Final = re.compile(r" \(x\d+ over \w+\)")
"""How often an event has been seen, which goes on."""
ATTEMPTS: Final = 5
"""The state of the cluster may change between the two programs, and an age may get another digit."""

Printed: TypeAlias = tuple[int, str, str]
"""The exit code, standard output and standard error."""

PAGE: Final = Path(__file__).parents[2] / "docs" / "howto" / "command-line.rst"
"""What says how the tool differs from kubectl."""


@attrs.frozen
class Programs:
    """kubectl and the tool, with the same kubeconfig."""

    kubectl: Path
    kubeconfig: Path
    limit: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(4))

    @property
    def environ(self) -> dict[str, str]:
        home = str(self.kubeconfig.parent)
        # kubectl is gone before it would have to collect garbage.
        return {"KUBECONFIG": str(self.kubeconfig), "HOME": home, "PATH": "/usr/bin:/bin", "GOGC": "off"}

    async def run_kubectl(self, arguments: list[str]) -> Printed:
        done = await trio.run_process(
            [str(self.kubectl), *arguments], env=self.environ, capture_stdout=True, capture_stderr=True, check=False
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    async def run_tool(self, arguments: list[str]) -> Printed:
        out, err = io.StringIO(), io.StringIO()
        try:
            code = await run_command(arguments, out, err, self.environ)
        except Exception:  # noqa: BLE001  # it is a difference like others
            return -1, out.getvalue(), err.getvalue() + traceback.format_exc()
        return code, out.getvalue(), err.getvalue()

    async def compare(self, invocation: str) -> str:
        """Return how the outputs differ; nothing if they are equal."""
        arguments = shlex.split(invocation)
        difference = ""
        for _ in range(ATTEMPTS):
            async with self.limit:
                expected = await self.run_kubectl(arguments)
                actual = await self.run_tool(arguments)
            if invocation.startswith("events"):  # those of the same second are in any order
                expected, actual = _in_order(expected), _in_order(actual)
            difference = difference_of(expected, actual)
            if not difference or invocation in DIFFERENCES:
                break
            await trio.sleep(1)
        return difference

    async def compare_all(self, invocations: Iterable[str]) -> dict[str, str]:
        """Return the differences by invocation."""
        await self.run_kubectl(["api-resources"])  # it keeps what it discovers in a file
        found: dict[str, str] = {}

        async def compare(invocation: str) -> None:
            if difference := await self.compare(invocation):
                found[invocation] = difference

        with trio.fail_after(300):
            async with trio.open_nursery() as nursery:
                for invocation in invocations:
                    nursery.start_soon(compare, invocation)
        return found


def difference_of(expected: Printed, actual: Printed) -> str:
    lines = [f"exit code {actual[0]}, not {expected[0]}"] if actual[0] != expected[0] else []
    for theirs, ours in zip(expected[1:], actual[1:], strict=True):
        lines += difflib.unified_diff(
            _normal(theirs).splitlines(), _normal(ours).splitlines(), "kubectl", "trioformer", n=0, lineterm=""
        )
        if not lines and _normal(theirs) != _normal(ours):
            lines.append("the ends of lines differ")
    return "\n".join(lines)


def _in_order(printed: Printed) -> Printed:
    code, output, errors = printed
    return code, "\n".join(sorted(output.splitlines())), errors


def _normal(text: str) -> str:
    # What follows an age keeps its column.
    text = REPEATED.sub("", text)
    return AGE.sub(lambda found: "AGE".ljust(len(found[0])) if found[1] else "AGE", PROGRAM.sub("PROGRAM", text))


def write_kubeconfig(path: Path, config: Mapping[str, Any], namespace: str) -> Path:
    """Write a kubeconfig whose context is in a namespace."""
    changed = dict(config)
    for each in changed["contexts"]:
        each["context"]["namespace"] = namespace
    path.write_text(yaml.safe_dump(changed))
    path.chmod(0o600)
    return path


def config_of(url: str) -> dict[str, Any]:
    """Return a kubeconfig for an embedded server."""
    return {
        "clusters": [{"name": "embedded", "cluster": {"server": url}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "me"}}],
        "current-context": "embedded",
    }
