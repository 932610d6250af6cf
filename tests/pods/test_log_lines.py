"""How the bytes of a log become lines, and which of them are new after a broken connection."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from trioformer.pods._log_lines import DISORDER, REMEMBERED, LineSplitter, LogLine, ReceivedLines, split_stamp

SECOND = 1_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_the_time_is_split_off_a_line() -> None:
    for line, expected in [
        (b"1970-01-01T00:00:01.000000002Z text", (1_000_000_002, "1970-01-01T00:00:01.000000002Z", b"text")),
        (b"1970-01-01T01:00:01.5+01:00  two", (1_500_000_000, "1970-01-01T01:00:01.5+01:00", b" two")),
        (b"1970-01-01T00:00:01Z ", (1_000_000_000, "1970-01-01T00:00:01Z", b"")),
        (b"1970-01-01T00:00:01Z", (1_000_000_000, "1970-01-01T00:00:01Z", b"")),
        (b"1970-01-01T00:00:01Ztext", (-1, "", b"1970-01-01T00:00:01Ztext")),
        (b"1970-13-01T00:00:01Z text", (-1, "", b"1970-13-01T00:00:01Z text")),
        (b"no time", (-1, "", b"no time")),
        (b"", (-1, "", b"")),
    ]:
        assert split_stamp(line) == expected


def test_a_line_has_a_text_and_a_time() -> None:
    line = LogLine(data=b"\xff one", timestamp="2026-01-02T03:04:05.123456789+01:00")
    assert (str(line), line.text) == ("\ufffd one", "\ufffd one")
    assert line.time == datetime(2026, 1, 2, 2, 4, 5, 123456, tzinfo=UTC)
    assert LogLine(data=b"").time is None


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(0, 60)), st.integers(1, 30))
def test_lines_do_not_depend_on_where_the_bytes_are_cut(lines: list[bytes], cuts: list[int], limit: int) -> None:
    data = b"\n".join(lines)
    whole = LineSplitter(limit)
    expected = whole.feed(data) + whole.end()
    pieces, splitter, at = [], LineSplitter(limit), 0
    for cut in cuts:
        pieces += splitter.feed(data[at : at + cut])
        at += cut
    pieces += splitter.feed(data[at:]) + splitter.end()
    assert pieces == expected
    assert all(len(piece.data) <= limit for piece in pieces)
    joined = b"".join(piece.data + (b"\n" if piece.is_last else b"") for piece in pieces)
    assert joined.replace(b"\r", b"") == (data + b"\n" if data and data[-1:] != b"\n" else data).replace(b"\r", b"")


def sent_by_server(log: Sequence[tuple[int, bytes]], since: str) -> list[tuple[int, bytes]]:
    """Return what an API server sends of a log after a time."""
    first = (datetime.fromisoformat(since) - EPOCH) // timedelta(seconds=1) * SECOND if since else 0
    return [(instant, data) for instant, data in log if instant >= first]


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[int, bytes]]:
    """A log whose lines have times that may be equal, and out of order by less than a second."""
    now = 100 * SECOND
    lines: list[tuple[int, bytes]] = []
    for _ in range(draw(st.integers(0, 60))):
        now += draw(st.sampled_from([0, 0, 1, SECOND // 3, SECOND, 5 * SECOND]))
        lines.append((now - draw(st.sampled_from([0, 0, 1, DISORDER - 1])), draw(st.sampled_from([b"a", b"b"]))))
    return lines


@given(logs(), st.lists(st.integers(1, 20), max_size=20), st.data())
def test_no_line_is_lost_or_repeated_wherever_the_connection_breaks(
    log: list[tuple[int, bytes]], steps: list[int], data: st.DataObject
) -> None:
    received, until = ReceivedLines(), 0
    found: list[tuple[int, bytes]] = []
    for number, step in enumerate([*steps, len(log)]):
        until = min(until + step, len(log))
        if number:
            received.begin_repetition()
        sent = sent_by_server(log[:until], received.since)
        # A connection may break again while the lines are repeated.
        broken_at = data.draw(st.integers(0, len(sent))) if number < len(steps) else len(sent)
        found += [line for line in sent[:broken_at] if received.is_new(line[0], (line[1], 0))]
    assert found == log


def test_lines_that_are_not_remembered_any_more_are_known_by_their_time() -> None:
    log = [(100 * SECOND + number, b"x") for number in range(3 * REMEMBERED)]
    received = ReceivedLines()
    assert all(received.is_new(instant, (data, 0)) for instant, data in log)
    received.begin_repetition()
    again = [*log, (100 * SECOND + 5, b"late"), (101 * SECOND, b"new")]
    assert [data for instant, data in again if received.is_new(instant, (data, 0))] == [b"late", b"new"]
    assert received.since == "1970-01-01T00:01:40Z"


def test_lines_of_one_time_and_content_are_counted() -> None:
    for contents in [1, 7]:
        log = [(100 * SECOND, b"%d" % (number % contents)) for number in range(3 * REMEMBERED)]
        received = ReceivedLines()
        assert all(received.is_new(instant, (data, 0)) for instant, data in log)
        for _ in range(2):
            received.begin_repetition()
            assert not any(received.is_new(instant, (data, 0)) for instant, data in log)
        assert received.is_new(*(100 * SECOND, (b"0", 0)))


def test_the_log_is_sent_again_from_the_last_line_if_the_clock_was_set_back() -> None:
    received = ReceivedLines()
    for second in (100, 70):
        assert received.is_new(second * SECOND, (b"x", 0))
    assert received.since == "1970-01-01T00:01:09Z"
