"""What must hold for every input, whatever it is.

- An exception that leaves the library is one of its own, or one that the call documents.
- No secret shows: in ``repr`` and ``str``, in log records, and in the traceback of an error.  A credential must not show
  in a traceback that prints the local variables either.  The bytes of an object are local variables of the functions
  that decode it, so for the content of objects that is only counted.
- A text has no control characters, and is shorter than 5,000 characters: a server may choose a part of it.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TypeVar

import attrs
import trio

from trioformer.errors import LimitExceededError, TrioformerError
from trioformer.transport import Limits

from .secrets import CREDENTIALS, EVERYTHING, OBJECT_CONTENT, find

T = TypeVar("T")

TESTS = str(Path(__file__).parents[1])
LONGEST_TEXT = 5_000
# Control characters, separators of lines, directions (an editor shows what follows in another order), and surrogates.
_HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Finding(Exception):  # noqa: N818  # what a fuzzer is for
    """Something that must not be; the text names it, and the first line groups equal ones."""


@attrs.define(eq=False)
class Oracle(logging.Handler):
    """Checks what one fuzzer's inputs lead to; a handler of the root logger."""

    counts: Counter[str] = attrs.field(factory=Counter)
    """How many calls ended how: ``returned``, or the name of the error."""
    problem: Finding | None = None
    """Found where nothing can be raised, as in a log record."""

    def __attrs_pre_init__(self) -> None:
        super().__init__()

    async def call(
        self, function: Callable[[], Awaitable[T]], documented: tuple[type[Exception], ...] = (TrioformerError,)
    ) -> T | Exception:
        """Await a call of the library; return its result, or its error after checking it."""
        result: T | Exception
        try:
            result = await function()
            failed = False
        except Finding:
            raise
        except Exception as error:  # noqa: BLE001  # which ones are allowed is the question
            result, failed = error, True
        await trio.lowlevel.checkpoint()  # so that the checks do not count as the library's last step
        if failed and isinstance(result, Exception):
            return self.error(result, documented)
        self.counts["returned"] += 1
        return result

    def call_sync(
        self, function: Callable[[], T], documented: tuple[type[Exception], ...] = (TrioformerError,)
    ) -> T | Exception:
        """As :meth:`call`, for a function that is not async."""
        try:
            result = function()
        except Finding:
            raise
        except Exception as error:  # noqa: BLE001  # as above
            return self.error(error, documented)
        self.counts["returned"] += 1
        return result

    def error(self, error: Exception, documented: tuple[type[Exception], ...] = (TrioformerError,)) -> Exception:
        """Check an exception that left the library; a group must contain only such exceptions."""
        for each in leaves(error):
            if isinstance(each, Finding):
                raise each
            if not isinstance(each, documented):
                place = last_place(each)
                raise Finding(f"foreign exception {type(each).__name__} from {place}\n{str(each)[:300]}") from each
            self.counts[type(each).__name__] += 1
            self._check_error(each)
        return error

    def _check_error(self, error: Exception) -> None:
        where = f"error from {last_place(error)}"
        self.text(str(error), f"text of {where}")
        self.secrets(repr(error), f"repr of {where}")
        if isinstance(error, LimitExceededError):
            names = {field.name for field in attrs.fields(Limits)}
            self.expect(
                error.limit in names and f"{error.limit}=" in str(error), "an error does not name its limit", error
            )
        for name, value in vars(error).items():
            if isinstance(value, str) and name != "key":  # programs compare keys, so these are as they came
                self.text(value, f"attribute {name} of an error")
            else:
                self.secrets(repr(value), f"attribute {name} of an error")
        for each in chain_of(error):
            for frame, line in traceback.walk_tb(each.__traceback__):
                if not frame.f_code.co_filename.startswith(TESTS):
                    self._check_frame(frame, line, where)
            self.secrets("".join(traceback.format_exception_only(each)), f"traceback of {where}")

    def _check_frame(self, frame: FrameType, line: int, where: str) -> None:
        """Check the local variables of a frame as ``traceback.TracebackException(capture_locals=True)`` shows them."""
        for name, value in frame.f_locals.items():
            try:
                shown = repr(value)
            except Exception:  # noqa: BLE001  # of an object that is not complete; the traceback of 3.11 fails too
                continue
            if find(CREDENTIALS, shown) >= 0:
                place = f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"
                raise Finding(
                    f"credential in the local variable {name} of {place}\nline {line}, {where}: {shown[:300]}"
                )
            if find(OBJECT_CONTENT, shown) >= 0:
                self.counts[f"content in local variable {name}"] += 1

    def text(self, text: str, what: str) -> None:
        """Check a text that is shown: no secret, no control characters, and a limited length."""
        self.secrets(text, what)
        if len(text) >= LONGEST_TEXT:
            raise Finding(f"{what}: too long\n{len(text)} characters: {text[:200]!r}")
        if found := _HARMFUL.search(text):
            raise Finding(f"{what}: contains control characters\n{found.group()!r} in {text[:300]!r}")

    def secrets(self, text: str, what: str, forms: tuple[str, ...] = EVERYTHING) -> None:
        """Check that no secret shows."""
        at = find(forms, text)
        if at >= 0:
            raise Finding(f"{what}: shows a secret\n{text[max(at - 200, 0) : at + 100]!r}")

    def expect(self, condition: object, problem: str, detail: object = "") -> None:
        """Check that what was accepted is right."""
        if not condition:
            raise Finding(f"{problem}\n{detail!r}"[:3_000])

    def emit(self, record: logging.LogRecord) -> None:
        """Check a log record."""
        where = f"log record of {record.name} ({record.funcName})"
        self.counts["log records"] += 1
        try:
            if record.name.startswith("trioformer"):
                self.text(record.getMessage(), where)
            elif record.levelno >= logging.INFO:
                self.secrets(record.getMessage(), where)
            else:  # httpcore logs at this level what it receives
                self.secrets(record.getMessage(), where, CREDENTIALS)
            if record.exc_info and record.exc_info[1] is not None:
                self.secrets("".join(traceback.format_exception(record.exc_info[1])), f"traceback in a {where}")
        except Finding as found:
            self.problem = self.problem or found

    def raise_problem(self) -> None:
        """Raise what was found where nothing can be raised."""
        found, self.problem = self.problem, None
        if found is not None:
            raise found


def leaves(error: BaseException) -> Iterator[Exception]:
    """Yield the exceptions of a group, or the one exception."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaves(each)
    elif isinstance(error, Exception):
        yield error


def last_place(error: BaseException) -> str:
    """Return the last function of the library in a traceback, to group equal findings."""
    place = "nowhere"
    for frame in traceback.extract_tb(error.__traceback__):
        if "trioformer" in frame.filename and not frame.filename.startswith(TESTS):
            place = f"{Path(frame.filename).stem}.{frame.name}:{frame.lineno}"
    return place


def chain_of(error: BaseException) -> list[BaseException]:
    """List an error and what a traceback prints before it."""
    chain: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is not None and each not in chain:
            chain.append(each)
            todo += [each.__cause__, None if each.__suppress_context__ else each.__context__]
            todo += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
    return chain
