"""A source of credentials that runs a plugin when the credential is missing, has expired or was rejected.

The plugin runs once for all waiting requests, and no task is started for it.
One of the waiting tasks drives the run: it starts the process, reads from it, and parses the output.
If this driver is cancelled, another waiting task takes over the process. If no task is waiting, the process is killed.
The driver also kills the process when the last client of the source is closed.

During a run, there is exactly one driver: a task inside :meth:`PluginCredentials._drive`, or the task that was woken
to become the next driver.  All other tasks are parked.

A credential stays in use until it expires.  After a 401, the next request runs the plugin again.  If the plugin fails,
the credential stays in use, as in client-go, because a faulty server may reject valid credentials.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Final, final

import attrs
import trio

from ..._surroundings import wall_time
from ..._text import one_line, quoted
from ...errors import ExecPluginError
from ...kubeconfig import ClusterConfig, ExecConfig
from ._credentials import Credential
from ._exec_credential import exec_info, parse_exec_credential
from ._exec_policy import NOT_INSTALLED, PluginError, PluginPolicy, find_plugin
from ._exec_process import Invocation, PluginProcess, how_it_ended, may_ask

INFO_VARIABLE: Final = "KUBERNETES_EXEC_INFO"
_MAX_HINT: Final = 500

logger = logging.getLogger("trioformer.transport")


@final
@attrs.define(eq=False)
class _Run:
    """One run of the plugin, and the tasks that wait for it."""

    deadline: float
    """The time at which the plugin is killed, on trio's clock."""
    process: PluginProcess | None = None
    """The process; None until it is started."""
    waiting: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)
    """All tasks except the driver."""
    scope: trio.CancelScope | None = None
    """The driver's scope."""
    is_closed: bool = False
    """Whether all clients were closed during the run."""
    result: Credential | PluginError | None = None
    """The result; None until the run has ended."""

    def end(self, result: Credential | PluginError) -> None:
        self.result = result
        self.waiting.unpark_all()

    def close(self) -> None:
        self.is_closed = True
        if self.scope is not None:
            self.scope.cancel()


@final
@attrs.define(eq=False)
class PluginCredentials:
    """The source of the credentials that a plugin prints. It implements :class:`~.._credentials.CredentialSource`.

    ``repr()`` shows no secret.
    """

    _config: ClusterConfig = attrs.field(repr=False)
    _policy: PluginPolicy
    _wall_clock: Callable[[], float] = attrs.field(default=wall_time, repr=False)
    _exec: ExecConfig = attrs.field(init=False)
    latest: Credential = attrs.field(factory=Credential, init=False)
    _is_usable: bool = attrs.field(default=False, init=False)
    """Whether ``latest`` is from the plugin and was not rejected."""
    _expires: float = attrs.field(default=math.inf, init=False)
    """The expiry time of ``latest`` on the wall clock, which continues while the machine is suspended."""
    _run: _Run | None = attrs.field(default=None, init=False, repr=False)
    _clients: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        assert self._config.exec is not None
        self._exec = self._config.exec

    async def get(self) -> Credential:
        """Return the credential. If the credential is missing, has expired or was rejected, run the plugin first.

        Raises:
            ExecPluginError: The plugin did not return a credential.
            trio.ClosedResourceError: The last client was closed during the call.

        Cancellation:
            If other tasks wait for the same run, it continues. Otherwise, the plugin and its child processes are
            killed.
        """
        if self._is_usable and not self._has_expired():
            return self.latest
        run = self._run
        if run is None:
            run = self._run = _Run(trio.current_time() + self._policy.patience)
        else:
            # A task that wakes without a result is the next driver.
            await run.waiting.park()
        if run.result is None:
            await self._drive(run)
        assert run.result is not None
        if run.is_closed:
            raise trio.ClosedResourceError("this client is closed: its `async with` block has ended")
        if isinstance(run.result, PluginError):
            raise ExecPluginError(self._text(run.result), permanent=run.result.permanent)
        return run.result

    def reject(self, credential: Credential) -> None:
        """If ``credential`` is the latest credential, make the next call to :meth:`get` run the plugin."""
        if credential is self.latest:
            self._is_usable = False

    @contextmanager
    def in_use(self) -> Generator[None, None, None]:
        self._clients += 1
        try:
            yield
        finally:
            self._clients -= 1
            if not self._clients and self._run is not None:
                self._run.close()

    def _has_expired(self) -> bool:
        return self._wall_clock() >= self._expires

    async def _drive(self, run: _Run) -> None:
        """Drive a run to its end, or hand the run over to another task if this task is cancelled."""
        result: Credential | PluginError | None = None
        try:
            with trio.CancelScope(deadline=run.deadline) as run.scope:
                if run.is_closed:
                    run.scope.cancel()
                result = await self._result_of(run)
            if run.scope.cancelled_caught and result is None:
                result = PluginError(f"did not end within {self._policy.patience:g} s and was killed")
        finally:
            # No checkpoint between here and the end, except for killing.
            if result is None and run.waiting:
                run.waiting.unpark()
            else:
                if run.process is not None:
                    await run.process.kill()
                self._end(run, result)

    def _end(self, run: _Run, result: Credential | PluginError | None) -> None:
        if result is not None:
            self._run = None
            run.end(result if run.is_closed else self._kept_after(result))
        elif run.waiting:  # they arrived while the process was killed
            run.process, run.deadline = None, trio.current_time() + self._policy.patience
            run.waiting.unpark()
        else:
            self._run = None

    def _kept_after(self, result: Credential | PluginError) -> Credential | PluginError:
        """Return the result of a run.

        If the plugin failed after a 401, the result is the previous credential, unless that has expired.
        """
        is_anonymous = self.latest.authorization is None and self.latest.certificate is None
        if isinstance(result, Credential) or is_anonymous or self._has_expired():
            return result
        logger.warning("%s; keeping the previous credential, which the server has rejected", self._text(result))
        self.latest = attrs.evolve(self.latest)  # a new object, so that late 401s are ignored
        self._is_usable = True
        return self.latest

    async def _result_of(self, run: _Run) -> Credential | PluginError:
        try:
            if run.process is None:
                run.process = await PluginProcess.start(self._invocation())
            await run.process.communicate()
            if run.process.exit_code != 0:
                return PluginError(how_it_ended(run.process))
            return self._take(*parse_exec_credential(run.process.output, self._exec.api_version))
        except OSError as exc:
            return PluginError(f"cannot be started: {exc.strerror}")
        except PluginError as exc:
            hint = self._exec.install_hint if str(exc).startswith(NOT_INSTALLED) else None
            text = f"{exc}; {one_line(hint, longest=_MAX_HINT)}" if hint else str(exc)
            return PluginError(text, permanent=exc.permanent)  # without the frames

    def _invocation(self) -> Invocation:
        executable = find_plugin(self._exec.command, self._policy)
        is_interactive = may_ask(self._exec.interactive_mode)
        info = exec_info(self._config, is_interactive=is_interactive)
        return Invocation(
            executable=executable,
            arguments=(self._exec.command, *self._exec.args),
            environment={**os.environ, **self._exec.env, INFO_VARIABLE: info.reveal()},
            is_interactive=is_interactive,
        )

    def _take(self, printed: Credential, expires: datetime | None) -> Credential:
        """Store the printed credential as the latest one.

        If its certificate is unchanged, the existing object is kept.
        """
        if expires is not None and expires.timestamp() <= self._wall_clock():
            raise PluginError(
                f"printed a credential that expired at {expires:%Y-%m-%dT%H:%M:%SZ}; "
                "log in with the plugin again, or check the clock of this machine"
            )
        old, new = self.latest.certificate, printed.certificate
        if old is not None and new is not None and (old.chain, old.key) == (new.chain, new.key):
            printed = attrs.evolve(printed, certificate=old)
        self.latest = printed
        self._is_usable = True
        self._expires = math.inf if expires is None else expires.timestamp()
        return self.latest

    def _text(self, problem: PluginError) -> str:
        return f"{self._config.source}: the credential plugin {quoted(self._exec.command)} {problem}"
