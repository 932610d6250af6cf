"""What a relist does: the cache before, the new list, and what handlers receive."""

from __future__ import annotations

from ._shapes import PHONE, drawing, line, lines

ALT = (
    "A relist compares the cache with a new list: an equal object is no notification, a newer one is Updated, "
    "a new one Added, a missing one Deleted with is_stale, and a new uid Deleted and Added"
)

# in the cache, in the list, what handlers receive
ROWS = (
    ("web-0", "version 7", "web-0", "version 7", ("nothing",)),
    ("web-1", "version 8", "web-1", "version 19", ("Updated: once, however", "often it has changed")),
    ("", "", "web-2", "version 15", ("Added",)),
    ("web-3", "version 9", "", "", ("Deleted, is_stale=True:", "the last known state")),
    ("web-4", "uid a", "web-4", "uid b", ("Deleted, is_stale=True;", "then Added")),
)


def _cell(x: int, y: int, title: str, text: str) -> list[str]:
    if not title:
        return [f'<rect class="absent" x="{x}" y="{y}" width="78" height="40" rx="5"/>']
    return [
        f'<rect class="box" x="{x}" y="{y}" width="78" height="40" rx="5"/>',
        *lines("title", x + 39, y + 17, [title]),
        *lines("small", x + 39, y + 33, [text]),
    ]


def relist() -> str:
    """Draw it."""
    body = [*lines("title", 45, 20, ["cache"]), *lines("title", 143, 20, ["new list"])]
    body += lines("title", 285, 20, ["handlers receive"])
    for row, (title, text, listed, now, result) in enumerate(ROWS):
        y = 34 + 52 * row
        body += [
            *_cell(6, y, title, text),
            *_cell(104, y, listed, now),
            line("relist", f"M184 {y + 20} H208"),
            *lines("label", 214, y + (24 if len(result) == 1 else 17), result, "start"),
        ]
    y = 34 + 52 * len(ROWS)
    body += lines(
        "small",
        6,
        y + 14,
        ["The lister has the whole list before the first notification;", "deletions come first."],
        "start",
    )
    return drawing("relist", ALT, PHONE, y + 36, body)
