"""A configuration file that is reloaded when it changes: by editors, by ``echo >``, and as a mounted ConfigMap.

These tests use real files and real time, because watchfiles does.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
import watchfiles
import yaml

from tests.support.controllers import errors_of
from trioformer._files import read_file
from trioformer._secret import Secret
from trioformer.errors import ConfigError
from trioformer.manager import FollowedFile, _follow_file, follow_file


@asynccontextmanager
async def followed(path: Path) -> AsyncIterator[FollowedFile[Any]]:
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            file = follow_file(path, json.loads)
            await nursery.start(file.run)
            yield file
            nursery.cancel_scope.cancel()


def put(path: Path, value: object) -> None:
    """Write a file as many editors do: write another file, and rename it."""
    other = path.with_name(f".{path.name}.new")
    other.write_text(json.dumps(value))
    other.rename(path)


async def test_a_replaced_file_is_reloaded(tmp_path: Path) -> None:
    path = tmp_path / "config"
    put(path, [1])
    async with followed(path) as file:
        value = file.value
        assert value == [1]
        for number in (2, 3):
            put(path, [number])
            value = await file.changed(value)
            assert value == file.value == [number]


@pytest.mark.parametrize("name", ["config", "config~", ".#config"])  # any name is watched
async def test_a_file_written_in_place_is_reloaded(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("[1]")
    async with followed(path) as file:
        value = file.value
        for number in (2, 3):
            path.write_text(f"[{number}]")
            value = await file.changed(value)
            assert value == [number]


async def test_a_swapped_config_map_is_reloaded(tmp_path: Path) -> None:
    # As the kubelet mounts it: config → ..data/config, ..data → ..1
    (tmp_path / "config").symlink_to("..data/config")
    for number in (1, 2, 3):
        directory = tmp_path / f"..{number}"
        directory.mkdir()
        (directory / "config").write_text(f"[{number}]")
    (tmp_path / "..data").symlink_to("..1")
    async with followed(tmp_path / "config") as file:
        value = file.value
        assert value == [1]
        for number in (2, 3):
            (tmp_path / "..data_tmp").symlink_to(f"..{number}")
            (tmp_path / "..data_tmp").rename(tmp_path / "..data")
            value = await file.changed(value)
            assert value == [number]


async def test_a_change_before_the_watch_has_started_is_found(tmp_path: Path) -> None:
    path = tmp_path / "config"
    put(path, [1])
    async with trio.open_nursery() as nursery:

        def parse(text: str) -> object:
            if text == "[1]":
                put(path, [2])  # during the first read
            return json.loads(text)

        file = follow_file(path, parse)
        await nursery.start(file.run)
        first = file.value
        assert first == [1]
        with trio.fail_after(30):
            assert await file.changed(first) == [2]
        nursery.cancel_scope.cancel()


async def test_an_invalid_file_keeps_the_last_valid_value_and_logs_each_reason_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trioformer.manager")
    path = tmp_path / "config"
    put(path, [1])
    send, parsed = trio.open_memory_channel[str](10)

    def parse(text: str) -> object:
        send.send_nowait(text)
        return json.loads(text)

    prefix = f"{path}: not reloaded, keeping the last valid value: JSONDecodeError: "
    with trio.fail_after(30), send, parsed:
        async with trio.open_nursery() as nursery:
            file = follow_file(path, parse)
            await nursery.start(file.run)
            first = file.value
            assert await parsed.receive() == "[1]"
            put(tmp_path / "another", [5])  # causes a reload without a change
            path.write_text("{\n")
            assert await parsed.receive() == "{\n"
            put(tmp_path / "another", [6])  # the same reason is not logged again
            assert await parsed.receive() == "{\n"
            path.write_text("nonsense")
            assert await parsed.receive() == "nonsense"
            assert file.value is first
            put(path, [2])
            assert await parsed.receive() == "[2]"
            assert await file.changed(first) == [2]
            path.write_text("nonsense")  # logged again after a valid text
            assert await parsed.receive() == "nonsense"
            nursery.cancel_scope.cancel()
    seen = errors_of(caplog)
    assert len(seen) == 3
    assert all(line.startswith(prefix) and "\n" not in line for line in seen)
    assert sum(record.getMessage() == f"{path}: reloaded" for record in caplog.records) == 1


def parse_and_quote(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ValueError(f"invalid configuration: {exc}") from exc


def parse_numbers(text: str) -> object:
    try:
        return [int(each) for each in yaml.safe_load(text)]
    except ValueError as exc:
        raise ValueError(f"invalid numbers\n{exc}") from exc


@pytest.mark.parametrize(
    ("parse", "text", "reason"),
    [
        (yaml.safe_load, "token: s3cret: x\n", "ScannerError: mapping values are not allowed here (line 1, column 14)"),
        (yaml.safe_load, 'ok: 1\ntoken: "s3cret', "ScannerError: found unexpected end of stream (line 2, column 15)"),
        (
            yaml.safe_load,
            "a: !s3cret x",
            "ConstructorError: could not determine a constructor for the tag … (line 1, column 4)",
        ),
        (yaml.safe_load, "a: *s3cret", "ComposerError: found undefined alias … (line 1, column 4)"),
        (yaml.safe_load, "a: b\ns3cret", "ScannerError: could not find expected ':' (line 2, column 7)"),
        (parse_and_quote, "token: s3cret: x\n", "ValueError: mapping values are not allowed here (line 1, column 14)"),
        (parse_numbers, "[s3cret]", "ValueError: invalid numbers"),
    ],
)
async def test_the_content_of_an_invalid_file_is_not_logged(
    parse: Callable[[str], object], text: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config"
    path.write_text("[1]")
    has_parsed = trio.Event()

    def parse_and_notify(text: str) -> object:
        if "s3cret" in text:
            has_parsed.set()
        return parse(text)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            file = follow_file(path, parse_and_notify)
            await nursery.start(file.run)
            other = tmp_path / "other"
            other.write_text(text)
            other.rename(path)
            await has_parsed.wait()
            nursery.cancel_scope.cancel()
    assert errors_of(caplog) == [f"{path}: not reloaded, keeping the last valid value: {reason}"]
    assert repr(file) == f"<FollowedFile '{path}': {reason}>"


def refuse_level(text: str) -> object:
    """Quotes the value, as parsers of an enumeration do."""
    if text == "info":
        return text
    raise ValueError(f"unknown level {text}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\x1b[2J\r\u202efoo\a", r"ValueError: unknown level \x1b[2J"),
        ("\x1b]0;x\x07\x00y\u2028z", r"ValueError: unknown level \x1b]0;x\x07\x00y z"),
        ("x" * 900_000, "ValueError: unknown level xxxxx"),
    ],
    ids=["lines", "escapes", "long"],
)
async def test_the_reason_is_one_printable_line_of_bounded_length(
    text: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config"
    path.write_text("info")
    has_parsed = trio.Event()

    def parse_and_notify(text: str) -> object:
        if text != "info":
            has_parsed.set()
        return refuse_level(text)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            file = follow_file(path, parse_and_notify)
            await nursery.start(file.run)
            other = tmp_path / "other"
            other.write_bytes(text.encode())
            other.rename(path)
            await has_parsed.wait()
            nursery.cancel_scope.cancel()
    (line,) = errors_of(caplog)
    for shown in (line, repr(file)):
        assert reason in shown
        assert shown.isprintable()
        assert len(shown) < 5_000


async def test_a_file_rewritten_with_the_same_text_keeps_its_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config"
    put(path, [1])
    send, looks = trio.open_memory_channel[str](10)

    def recorded(path: Path) -> Secret[bytes]:
        content = read_file(path)
        trio.from_thread.run_sync(send.send_nowait, content.reveal().decode())
        return content

    monkeypatch.setattr(_follow_file, "read_file", recorded)
    with send, looks:
        async with followed(path) as file:
            first = file.value
            for _ in range(2):  # the first look, and the one when it is watched
                assert await looks.receive() == "[1]"
            put(path, [1])
            assert await looks.receive() == "[1]"
            await trio.testing.wait_all_tasks_blocked()
            assert file.value is first


async def test_a_temporarily_missing_file_keeps_its_value(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    has_logged = trio.Event()

    class NotifyingHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            has_logged.set()

    logger, handler = logging.getLogger("trioformer.manager"), NotifyingHandler(logging.ERROR)
    logger.addHandler(handler)
    path = tmp_path / "config"
    put(path, [1])
    async with followed(path) as file:
        first = file.value
        path.unlink()
        await has_logged.wait()
        logger.removeHandler(handler)
        assert file.value is first
        put(path, [2])
        assert await file.changed(first) == [2]
    assert [line.split(": ")[2] for line in errors_of(caplog)] == ["FileNotFoundError"]


async def test_a_file_that_cannot_be_read_at_the_start_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="config"):
        await follow_file(tmp_path / "config", json.loads).run()
    with pytest.raises(FileNotFoundError, match="config"):
        await follow_file(tmp_path / "nowhere" / "config", json.loads).run()


async def test_a_file_that_does_not_parse_at_the_start_raises_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("nonsense")
    file = follow_file(path, json.loads)
    with pytest.raises(ConfigError) as caught:
        await file.run()
    assert str(caught.value) == f"{path}: JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    assert isinstance(caught.value.__cause__, json.JSONDecodeError)
    assert repr(file) == f"<FollowedFile '{path}'>"
    with pytest.raises(RuntimeError, match="has not been read yet"):
        file.value  # noqa: B018


async def test_an_error_of_the_library_at_the_start_is_raised_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("text")
    error = ConfigError("Log.Level is missing")

    def refuse(text: str) -> object:
        raise error

    with pytest.raises(ConfigError) as caught:
        await follow_file(path, refuse).run()
    assert caught.value is error
    assert error.__notes__ == [f"in {path}"]


async def test_what_is_not_utf_8_is_refused_and_keeps_the_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config"
    path.write_bytes(b'["s3cr\xe9t"]')
    with trio.fail_after(30), pytest.raises(ConfigError) as caught:
        await follow_file(path, json.loads).run()
    assert str(caught.value) == f"{path}: is not UTF-8"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    path.rename(tmp_path / "hostile")
    put(path, [1])
    has_logged = trio.Event()

    class NotifyingHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            has_logged.set()

    logger, handler = logging.getLogger("trioformer.manager"), NotifyingHandler(logging.ERROR)
    logger.addHandler(handler)
    async with followed(path) as file:
        first = file.value
        path.unlink()
        (tmp_path / "hostile").rename(path)
        await has_logged.wait()
        assert file.value is first
    logger.removeHandler(handler)
    expected = f"{path}: not reloaded, keeping the last valid value: ConfigError: {path}: is not UTF-8"
    assert expected in errors_of(caplog)  # before it perhaps that there was no file


async def test_line_ends_are_those_of_python(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"a\r\nb\rc\n")
    async with trio.open_nursery() as nursery:
        file = follow_file(path, str.splitlines)
        await nursery.start(file.run)
        assert file.value == ["a", "b", "c"]
        nursery.cancel_scope.cancel()


async def test_no_traceback_shows_a_file_that_does_not_parse(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("s3cret")
    with pytest.raises(ConfigError) as caught:
        await follow_file(path, json.loads).run()
    seen = []
    assert caught.value.__cause__ is not None
    for error in (caught.value, caught.value.__cause__):
        step = error.__traceback__
        while step is not None:
            if step.tb_frame.f_code.co_filename == _follow_file.__file__:
                seen.append(repr(step.tb_frame.f_locals))
            step = step.tb_next
    assert len(seen) == 4
    assert "s3cret" not in "".join(seen)


async def test_changed_waits_for_a_value_other_than_the_given_one(tmp_path: Path) -> None:
    path = tmp_path / "config"
    put(path, [1])
    async with followed(path) as file:
        first = file.value
        put(path, [2])
        second = await file.changed(first)
        with trio.testing.assert_checkpoints():
            assert await file.changed(first) is second  # returns the latest value immediately
        with trio.move_on_after(0):
            await file.changed(second)
        put(path, [2])
        put(path, [3])
        assert await file.changed(second) == [3]


async def test_a_file_cannot_be_followed_twice_at_the_same_time_but_again_later(tmp_path: Path) -> None:
    path = tmp_path / "config"
    put(path, [1])
    async with followed(path) as file:
        with pytest.raises(RuntimeError, match="already"):
            await file.run()
    put(path, [2])
    async with trio.open_nursery() as nursery:
        await nursery.start(file.run)
        assert file.value == [2]
        nursery.cancel_scope.cancel()


async def test_cancellation_takes_effect_promptly_and_leaves_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mock_clock: trio.testing.MockClock
) -> None:
    """The thread checks its stop event every 50 ms, and ends when it is set; no task sleeps meanwhile."""
    awatch, answers = watchfiles.awatch, list[bool]()

    def recorded(*arguments: Any, stop_event: Any, **options: Any) -> AsyncGenerator[object, None]:
        class Flag:
            set = stop_event.set

            def is_set(self) -> bool:
                answers.append(stop_event.is_set())
                return answers[-1]

        return awatch(*arguments, stop_event=Flag(), **options)  # type: ignore[arg-type]  # all that is asked of one

    monkeypatch.setattr(watchfiles, "awatch", recorded)
    path = tmp_path / "config"
    put(path, [1])
    threads = trio.to_thread.current_default_thread_limiter().borrowed_tokens
    async with trio.open_nursery() as nursery:
        file = follow_file(path, json.loads)
        await nursery.start(file.run)
        put(path, [2])
        await file.changed(file.value)
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == threads + 1
        mock_clock.autojump_threshold = 0.2  # the clock stood still, and shows now whether anything waits for it
        nursery.cancel_scope.cancel()
    assert trio.current_time() == 0
    assert answers.count(True) == 1
    assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == threads


async def test_without_watchfiles_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(ModuleNotFoundError) as caught:
        await follow_file(tmp_path / "config", json.loads).run()
    assert str(caught.value) == "follow_file() needs watchfiles; install it with `pip install 'trioformer[manager]'`"
