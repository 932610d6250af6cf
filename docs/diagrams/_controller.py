"""The life of a controller: its phases, and what happens to a request."""

from __future__ import annotations

from typing import get_args

from trioformer.controller._statistics import ControllerPhase
from trioformer.workqueue import ItemExponentialFailureRateLimiter
from trioformer.workqueue._internal import default_priority_queue_rate_limiter

from ._shapes import PHONE, Box, drawing, line, lines, show

ALT = (
    "A controller waits for its caches and handlers, then runs: events become requests in a queue, workers take them "
    "and call reconcile, and what it returns or raises decides when the request comes again; stop() or a cancellation "
    "ends it"
)
NOT_RUNNING, WAITING, RUNNING, STOPPING = get_args(ControllerPhase)
WAITS_FOR = ("until all caches have synced, and the", "handlers have had the first objects")
QUEUES = ("equal requests are one;", "one worker for each")
ENDS = ("nothing more is taken;", "stop(): running reconciles end first,", "a cancellation: they are cancelled")


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:,.0f} s"


def controller() -> str:
    """Draw it."""
    limiter = default_priority_queue_rate_limiter()
    assert isinstance(limiter, ItemExponentialFailureRateLimiter)
    shortest, longest = limiter.base_delay, limiter.max_delay
    name = "controller"
    body = [
        show(Box(105, 6, 160, 30, NOT_RUNNING)),
        line(name, "M185 36 V68", ["await nursery.start(", "    controller.run)"], (193, 50), "start"),
        show(
            Box(
                60,
                68,
                250,
                62,
                WAITING,
                ("until all caches have synced, and the", "handlers have had the first objects"),
            )
        ),
        line(name, "M185 130 V166", ["start() returns"], (193, 152), "start"),
        '<rect class="group" x="6" y="166" width="358" height="330" rx="6"/>',
        *lines("title", 185, 186, [RUNNING]),
        show(Box(16, 200, 160, 46, "event", ("Added, Updated, Deleted",), page="concepts")),
        line(name, "M95 246 V282", ["predicates, enqueue"], (103, 268), "start"),
        show(
            Box(
                20,
                282,
                150,
                62,
                "work queue",
                ("equal requests are one;", "one worker for each"),
                page="howto/work-queues",
            )
        ),
        line(name, "M170 313 H206", ["take"], (188, 307)),
        show(Box(206, 282, 144, 62, "reconcile", ("reads the caches,", "writes what is missing"), "box task")),
        # what it results in
        '<path class="line" d="M278 344 V470"/>',
        *(
            "\n".join([f'<path class="line" d="M278 {y} H{end}" {head}/>', *lines("label", 270, y - 5, [text], "end")])
            for y, text, end, head in (
                (378, "returns: done, failures reset", 262, ""),
                (404, "RequeueAfter(60): again in 60 s", 40, ""),
                (430, f"raises: again in {_seconds(shortest)} … {_seconds(longest)}", 40, ""),
                (470, "TerminalError: at the next event", 262, ""),
            )
        ),
        line(name, "M40 430 V344"),
        *lines("note", 270, 448, ["twice as long after each failure"], "end"),
        line(name, "M185 496 V532", ["stop(), a cancellation,", "or an error"], (193, 511), "start"),
        show(Box(50, 532, 270, 76, STOPPING, ENDS)),
        line(name, "M185 608 V640", ["run() returns or raises"], (193, 628), "start"),
        show(Box(105, 640, 160, 30, NOT_RUNNING)),
    ]
    return drawing(name, ALT, PHONE, 676, body)
