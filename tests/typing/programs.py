"""Types of ``trioformer.run`` and of the command line tool; checked by mypy and pyright, never executed."""

from __future__ import annotations

from typing import assert_type

import trio

from trioformer import run
from trioformer.cli import main


async def returns_none(namespace: str, seconds: float) -> None: ...


async def returns_a_code() -> int:
    return 0


async def returns_a_text() -> str:
    return ""


def programs(stop: trio.Event) -> None:
    assert_type(run(returns_a_code), int)
    assert_type(main(["version", "--client"]), int)
    assert_type(run(returns_none, "default", 1.5, stop=stop), int)
    run(returns_none, "default")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]  # an argument is missing
    run(returns_none, 1.5, "default")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # in the other order
    run(returns_a_text)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # not an exit code
    run(returns_a_code())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the call, not the function
