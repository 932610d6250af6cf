"""A function that is cancelled when the client disconnects."""

from __future__ import annotations

import types
from collections.abc import Generator
from functools import partial

import pytest
import trio
import trio.testing

from trioformer._asgi import Message, until_disconnect


async def never() -> Message:
    await trio.sleep_forever()
    raise AssertionError("unreachable")


async def disconnect_later() -> Message:
    await trio.sleep(3)
    return {"type": "http.disconnect"}


async def fail_if_called() -> Message:
    raise AssertionError("the function returns without blocking")


async def sleep_and_return(seconds: float) -> str:
    await trio.sleep(seconds)
    await trio.sleep(seconds)
    return "result"


async def test_a_function_that_does_not_block_needs_no_messages() -> None:
    async def function() -> str:
        return "result"

    with trio.testing.assert_checkpoints():
        assert await until_disconnect(fail_if_called, function) == "result"


async def test_a_function_that_blocks_returns_its_result(autojump_clock: trio.testing.MockClock) -> None:
    assert await until_disconnect(never, partial(sleep_and_return, 1)) == "result"
    assert trio.current_time() == 2


async def test_a_function_is_cancelled_when_the_client_disconnects(autojump_clock: trio.testing.MockClock) -> None:
    messages: list[Message] = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"the rest"}]

    async def receive() -> Message:
        await trio.sleep(1)
        return messages.pop()

    cleaned: list[float] = []

    async def function() -> str:
        try:
            async with trio.open_nursery() as nursery:  # the function may have tasks of its own
                nursery.start_soon(trio.sleep_forever)
                return await sleep_and_return(100)
        finally:
            cleaned.append(trio.current_time())

    assert await until_disconnect(receive, function) is None
    assert cleaned == [2]


async def test_a_function_is_cancelled_at_the_deadline(autojump_clock: trio.testing.MockClock) -> None:
    assert await until_disconnect(never, partial(sleep_and_return, 100), deadline=4) is None
    assert trio.current_time() == 4


@pytest.mark.parametrize("seconds", [None, 1])
async def test_an_exception_is_raised_unchanged(seconds: float | None, autojump_clock: trio.testing.MockClock) -> None:
    async def function() -> str:
        if seconds is not None:
            await trio.sleep(seconds)
        raise KeyError("a bug")

    with pytest.raises(KeyError, match="a bug"):
        await until_disconnect(never, function)


async def test_an_awaitable_of_another_library_is_an_error_in_the_function() -> None:
    raised: list[BaseException] = []

    @types.coroutine
    def foreign() -> Generator[object, None, None]:
        yield object()

    async def function() -> None:
        try:
            await foreign()
        except TypeError as error:
            raised.append(error)
            raise

    with pytest.raises(TypeError) as caught:
        await until_disconnect(never, function)
    assert raised == [caught.value]


async def test_a_function_can_handle_the_cancellation(autojump_clock: trio.testing.MockClock) -> None:
    async def function() -> str:
        with trio.move_on_after(1):
            await trio.sleep_forever()
        return await sleep_and_return(0.5)

    assert await until_disconnect(disconnect_later, function) == "result"


async def test_the_cancellation_of_the_caller_is_raised(autojump_clock: trio.testing.MockClock) -> None:
    with trio.move_on_after(1) as scope:
        await until_disconnect(never, partial(sleep_and_return, 100))
    assert scope.cancelled_caught
