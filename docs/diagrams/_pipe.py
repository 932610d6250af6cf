"""The data path, wide for a desk and narrow for a phone."""

from __future__ import annotations

from ._shapes import PHONE, Box, drawing, line, lines, show

ALT = (
    "The data path: API server, transport, client, reflector, delta FIFO, process loop, indexer and lister, processor, "
    "listener buffers, handlers, work queue, controller"
)

# name: title, what it does, the reference's page, whether it runs in a task
STAGES: dict[str, tuple[str, str, str, bool]] = {
    "server": ("API server", "list and watch", "", False),
    "transport": ("transport", "bytes, frames", "reference/transport", False),
    "client": ("client", "objects, WatchEvents", "reference/client", False),
    "reflector": ("reflector", "list, watch, retry", "design/recovery", True),
    "fifo": ("delta FIFO", "pending changes in order", "reference/cache", False),
    "loop": ("process loop", "pops, stores, distributes", "reference/cache", True),
    "indexer": ("indexer", "objects and indices", "howto/informers", False),
    "lister": ("lister", "read-only view", "howto/informers", False),
    "processor": ("processor", "one batch for all", "reference/cache", False),
    "buffers": ("listener buffers", "bounded, one each", "howto/handlers", False),
    "handlers": ("handlers", "tasks; or async for", "howto/handlers", True),
    "queue": ("work queue", "keys, rate-limited", "howto/work-queues", False),
    "controller": ("controller", "workers: reconcile", "howto/controllers", True),
}

ARROWS = {
    ("server", "transport"): "HTTP",
    ("transport", "client"): "frames",
    ("client", "reflector"): "events",
    ("reflector", "fifo"): "changes, lists",
    ("fifo", "loop"): "pop",
    ("loop", "indexer"): "write",
    ("indexer", "lister"): "read",
    ("loop", "processor"): "notifications",
    ("processor", "buffers"): "distribute",
    ("buffers", "handlers"): "next",
    ("handlers", "queue"): "enqueue",
    ("queue", "controller"): "take",
}

WIDE = {
    "server": (14, 20),
    "transport": (220, 20),
    "client": (426, 20),
    "reflector": (636, 20),
    "fifo": (636, 110),
    "loop": (636, 200),
    "indexer": (426, 200),
    "lister": (220, 200),
    "processor": (636, 290),
    "buffers": (636, 380),
    "handlers": (426, 380),
    "queue": (220, 380),
    "controller": (14, 380),
}

STEP = 68
COLUMN = ("server", "transport", "client", "reflector", "fifo", "loop", "processor", "buffers", "handlers", "queue")
NARROW = {
    **{name: (6, 6 + STEP * row) for row, name in enumerate((*COLUMN, "controller"))},
    "indexer": (206, 6 + STEP * COLUMN.index("loop")),
    "lister": (206, 6 + STEP * COLUMN.index("processor")),
}

NOTES = ("green: runs in a task; blue: no task of its own",)
NURSERY = ("tasks in the dashed frame: the nursery of run()",)


def _box(name: str, place: tuple[int, int], width: int) -> Box:
    title, does, page, is_task = STAGES[name]
    return Box(*place, width, 46, title, (does,), "box task" if is_task else "box", page)


def _arrow(drawing_name: str, start: Box, end: Box, label: str) -> str:
    if start.y == end.y:
        leaves, meets = (start.x + start.width, end.x) if end.x > start.x else (start.x, end.x + end.width)
        return line(
            drawing_name,
            f"M{leaves} {start.y + 23} H{meets}",
            [label],
            ((leaves + meets) // 2, start.y + 17),
        )
    middle = start.x + start.width // 2
    bottom = start.y + start.height
    return line(
        drawing_name,
        f"M{middle} {bottom} V{end.y}",
        [label],
        (middle + 8, (bottom + end.y) // 2 + 4),
        "start",
    )


def wide() -> str:
    """Draw it for a desk."""
    boxes = {name: _box(name, place, 170 if place[0] == 636 else 142) for name, place in WIDE.items()}
    body = [
        '<path class="group" d="M620 6 H822 V442 H412 V186 H620 Z"/>',
        *(_arrow("pipe-wide", boxes[start], boxes[end], label) for (start, end), label in ARROWS.items()),
        line("pipe-wide", "M280 246 L100 380", ["get"], (178, 308), "end").replace('"line"', '"line dash"'),
        *map(show, boxes.values()),
        *lines("note", 14, 460, ["; ".join((*NOTES, *NURSERY))], "start"),
    ]
    return drawing("pipe-wide", ALT, 830, 470, body)


def narrow() -> str:
    """Draw it for a phone."""
    boxes = {name: _box(name, place, 158) for name, place in NARROW.items()}
    last = boxes["controller"]
    lister = boxes["lister"]
    corner = lister.x + lister.width // 2
    middle = last.y + last.height // 2
    body = [
        *(_arrow("pipe-narrow", boxes[start], boxes[end], label) for (start, end), label in ARROWS.items()),
        line(
            "pipe-narrow",
            f"M{corner} {lister.y + lister.height} V{middle} H{last.x + last.width}",
            ["get"],
            (corner - 8, middle - 8),
            "end",
        ).replace('"line"', '"line dash"'),
        *map(show, boxes.values()),
        *lines("note", 6, last.y + last.height + 20, NOTES, "start"),
    ]
    return drawing("pipe-narrow", ALT, PHONE, last.y + last.height + 28, body)
