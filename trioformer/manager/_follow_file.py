"""A configuration file that is read again when it changes.

The problem: what changes is seldom the file.  Editors write another and rename it; in a pod, a ConfigMap's file is a
link through ``..data``, a link that is swapped for another, to a new directory.  So the directory is watched, and every
event in it is a reason to look at the file, nothing else.

Nothing is missed: watching begins before the first look, and each look is at all there is, so an event that comes too
often, or while the file is only half written, costs a look.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from os import PathLike
from typing import Generic, TypeAlias, TypeVar, final

import attrs
import trio

from ._health import logger

T = TypeVar("T")
_Awatch: TypeAlias = Callable[..., AsyncGenerator[object, None]]


def follow_file(path: str | PathLike[str], parse: Callable[[str], T]) -> FollowedFile[T]:
    """Follow a configuration file; see :class:`FollowedFile`.

    Args:
        path: The file.
        parse: From the text to a value, such as ``yaml.safe_load``; raises when the text is no good.
    """
    return FollowedFile(trio.Path(path), parse)


@final
@attrs.define(eq=False, repr=False)
class FollowedFile(Generic[T]):
    """A file's value, which is a new one whenever the file has changed.

    ::

        config = follow_file("config.yaml", yaml.safe_load)
        await nursery.start(config.run)
        value = config.value
        while True:
            ...
            value = await config.changed(value)

    A file that cannot be read or parsed any more leaves the last good value in place, and one line in the log for each
    new reason: the error's type and its first line, or for YAML the problem and where it is.
    So what ``parse`` raises must not quote a secret in its first line.

    The directory must stay where it is.  A file that is a link into another directory is followed when the link
    changes, and ``..data`` does, as in a ConfigMap that is mounted (``pkg/volume/util/atomic_writer.go`` of
    Kubernetes); a ``subPath`` mount never changes.
    """

    path: trio.Path
    """The file."""
    _parse: Callable[[str], T]
    _text: str | None = attrs.field(default=None, init=False)
    _value: T = attrs.field(init=False)
    _trouble: str = attrs.field(default="", init=False)
    _news: trio.Event = attrs.field(factory=trio.Event, init=False)
    _stirred: trio.Event = attrs.field(factory=trio.Event, init=False)
    _is_running: bool = attrs.field(default=False, init=False)

    def __repr__(self) -> str:
        return f"<FollowedFile {str(self.path)!r}{f': {self._trouble}' if self._trouble else ''}>"

    @property
    def value(self) -> T:
        """The last good value.

        Raises:
            RuntimeError: The file was not read yet.
        """
        if self._text is None:
            raise RuntimeError(f"{self.path} was not read yet; `await nursery.start(file.run)` reads it")
        return self._value

    async def changed(self, seen: T) -> T:
        """Wait until the value is another one than ``seen``, and return it; at once, if it is already.

        So whoever was busy misses none but those that another has followed meanwhile.
        It is the same one that is meant, by ``is``; a file that was written again with the same text changes nothing.

        Args:
            seen: The value that the caller has.

        Cancellation: nothing is lost.
        """
        await trio.lowlevel.checkpoint()
        while self.value is seen:
            await self._news.wait()
        return self.value

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the file until cancelled; with ``nursery.start`` it has started when there is a first value.

        Raises:
            ModuleNotFoundError: watchfiles is not installed.
            RuntimeError: It runs already.
            OSError: The first time, the file cannot be read.
            Exception: What ``parse`` raised then, with a note that names the file.
            ExceptionGroup: Of an ``OSError``: the directory cannot be watched.

        Cancellation: a thread has to notice, which takes 50 ms at most.

        Ownership: one of trio's worker threads, for as long as this runs.
        """
        if self._is_running:
            raise RuntimeError(f"{self.path} is followed already")
        awatch = _import_awatch()
        self._is_running = True
        try:
            await self._look_first()
            task_status.started()
            async with trio.open_nursery() as nursery:
                flag = _StopFlag(self._wake)
                nursery.start_soon(flag.set_when_cancelled)
                nursery.start_soon(self._watch, awatch, flag)
                while True:
                    await self._stirred.wait()
                    self._stirred = trio.Event()
                    await self._look()
        finally:
            self._is_running = False

    def _wake(self) -> None:
        self._stirred.set()

    async def _watch(self, awatch: _Awatch, flag: _StopFlag) -> None:
        changes = awatch(self.path.parent, watch_filter=None, recursive=False, stop_event=flag, rust_timeout=0)
        async with aclosing(changes):
            async for _ in changes:
                self._wake()

    async def _look_first(self) -> None:
        text = await self.path.read_text(encoding="utf-8")
        try:
            self._take(text, self._parse(text))
        except Exception as error:
            error.add_note(f"in {self.path}")
            raise

    async def _look(self) -> None:
        try:
            text = await self.path.read_text(encoding="utf-8")
            if text != self._text:
                self._take(text, self._parse(text))
                logger.info("%s: read again", self.path)
            self._trouble = ""
        except Exception as error:  # noqa: BLE001  # whatever is wrong with the file, the last good value stays
            trouble = f"{type(error).__name__}: {_reason_of(error)}"
            if trouble != self._trouble:
                logger.error("%s: the last good value is kept: %s", self.path, trouble)  # one line
            self._trouble = trouble

    def _take(self, text: str, value: T) -> None:
        self._text = text
        self._value = value
        self._news.set()
        self._news = trio.Event()


@final
@attrs.define(eq=False)
class _StopFlag:
    """What watchfiles asks from its thread, every 50 ms: first when it watches, and whether to stop.

    It is the first that makes the look possible which finds what has changed before it watched.
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
        # Nothing else ends the thread, and awatch() waits for it.
        try:
            await trio.sleep_forever()
        finally:
            self.set()


def _reason_of(error: Exception) -> str:
    """Say in one line what is wrong with a file, and quote nothing of it: there may be secrets in there.

    PyYAML's errors quote the line, after the first one of their words, in what they call a mark.
    """
    for each in (error, error.__cause__):
        mark = getattr(each, "problem_mark", None)
        if mark is not None:
            problem = getattr(each, "problem", None) or "it does not parse"
            return f"{problem} (line {mark.line + 1}, column {mark.column + 1})"
    return str(error).strip().partition("\n")[0]


def _import_awatch() -> _Awatch:
    try:
        from watchfiles import awatch  # noqa: PLC0415  # needs an extra
    except ModuleNotFoundError as exc:
        raise ModuleNotFoundError(
            f"follow_file() needs {exc.name}; install it with `pip install 'trioformer[manager]'`", name=exc.name
        ) from exc
    return awatch
