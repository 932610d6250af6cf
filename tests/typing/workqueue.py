"""Type assertions about work queues; mypy and pyright check them, and nothing runs them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import assert_type

from trioformer.workqueue import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    RateLimitingQueue,
    WorkQueue,
    default_controller_rate_limiter,
)
from trioformer.workqueue._statistics import Remaining


class PerNamespace:
    def when(self, key: tuple[str, str]) -> float:
        return 1.0 if key[0] == "kube-system" else 5.0

    def forget(self, key: tuple[str, str]) -> None: ...

    def num_requeues(self, key: tuple[str, str]) -> int:
        return 0


def add_a(queue: WorkQueue[str]) -> None:
    queue.add("a")


async def queues() -> int:
    queue = WorkQueue[str](name="pods")
    assert_type(queue.add("a"), bool)
    assert_type(await queue.drain(), Remaining[str])
    queue.add(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # not a key of this queue
    limited: RateLimitingQueue[str] = RateLimitingQueue(default_controller_rate_limiter())
    assert_type(limited.limiter, RateLimiter[str])
    assert_type(RateLimitingQueue(default_controller_rate_limiter()), RateLimitingQueue[Hashable])
    assert_type(limited.add_rate_limited("a", at_least=5, limiter=ItemExponentialFailureRateLimiter(jitter=0.5)), bool)
    assert_type(RateLimitingQueue(PerNamespace()), RateLimitingQueue[tuple[str, str]])
    RateLimitingQueue[str](PerNamespace())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # other keys
    both: MaxOfRateLimiter[tuple[str, str]] = MaxOfRateLimiter(
        PerNamespace(), BucketRateLimiter(), ItemExponentialFailureRateLimiter()
    )
    assert_type(RateLimitingQueue(both), RateLimitingQueue[tuple[str, str]])

    add_a(queue)
    add_a(limited)  # a RateLimitingQueue is a WorkQueue
    add_a(RateLimitingQueue(PerNamespace()))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # other keys

    async def work(key: str) -> int:
        return len(key)

    await limited.process(work, workers=4)
    async with limited.take() as key:
        assert_type(key, str)
        return len(key)
