"""Leader election: two candidates and their Lease, with the times of the default options."""

from __future__ import annotations

from trioformer.leaderelection import LeaderElectionOptions

from ._shapes import PHONE, Box, drawing, line, lines, show

ALT = (
    "Two candidates and a Lease: one acquires it, renews it, and works; after its release the other leads within 0.2 "
    "seconds; if it cannot renew, its work is cancelled before the other may lead"
)
LEFT, MIDDLE, RIGHT = 70, 185, 300


def _message(y: int, start: int, end: int, text: str, *, style: str = "line", anchor: int | None = None) -> str:
    at = (start + end) // 2 if anchor is None else anchor
    edge = 7 if end > start else -7
    return line("election", f"M{start + edge} {y} H{end - edge}", [text], (at, y - 5)).replace('"line"', f'"{style}"')


def _works(x: int, y: int, end: int, style: str = "box task") -> str:
    return f'<rect class="{style}" x="{x - 7}" y="{y}" width="14" height="{end - y}" rx="3"/>'


def election() -> str:
    """Draw it."""
    options = LeaderElectionOptions()
    lease, renew, retry = (
        f"{value:g} s" for value in (options.lease_duration, options.renew_deadline, options.retry_period)
    )
    rest = f"{options.lease_duration - options.renew_deadline:g} s"
    height = 648
    body = [
        *(f'<path class="line dash" d="M{x} 40 V{height - 8}"/>' for x in (LEFT, MIDDLE, RIGHT)),
        show(Box(LEFT - 60, 6, 120, 34, "candidate a")),
        show(Box(MIDDLE - 45, 6, 90, 34, "Lease")),
        show(Box(RIGHT - 60, 6, 120, 34, "candidate b")),
        _works(LEFT, 72, 236),
        _message(72, LEFT, MIDDLE, "acquire"),
        _message(96, MIDDLE, RIGHT, "watch: a holds it"),
        _message(126, LEFT, MIDDLE, "renew"),
        _message(150, LEFT, MIDDLE, f"every {retry}"),
        *lines("label", LEFT + 14, 182, ["work(lead)"], "start"),
        *lines("label", RIGHT - 14, 182, ["waits"], "end"),
        *lines("note", 8, 214, ["SIGTERM"], "start"),
        _message(236, LEFT, MIDDLE, "release"),
        _message(250, MIDDLE, RIGHT, "watch: free"),
        _message(274, RIGHT, MIDDLE, "acquire"),
        _works(RIGHT, 274, 498),
        *lines("note", 362, 294, ["in 0.2 s"], "end"),
        *lines("note", 8, 262, ["its work has", "ended before"], "start"),
        _message(322, RIGHT, MIDDLE, "renew"),
        *lines("note", 362, 342, ["0 s"], "end"),
        '<path class="group" d="M6 356 H364"/>',
        *lines("note", RIGHT - 12, 374, ["b does not reach the API server any more"], "end"),
        _message(404, RIGHT, MIDDLE + 40, "renew  ✗", style="line dash"),
        _message(438, RIGHT, MIDDLE + 40, "renew  ✗", style="line dash"),
        *lines("note", 362, 494, [renew], "end"),
        *lines("label", RIGHT - 14, 478, ["cancelled:", "LeadershipLostError"], "end"),
        _works(RIGHT, 498, 548, "box"),
        *lines("label", RIGHT - 14, 524, [f"{rest} to clean up"], "end"),
        *lines("note", 362, 574, [lease], "end"),
        _message(574, LEFT, MIDDLE, "acquire"),
        _works(LEFT, 574, height - 8),
        *lines("label", LEFT + 14, 604, ["work(lead)"], "start"),
    ]
    return drawing("election", ALT, PHONE, height, body)
