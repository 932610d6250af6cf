"""A configuration file that is reloaded when it changes.

Watching the file itself would not work, because it is usually replaced instead of changed.  Editors write a new file
and rename it.  In a pod, a ConfigMap's file is a link through ``..data``, which is itself a link to a directory.
After an update, ``..data`` is replaced by a link to a new directory.  So the directory of the file is watched, and each
event in it causes a reload.

No change is missed, because the file is reloaded once more when the watch has started.  Each reload reads the whole
file. So superfluous events do no harm, and neither do events while the file is only partly written.
"""

from __future__ import annotations

import io
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from os import PathLike
from typing import Generic, TypeAlias, TypeVar, final

import attrs
import trio

from .._files import read_file
from .._secret import Secret
from .._surroundings import is_simulated
from .._text import one_line
from ..errors import ConfigError, TrioformerError
from ._health import logger

T = TypeVar("T")

_QUOTATION = re.compile(r"""(['"])(?!\W\1).*\1""", re.DOTALL)  # not a single character, as in: expected ':'
_Awatch: TypeAlias = Callable[..., AsyncGenerator[object, None]]


def follow_file(path: str | PathLike[str], parse: Callable[[str], T]) -> FollowedFile[T]:
    """Return a :class:`FollowedFile` that follows a configuration file.

    Args:
        path: The path of the file.
        parse: A function that converts the text to a value, such as ``yaml.safe_load``, or raises an exception if the
            text is not valid. The function is called in the event loop, and blocks all tasks while it runs.  Parsing
            YAML of 1 MiB may take seconds.
    """
    return FollowedFile(trio.Path(path), parse)


@final
@attrs.define(eq=False, repr=False)
class FollowedFile(Generic[T]):
    """A configuration file that is read and parsed again when it changes.

    ::

        config = follow_file("config.yaml", yaml.safe_load)
        await nursery.start(config.run)
        value = config.value
        while True:
            ...
            value = await config.changed(value)

    If the file cannot be read or parsed after a change, the last valid value is kept, and the reason is logged.  The
    log message contains the type of the error and the first line of its text. For a YAML error, it contains the
    problem and its position. So if ``parse`` raises an error, the first line of the error's text must not contain a
    secret.

    The directory of the file must not be removed or renamed.  If the file is a link to another directory, the value is
    reloaded when the link is replaced.  The value is also reloaded when ``..data`` is replaced, as in a mounted
    ConfigMap (``pkg/volume/util/atomic_writer.go`` of Kubernetes). If a ConfigMap is mounted with ``subPath``, the
    file never changes.

    """

    path: trio.Path
    """The path of the file."""
    _parse: Callable[[str], T]
    _text: Secret[str] | None = attrs.field(default=None, init=False)
    _value: T = attrs.field(init=False)
    _problem: str = attrs.field(default="", init=False)
    _value_changed: trio.Event = attrs.field(factory=trio.Event, init=False)
    _reload_requested: trio.Event = attrs.field(factory=trio.Event, init=False)
    _is_running: bool = attrs.field(default=False, init=False)

    def __repr__(self) -> str:
        return f"<FollowedFile {str(self.path)!r}{f': {self._problem}' if self._problem else ''}>"

    @property
    def value(self) -> T:
        """The last valid value of the file.

        Raises:
            RuntimeError: The file has not been read yet.
        """
        if self._text is None:
            raise RuntimeError(f"{self.path} has not been read yet; read it with `await nursery.start(file.run)`")
        return self._value

    async def changed(self, seen: T) -> T:
        """Wait until the value differs from ``seen``, and return the value.

        If the value already differs, the method returns immediately.  So a busy caller receives the latest value, and
        skips the intermediate values. Values are compared by identity.  Writing the same text again does not replace
        the value.

        Args:
            seen: The value that the caller already has.

        Cancellation: no value is lost, because the next call returns the latest value.
        """
        await trio.lowlevel.checkpoint()
        while self.value is seen:
            await self._value_changed.wait()
        return self.value

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the file until cancelled; ``nursery.start()`` returns when the first value is available.

        Raises:
            ModuleNotFoundError: watchfiles is not installed.
            RuntimeError: The file is already being followed.
            OSError: The file cannot be read at the start.
            ConfigError: At the start, the file is not valid UTF-8 or ``parse`` raised an exception.  A
                `TrioformerError` from ``parse`` propagates unchanged, with a note that names the file.
            ExceptionGroup: The directory cannot be watched.  The group contains an ``OSError``.

        Cancellation: the method may take up to 50 ms to return, because it waits for a thread.

        Ownership: the method uses one of trio's worker threads while it runs.
        """
        if self._is_running:
            raise RuntimeError(f"{self.path} is already being followed")
        awatch = _import_awatch()
        self._is_running = True
        try:
            await self._load()
            task_status.started()
            if is_simulated():  # a thread would not be repeatable
                await trio.sleep_forever()
            async with trio.open_nursery() as nursery:
                stop = _StopEvent(self._request_reload)
                nursery.start_soon(stop.set_when_cancelled)
                nursery.start_soon(self._watch, awatch, stop)
                while True:
                    await self._reload_requested.wait()
                    self._reload_requested = trio.Event()
                    await self._reload()
        finally:
            self._is_running = False

    def _request_reload(self) -> None:
        self._reload_requested.set()

    async def _watch(self, awatch: _Awatch, stop: _StopEvent) -> None:
        changes = awatch(self.path.parent, watch_filter=None, recursive=False, stop_event=stop, rust_timeout=0)
        async with aclosing(changes):
            async for _ in changes:
                self._request_reload()

    async def _load(self) -> None:
        text = await self._read()
        try:
            self._set_value(text)
        except TrioformerError as error:
            error.add_note(f"in {self.path}")
            raise
        except Exception as error:
            raise ConfigError(f"{type(error).__name__}: {_reason_of(error)}", file=str(self.path)) from error

    async def _reload(self) -> None:
        try:
            text = await self._read()
            if text != self._text:
                self._set_value(text)
                logger.info("%s: reloaded", self.path)
            self._problem = ""
        except Exception as error:  # noqa: BLE001  # whatever is wrong with the file, the last valid value stays
            problem = f"{type(error).__name__}: {_reason_of(error)}"
            if problem != self._problem:
                logger.error("%s: not reloaded, keeping the last valid value: %s", self.path, problem)  # one line
            self._problem = problem

    async def _read(self) -> Secret[str]:
        """Return the text of the file as a secret, with Python's line endings."""
        try:
            read = read_file(self.path) if is_simulated() else await trio.to_thread.run_sync(read_file, self.path)
            return Secret(io.TextIOWrapper(io.BytesIO(read.reveal()), encoding="utf-8").read())
        except UnicodeDecodeError:
            pass
        raise ConfigError("is not UTF-8", file=str(self.path))

    def _set_value(self, text: Secret[str]) -> None:
        self._value = self._parse(text.reveal())
        self._text = text
        self._value_changed.set()
        self._value_changed = trio.Event()


@final
@attrs.define(eq=False)
class _StopEvent:
    """The ``stop_event`` argument of watchfiles, which calls :meth:`is_set` every 50 ms in a thread.

    The first call to :meth:`is_set` shows that the watch has started.  This call triggers a reload, which finds
    earlier changes.
    """

    _on_watching: Callable[[], None]
    _token: trio.lowlevel.TrioToken = attrs.field(factory=trio.lowlevel.current_trio_token, init=False)
    _is_watching: bool = attrs.field(default=False, init=False)
    _is_set: bool = attrs.field(default=False, init=False)

    def is_set(self) -> bool:
        if not self._is_watching:
            self._is_watching = True
            self._token.run_sync_soon(self._on_watching)
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    async def set_when_cancelled(self) -> None:
        # awatch() waits for its thread, which only this ends.
        try:
            await trio.sleep_forever()
        finally:
            self.set()


def _reason_of(error: Exception) -> str:
    """Return a one-line description of an error. It contains no text from the file, which may contain secrets.

    The text of a PyYAML error quotes a line of the file after its own first line.  The attribute ``problem`` of such
    an error may quote tags, aliases and characters.
    """
    for each in (error, error.__cause__):
        mark = getattr(each, "problem_mark", None)
        if mark is not None:
            problem = getattr(each, "problem", None) or "it does not parse"
            return one_line(f"{_QUOTATION.sub('…', problem)} (line {mark.line + 1}, column {mark.column + 1})")
    return one_line(str(error).strip().partition("\n")[0])


def _import_awatch() -> _Awatch:
    try:
        from watchfiles import awatch  # noqa: PLC0415  # needs an extra
    except ModuleNotFoundError as exc:
        raise ModuleNotFoundError(
            f"follow_file() needs {exc.name}; install it with `pip install 'trioformer[manager]'`", name=exc.name
        ) from exc
    return awatch
