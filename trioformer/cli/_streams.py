"""The standard streams of the tool."""

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
"""A pattern that matches an incomplete line end or color sequence at the end of a text."""


def open_standard_streams() -> None:
    """Replace closed standard streams with ``/dev/null``, and use UTF-8 regardless of the locale.

    Otherwise, a socket could reuse the file descriptor of a closed stream and receive the tool's output.  The Go
    runtime, and therefore kubectl, does the same.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
    # Do not check the number, because an import may already use it: libffi keeps the first file that it opens.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the whole process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the whole process
    # Arguments that are not UTF-8 are printed byte for byte.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")


@final
class Output:
    """The standard output of the tool.

    If a write fails, for example because the disk is full, the command fails.  If the reader closes the pipe, the tool
    exits silently, as other programs do.

    Attributes:
        escapes_controls: Whether to escape control characters. A name or a log can come from any user of the cluster,
            and control characters in it could change the state of the terminal.  Color codes in logs are kept.
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
        """Exit immediately if a signal that ``trioformer.run()`` handles arrives during a blocked write.

        Otherwise, the process could not exit until its output is read.  No cleanup is necessary during a write.
        """
        for number in _run.SIGNALS:
            before = signal.getsignal(number)
            if callable(before):  # not ignored
                signal.signal(number, partial(self._on_signal, before))

    def _on_signal(
        self, before: Callable[[int, FrameType | None], object], number: int, frame: FrameType | None
    ) -> None:
        self._signal = number
        if self._is_writing:
            os._exit(128 + number)
        before(number, frame)

    def write(self, text: str) -> int:
        """Write text.

        Raises:
            CommandError: If the text cannot be written.
            BrokenPipeError: If the reader has closed the pipe.
        """
        with self._writing():
            return self._stream.write(for_terminal(text) if self.escapes_controls else text)

    def write_bytes(self, data: bytes) -> None:
        """Write the buffered text, and then write the bytes of a log immediately.

        This method raises the same exceptions as :meth:`write`.
        """
        if self.escapes_controls:
            text = self._incomplete + self._decode(data)
            found = _INCOMPLETE.search(text)
            self._incomplete = found[0] if found else ""
            data = for_terminal(text.removesuffix(self._incomplete), keeps_colors=True).encode()
        with self._writing():
            self._stream.flush()
            rest = memoryview(data)
            while rest:  # an unbuffered stream may write only a part
                rest = rest[self._stream.buffer.write(rest) :]
            self._stream.flush()

    def flush(self) -> None:
        """Write the buffered text.

        This method raises the same exceptions as :meth:`write`.
        """
        with self._writing():
            self._stream.flush()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._is_writing = True
        if self._signal is not None:  # received since the last checkpoint
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
        # Discard the buffer, which would fail again at the end of the process.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        return CommandError(f"cannot write to standard output: {error.strerror}")
