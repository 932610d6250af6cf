"""``trioformer.run``: signals, errors of the library, exit codes.

Most tests send themselves the first signal, which the run handles; what kills a process needs one of its own.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
import trio

import trioformer
from tests.support.processes import ROOT, result_of, running
from trioformer import ConfigError, NotFoundError, TrioformerError

SIGNALS = pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[dict[signal.Signals, object]]:
    """The handlers of a new process, which are there again after each test, even if it has failed."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/srv/programs/counter.py", "--all"])


def current_handlers() -> dict[signal.Signals, object]:
    return {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}


async def wait_for_ever() -> None:
    with trio.fail_after(10):  # a guard against a signal that is lost
        await trio.sleep_forever()


async def signal_itself(number: int) -> None:
    signal.raise_signal(number)
    with trio.fail_after(10):
        await trio.sleep_forever()


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (3, 3), (255, 255)])
def test_the_exit_code_is_what_the_function_returns(returned: int | None, code: int) -> None:
    async def main(first: int | None, second: str) -> int | None:
        await trio.lowlevel.checkpoint()
        assert second == "other"
        return first

    assert trioformer.run(main, returned, "other") == code


@SIGNALS
def test_a_signal_cancels_the_function_which_cleans_up(
    number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[str] = []

    async def main() -> None:
        try:
            await signal_itself(number)
        finally:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
                ended.append("clean")

    assert trioformer.run(main) == code
    assert ended == ["clean"]
    assert capsys.readouterr() == ("", "")


@SIGNALS
def test_with_an_event_a_signal_sets_it_and_cancels_nothing(number: signal.Signals, code: int) -> None:
    stop, drained = trio.Event(), list[int]()

    async def main(stop: trio.Event) -> int:
        signal.raise_signal(number)
        with trio.fail_after(10):
            await stop.wait()
        for key in range(3):
            await trio.lowlevel.checkpoint()
            drained.append(key)
        return 7

    assert trioformer.run(main, stop, stop=stop) == 7
    assert drained == [0, 1, 2]


def test_a_function_that_has_returned_in_spite_of_a_signal_has_its_own_code() -> None:
    async def main() -> int:
        with trio.CancelScope(shield=True):
            signal.raise_signal(signal.SIGTERM)
            await trio.lowlevel.checkpoint()
        return 5

    assert trioformer.run(main) == 5


def test_a_signal_before_the_function_has_begun_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trio.run

    def late(*arguments: object) -> object:
        signal.raise_signal(signal.SIGTERM)
        return run(*arguments)  # type: ignore[arg-type]  # the same arguments

    monkeypatch.setattr(trio, "run", late)
    assert trioformer.run(wait_for_ever) == 143


def test_a_signal_after_the_end_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trio.run

    def early(*arguments: object) -> object:
        result = run(*arguments)  # type: ignore[arg-type]  # the same arguments
        signal.raise_signal(signal.SIGTERM)
        return result

    async def main() -> int:
        await trio.lowlevel.checkpoint()
        return 4

    monkeypatch.setattr(trio, "run", early)
    assert trioformer.run(main) == 4


def test_after_the_first_signal_the_second_has_its_default_action() -> None:
    found: list[dict[signal.Signals, object]] = []

    async def main() -> None:
        found.append(current_handlers())
        signal.raise_signal(signal.SIGINT)
        try:
            await trio.sleep_forever()
        finally:
            found.append(current_handlers())

    trioformer.run(main)
    assert signal.SIG_DFL not in found[0].values()
    assert set(found[1].values()) == {signal.SIG_DFL}


@pytest.mark.parametrize("is_signalled", [False, True])
def test_the_handlers_are_put_back(handlers: dict[signal.Signals, object], is_signalled: bool) -> None:
    async def main() -> None:
        await trio.lowlevel.checkpoint()
        if is_signalled:
            signal.raise_signal(signal.SIGTERM)
        raise KeyError("mine")

    with pytest.raises(KeyError):
        trioformer.run(main)
    assert current_handlers() == handlers


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def main() -> int:
        signal.raise_signal(signal.SIGINT)
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        signal.raise_signal(signal.SIGTERM)
        await trio.sleep_forever()
        return 0

    assert trioformer.run(main) == 143
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


STUCK = """
import sys, time, trio, trioformer

async def main():
    try:
        print("running", flush=True)
        await trio.sleep_forever()
    finally:
        print("stopping", flush=True)
        for _ in range(600):  # a signal just before a sleep is handled after it
            time.sleep(0.1)

sys.exit(trioformer.run(main))
"""


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
async def test_a_second_signal_kills_a_program_whose_cleanup_is_stuck(first: signal.Signals) -> None:
    second = signal.SIGTERM if first == signal.SIGINT else signal.SIGINT
    with trio.fail_after(30):
        async with running("-c", STUCK) as program:
            await program.wait_for_line("running")
            program.process.send_signal(first)
            await program.wait_for_line("stopping")
            program.process.send_signal(second)
            assert await program.wait_until_over() == -second
    assert program.errors == []


async def test_process_1_ends_itself_on_the_second_signal() -> None:
    """Linux drops signals that the first process of a container does not handle."""
    with trio.fail_after(30):
        async with running("-c", f"import os; os.getpid = lambda: 1{STUCK}") as program:
            await program.wait_for_line("running")
            program.process.send_signal(signal.SIGINT)
            await program.wait_for_line("stopping")
            program.process.send_signal(signal.SIGTERM)
            assert await program.wait_until_over() == 143
    assert program.errors == []


TOGETHER = """
import os, signal, sys, time, trio, trioformer

async def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    time.sleep(60)

sys.exit(trioformer.run(main))
"""


async def test_two_signals_that_python_notices_together_kill_the_program() -> None:
    assert await result_of("-c", TOGETHER) == (-signal.SIGTERM, [], [])


# --- errors -----------------------------------------------------------------------------------------------------------


def failing(error: BaseException) -> Callable[[], NoReturn]:
    async def main() -> NoReturn:
        await trio.lowlevel.checkpoint()
        raise error

    return main  # type: ignore[return-value]  # an async function, which run() takes


def test_an_error_of_the_library_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = ConfigError("does not exist", file="/home/me/.kube/config")
    assert trioformer.run(failing(error)) == 1
    assert capsys.readouterr() == ("", "counter: /home/me/.kube/config: does not exist\n")


def test_errors_in_groups_are_a_line_each_and_equal_ones_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    equal = [NotFoundError("no pods", code=404), NotFoundError("no pods", code=404)]
    group = ExceptionGroup("outer", [*equal, ExceptionGroup("inner", [TrioformerError("first")])])
    assert trioformer.run(failing(group)) == 1
    assert capsys.readouterr().err == "counter: no pods (HTTP 404)\ncounter: first\n"


def test_errors_that_differ_in_their_request_only_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [NotFoundError("no pods", code=404, request_id=each) for each in ("id-1", "id-2")]
    assert trioformer.run(failing(ExceptionGroup("workers", errors))) == 1
    line = "counter: no pods (HTTP 404); request ID (in the server's audit log): id-1\n"
    assert capsys.readouterr().err == line


def test_notes_of_an_error_and_of_its_groups_are_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = TrioformerError("refused")
    error.add_note("informer of pods\n\x1b[31m")
    group = ExceptionGroup("group", [error])
    group.add_note("try --embedded")
    assert trioformer.run(failing(group)) == 1
    assert capsys.readouterr().err == "counter: refused; informer of pods \\x1b[31m; try --embedded\n"


def test_a_note_that_another_one_repeats_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    error = TrioformerError("refused")
    error.add_note("informer of pods: only permanent errors for 30 s")
    group = ExceptionGroup("group", [error])
    group.add_note("informer of pods")
    outer = ExceptionGroup("group", [group])
    outer.add_note("informer of pods")
    assert trioformer.run(failing(outer)) == 1
    assert capsys.readouterr().err == "counter: refused; informer of pods: only permanent errors for 30 s\n"


def test_the_traceback_of_an_error_is_logged_for_who_wants_it(caplog: pytest.LogCaptureFixture) -> None:
    error = ExceptionGroup("group", [TrioformerError("refused")])
    with caplog.at_level(logging.DEBUG, logger="trioformer"):
        assert trioformer.run(failing(error)) == 1
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is error


@pytest.mark.parametrize(
    "error",
    [
        KeyError("mine"),
        ExceptionGroup("both", [TrioformerError("world"), KeyError("mine")]),
        SystemExit(3),
        KeyboardInterrupt(),
        BrokenPipeError("of another pipe"),
        OSError(errno.ENOSPC, "of another file"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_any_other_exception_is_raised_unchanged(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(type(error)) as caught:
        trioformer.run(failing(error))
    assert caught.value is error
    assert capsys.readouterr().err == ""


def test_an_error_in_the_cleanup_after_a_signal_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        try:
            await signal_itself(signal.SIGTERM)
        finally:
            raise TrioformerError("the lease could not be released")

    assert trioformer.run(main) == 1
    assert capsys.readouterr().err == "counter: the lease could not be released\n"


@pytest.mark.parametrize(
    ("argument", "expected"),
    [("/srv/app/__main__.py", "app"), ("/usr/bin/counter", "counter"), ("-c", "python"), ("", "python")],
)
def test_the_line_begins_with_the_name_of_the_program(
    argument: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [argument])
    assert trioformer.run(failing(TrioformerError("refused"))) == 1
    assert capsys.readouterr().err == f"{expected}: refused\n"


@pytest.mark.parametrize("stream", [None, "closed"])
def test_without_a_standard_error_only_the_code_reports_the_error(
    stream: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed = (tmp_path / "file").open("w")
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed if stream else None)
    monkeypatch.setattr(sys, "stdout", closed if stream else None)
    assert trioformer.run(failing(TrioformerError("refused"))) == 1


def test_without_a_standard_error_the_error_is_not_in_the_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert trioformer.run(failing(TrioformerError("refused"))) == 1
    assert capsys.readouterr().out == ""


# --- an output that nobody reads --------------------------------------------------------------------------------------

PRINTS = """
import sys, trio, trioformer

async def main():
    for number in range({lines}):
        print(number)
        await trio.lowlevel.checkpoint()
    {then}

sys.exit(trioformer.run(main))
"""


@pytest.mark.parametrize(
    ("lines", "then", "code", "errors"),
    [
        (1_000_000, "pass", 141, b""),
        (3, "pass", 141, b""),  # they are written when the program ends
        (3, "raise trioformer.TrioformerError('refused')", 1, b"python: refused\n"),
    ],
    ids=["while it runs", "at its end", "with an error"],
)
async def test_a_closed_output_ends_a_program_in_silence(lines: int, then: str, code: int, errors: bytes) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", PRINTS.format(lines=lines, then=then)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with trio.fail_after(30):
        done = await trio.run_process(
            command, stdout=writer, capture_stderr=True, check=False, cwd=ROOT, env=environment
        )
    os.close(writer)
    assert (done.returncode, done.stderr) == (code, errors)


@pytest.mark.parametrize("unbuffered", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"])
async def test_an_output_that_cannot_be_written_is_reported_in_one_line(unbuffered: dict[str, str]) -> None:
    command = [sys.executable, "-c", PRINTS.format(lines=3, then="pass")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | unbuffered
    with trio.fail_after(30):
        full = os.open("/dev/full", os.O_WRONLY)
        done = await trio.run_process(command, stdout=full, capture_stderr=True, check=False, cwd=ROOT, env=environment)
        os.close(full)
    assert done.returncode == 1
    assert done.stderr == b"python: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("is_unbuffered", [False, True], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("is_pipe", [False, True], ids=["full disk", "closed pipe"])
def test_an_output_that_fails_in_this_process_is_reported_or_not(
    is_unbuffered: bool, is_pipe: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        print("x")
        await trio.lowlevel.checkpoint()

    reader, writer = os.pipe() if is_pipe else (os.open(os.devnull, os.O_RDONLY), os.open("/dev/full", os.O_WRONLY))
    os.close(reader)
    raw = os.fdopen(writer, "wb", buffering=0)
    with io.TextIOWrapper(raw if is_unbuffered else io.BufferedWriter(raw), write_through=is_unbuffered) as out:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            code = trioformer.run(main)
        os.dup2(nowhere := os.open(os.devnull, os.O_WRONLY), writer)
        os.close(nowhere)
    problem = "counter: cannot write to standard output: No space left on device\n"
    assert (code, capsys.readouterr().err) == ((141, "") if is_pipe else (1, problem))


# --- mistakes ---------------------------------------------------------------------------------------------------------


def test_another_thread_than_the_main_one_is_refused() -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            trioformer.run(wait_for_ever)
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert [str(error) for error in raised] == [
        "trioformer.run() requires the main thread, because it handles signals; use trio.run()"
    ]


def test_a_call_in_place_of_a_function_is_refused_with_a_hint() -> None:
    with pytest.raises(TypeError, match=r"write run\(main, argument\), not run\(main\(argument\)\)"):
        trioformer.run(wait_for_ever())  # type: ignore[arg-type]  # what is tested


def test_a_function_that_is_not_async_is_refused_with_a_hint() -> None:
    def counter() -> None: ...

    with pytest.raises(TypeError, match=r"counter is not one; write `async def`"):
        trioformer.run(counter)  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        ("done", TypeError, "not a str"),
        (True, TypeError, "not a bool"),
        (256, ValueError, "not 256"),
        (-1, ValueError, "not -1"),
    ],
)
def test_a_result_that_is_no_exit_code_is_refused(returned: object, error: type[Exception], text: str) -> None:
    async def main() -> object:
        await trio.lowlevel.checkpoint()
        return returned

    with pytest.raises(error, match=text):
        trioformer.run(main)  # type: ignore[arg-type]  # what is tested
