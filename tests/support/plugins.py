"""Stand-ins for credential plugins: scripts that print what a test says, and write down each run."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

import attrs
import trio

from trioformer.kubeconfig import ExecConfig

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"

_SCRIPT = """#!/bin/sh
cd '{directory}'
printf 'run\\n' >> runs
printf '%s' "$KUBERNETES_EXEC_INFO" > info
. ./before
cat output
exit "$(cat code)"
"""


def credential(*, api_version: str = V1, **status: Any) -> str:
    """What a plugin prints: an ExecCredential with fields such as ``token``."""
    return json.dumps({"apiVersion": api_version, "kind": "ExecCredential", "status": status})


HELD = ": > started; cat gate"
"""What a plugin executes that waits until the test lets it go on; see :meth:`Plugin.wait_until_held`."""


async def has_ended(pid: int) -> bool:
    """Whether a process ends that was sent a signal; waits for ten seconds at most."""

    def wait() -> bool:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        with os.fdopen(descriptor, "rb", closefd=True) as process:
            return bool(select.select([process], [], [], 10.0)[0])

    return await trio.to_thread.run_sync(wait)


@final
@attrs.frozen(eq=False)
class Plugin:
    """A script that prints an ExecCredential; the files beside it say what, and can be changed between runs."""

    directory: Path
    name: str = "plugin"

    def __attrs_post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.path.write_text(_SCRIPT.format(directory=self.directory))
        self.path.chmod(0o755)
        for pipe in ("started", "gate"):
            os.mkfifo(self.directory / pipe)
        self.prints(credential(token="one"))
        (self.directory / "runs").touch()

    @property
    def path(self) -> Path:
        """The program."""
        return self.directory / self.name

    @property
    def runs(self) -> int:
        """How often it was started."""
        return len((self.directory / "runs").read_text().splitlines())

    @property
    def info(self) -> Any:
        """What the last run found in ``KUBERNETES_EXEC_INFO``."""
        return json.loads((self.directory / "info").read_text())

    def prints(self, output: str, *, code: int = 0, before: str = "") -> None:
        """Let the next runs print ``output`` and exit with ``code``.

        Args:
            output: The standard output.
            code: The exit code.
            before: What a shell does before that, in :attr:`directory`.
        """
        # Each at once, for a plugin that runs while the files are written.
        for name, content in (("output", output), ("code", str(code)), ("before", f"{before}\n")):
            part = self.directory / f"{name}.part"
            part.write_text(content)
            os.replace(part, self.directory / name)

    async def wait_until_held(self) -> None:
        """Wait until a run executes :data:`HELD`."""
        await trio.to_thread.run_sync((self.directory / "started").read_text, abandon_on_cancel=True)

    async def release(self) -> None:
        """Let a run that executes :data:`HELD` go on."""
        await trio.to_thread.run_sync((self.directory / "gate").write_text, "", abandon_on_cancel=True)

    async def pid_in(self, name: str) -> int:
        """Return the number that the plugin has written to a file."""
        return int(await trio.Path(self.directory / name).read_text())

    def config(
        self, *args: str, api_version: str = V1, env: Mapping[str, str] | None = None, **fields: Any
    ) -> ExecConfig:
        """The user's ``exec``."""
        return ExecConfig(api_version=api_version, command=str(self.path), args=args, env=env or {}, **fields)

    def user(self, *args: str, api_version: str = V1, env: Sequence[Mapping[str, str]] = (), **fields: Any) -> Any:
        """The user's ``exec`` as a kubeconfig has it."""
        found = {"apiVersion": api_version, "command": str(self.path), "args": list(args), "env": list(env)}
        return {"exec": {**found, "interactiveMode": "Never", **fields}}
