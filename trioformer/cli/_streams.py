"""The standard streams of the tool, whatever the program that has started it has given to it."""

from __future__ import annotations

import codecs
import io
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, final

from .. import _run
from .._text import for_terminal
from ._failures import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import TextIO

__all__ = ["Output", "open_standard_streams"]


_INCOMPLETE: Final = re.compile(r"(?:\r|\x1b(?:\[[0-9;:]{0,32})?)\Z")
"""The beginning of a line end, or of a sequence that sets a color, at the end of a text."""


def open_standard_streams() -> None:
    """Open the standard streams that are closed, with ``/dev/null``, and write UTF-8, whatever the locale is.

    A socket would get the number of a stream that is closed, and then what is written to that stream; Go, and so
    kubectl, does the same.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    # Not by the stream's number, which an import may have taken: libffi keeps the first file that it opens.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the whole process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the whole process
    # Arguments that are not UTF-8 are in some output, byte for byte.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")


@final
class Output:
    """Standard output; that it cannot be written, such as a file on a full disk, is an error of the command.

    A pipe that nobody reads any more is not: the tool ends without a word, as every program does.

    Attributes:
        escapes_controls: Whether the control characters of what is written are escaped: a terminal would obey them, and
            tenants write names and logs.  Logs keep their colors.
    """

    def __init__(self, stream: TextIO) -> None:
        self.escapes_controls = stream.isatty()
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._incomplete = ""
        self._is_writing = False
        self._signal: int | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def end_on_signals(self) -> None:
        """Let the signals that ``trioformer.run()`` handles end the process while it writes.

        It would not see that it is to end until somebody reads what is written.  The tool has nothing to clean up then.
        """
        for number in _run.SIGNALS:
            before = signal.getsignal(number)
            if callable(before):  # it is not ignored
                signal.signal(number, partial(self._on_signal, before))

    def _on_signal(
        self, before: Callable[[int, FrameType | None], object], number: int, frame: FrameType | None
    ) -> None:
        self._signal = number
        if self._is_writing:
            os._exit(128 + number)
        before(number, frame)

    def write(self, text: str) -> int:
        """Write a text.

        Raises:
            CommandError: It cannot be written.
            BrokenPipeError: Nobody reads it any more.
        """
        with self._writing():
            return self._stream.write(for_terminal(text) if self.escapes_controls else text)

    def write_bytes(self, data: bytes) -> None:
        """Write bytes of a log at once, after what is in the buffer; it raises what :meth:`write` raises."""
        if self.escapes_controls:
            text = self._incomplete + self._decode(data)
            found = _INCOMPLETE.search(text)
            self._incomplete = found[0] if found else ""
            data = for_terminal(text.removesuffix(self._incomplete), keeps_colors=True).encode()
        with self._writing():
            self._stream.flush()
            rest = memoryview(data)
            while rest:  # without a buffer, a part of it may be written
                rest = rest[self._stream.buffer.write(rest) :]
            self._stream.flush()

    def flush(self) -> None:
        """Write what is in the buffer; it raises what :meth:`write` raises."""
        with self._writing():
            self._stream.flush()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._is_writing = True
        if self._signal is not None:  # it came since the last checkpoint
            os._exit(128 + self._signal)
        try:
            yield
        except OSError as exc:
            raise self._error(exc) from exc
        finally:
            self._is_writing = False

    def _error(self, error: OSError) -> Exception:
        if isinstance(error, BrokenPipeError):
            return error
        # What is left in the buffer goes nowhere, or it fails again at the end of the process.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        return CommandError(f"cannot write to standard output: {error.strerror}")
