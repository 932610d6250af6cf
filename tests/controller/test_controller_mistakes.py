"""Mistakes in the use of a controller fail before it runs, with an error that says what to write."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from unittest.mock import AsyncMock

import pytest
import trio

from tests.support.controllers import pods
from trioformer import SharedInformerFactory
from trioformer.controller import Controller, Request
from trioformer.models.core_v1 import Pod

DEFINITION = "write async def reconcile(request: Request)"


async def reconcile(request: Request) -> None:
    """Do nothing."""


def not_async(request: Request) -> None:
    """Return nothing to await."""


async def yields(request: Request) -> AsyncIterator[None]:
    yield


async def without_request() -> None:
    """Take no request."""


class Reconciler:
    """What controller-runtime has in the place of a function."""

    async def reconcile(self, request: Request) -> None:
        """Do nothing."""


class AsyncCallable:
    async def __call__(self, request: Request) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (not_async, f"reconcile must be an async function, but not_async is not one; {DEFINITION}"),
        (yields, f"reconcile must be an async function, but yields is not one; {DEFINITION}"),
        (None, f"reconcile must be an async function, not None; {DEFINITION}"),
        (without_request, f"reconcile cannot be called (too many positional arguments); {DEFINITION}"),
        (Reconciler(), "reconcile must be an async function, not a Reconciler; pass its reconcile method"),
        (Reconciler, "reconcile must be an async function, not the class Reconciler; pass its reconcile method"),
    ],
)
def test_a_reconcile_that_cannot_be_awaited_is_refused(wrong: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        Controller("pods", wrong)
    assert str(caught.value) == text


@pytest.mark.filterwarnings("error")
def test_a_coroutine_in_the_place_of_a_reconcile_is_refused_and_closed() -> None:
    wrong: Any = reconcile(Request(None, "a"))
    with pytest.raises(TypeError, match="not its coroutine; pass the function without calling it"):
        Controller("pods", wrong)


def without_wraps(function: Callable[[Request], Awaitable[None]]) -> Any:
    def call(*args, **named):  # type: ignore[no-untyped-def]  # as programs write it
        return function(*args, **named)

    return call


def in_a_thread(function: Callable[[Request], None]) -> Any:
    @functools.wraps(function)
    def call(request: Request) -> Any:
        return trio.to_thread.run_sync(function, request)

    return call


def with_a_client(function: Callable[[str, Request], Awaitable[None]]) -> Any:
    @functools.wraps(function)
    async def call(request: Request) -> None:
        await function("client", request)

    return call


async def takes_a_client(client: str, request: Request) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    "right",
    [
        reconcile,
        AsyncMock(),
        without_wraps(reconcile),
        in_a_thread(not_async),
        with_a_client(takes_a_client),
        Reconciler().reconcile,
        AsyncCallable(),
        functools.partial(reconcile),
        lambda request: reconcile(request),  # a lambda may return an awaitable
    ],
)
def test_whatever_may_return_an_awaitable_is_a_reconcile(right: Any) -> None:
    assert Controller("pods", right).name == "pods"


def test_the_name_of_a_controller_comes_first() -> None:
    swapped: Any = Controller
    with pytest.raises(TypeError, match=r'Controller\("pods", reconcile\)$'):
        swapped(reconcile, "pods")
    with pytest.raises(TypeError, match=r"^the name of a controller must be a string, not an int$"):
        swapped(1, reconcile)


def test_a_function_for_errors_must_be_async() -> None:
    wrong: Any = not_async
    with pytest.raises(TypeError, match=r"^on_error must be an async function, but not_async is not one; write async"):
        Controller("pods", reconcile, on_error=wrong)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (Pod, "not the class Pod; write controller.watch(factory.informer(Pod))"),
        (pods("a").lister, "not a Lister; write controller.watch(factory.informer(Pod))"),
    ],
)
def test_what_is_no_informer_cannot_be_watched(wrong: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        Controller("pods", reconcile).watch(wrong)
    assert text in str(caught.value)


def without_object() -> list[Request]:
    return []


async def requests_later(obj: Pod) -> list[Request]:
    return [Request.of(obj)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"enqueue": requests_later}, "enqueue must not be async, because it is not awaited; write def requests("),
        ({"enqueue": Request(None, "a")}, "enqueue must be a function, not a Request; write def requests(obj): ret"),
        ({"enqueue": without_object}, "enqueue cannot be called (too many positional arguments); write def requests("),
        ({"predicates": lambda event: True}, "predicates must be a sequence of functions; write predicates=[...]"),
        ({"predicates": [True]}, "a predicate must be a function, not a bool; write def is_wanted(event): return"),
    ],
)
def test_functions_of_a_watch_are_checked_before_it_runs(arguments: dict[str, Any], text: str) -> None:
    controller = Controller("pods", reconcile)
    with pytest.raises(TypeError) as caught:
        controller.watch(pods("a"), **arguments)
    assert str(caught.value).startswith(text)


def test_owns_needs_a_factory_and_an_owner_that_is_a_kind() -> None:
    controller = Controller("pods", reconcile)
    informer: Any = pods()
    with pytest.raises(TypeError, match=r"owns\(\)"):
        controller.owns(informer, Pod, owner=Pod)
    factory: Any = SharedInformerFactory.__new__(SharedInformerFactory)
    owner: Any = dict
    with pytest.raises(TypeError, match="dict is not a kind"):
        controller.owns(factory, Pod, owner=owner)
    assert controller.statistics().handlers == ()
