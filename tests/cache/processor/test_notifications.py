"""What is no handler is refused when it is added, with an error that says what to write."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any
from unittest.mock import AsyncMock, create_autospec

import pytest

from tests.support.scripted_list_watch import ScriptedListWatch, listing
from trioformer.cache import FilteringHandler, ResourceEventHandler, SharedInformer
from trioformer.models.core_v1 import Pod

WRITE = "write a subclass of it with on_add, on_update and on_delete, or use informer.subscribe()"
ON_ADD = "write async def on_add(self, obj, *, is_initial)"
ON_UPDATE = "write async def on_update(self, old, new)"
Handler = ResourceEventHandler[Pod]


class WithoutKeyword(Handler):
    async def on_add(self, obj: Pod) -> None:  # type: ignore[override]  # the mistake
        """Do nothing."""


class NotAsync(Handler):
    def on_update(self, old: Pod, new: Pod) -> None:  # type: ignore[override]  # the mistake
        """Do nothing."""


class Misspelled(Handler):
    async def on_added(self, obj: Pod, *, is_initial: bool) -> None:
        """Do nothing."""


class LikeAHandler:
    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (print, f"a handler must be a ResourceEventHandler, not the function print; {WRITE}"),
        (LikeAHandler(), f"a handler must be a ResourceEventHandler, not a LikeAHandler; {WRITE}"),
        ({"add": print}, f"a handler must be a ResourceEventHandler, not a dict; {WRITE}"),
        (
            NotAsync,
            "a handler must be a ResourceEventHandler, not the class NotAsync; pass an object of the class",
        ),
        (
            WithoutKeyword(),
            f"WithoutKeyword.on_add cannot be called (got an unexpected keyword argument 'is_initial'); {ON_ADD}",
        ),
        (
            NotAsync(),
            f"NotAsync.on_update must be an async function, but on_update is not one; {ON_UPDATE}",
        ),
        (
            FilteringHandler(lambda pod: True, NotAsync()),
            f"NotAsync.on_update must be an async function, but on_update is not one; {ON_UPDATE}",
        ),
        (Misspelled(), "Misspelled has the method on_added, which is never called; did you mean on_add?"),
    ],
)
def test_what_is_no_handler_is_refused_when_it_is_added(wrong: Any, text: str) -> None:
    informer = SharedInformer(ScriptedListWatch([listing()]))
    with pytest.raises(TypeError) as caught:
        informer.add_event_handler(wrong)
    assert str(caught.value) == text
    assert informer.statistics().handlers_and_subscriptions == 0


class Delegating(Handler):
    """Handles nothing itself."""

    def on_add(self, obj: Pod, *, is_initial: bool) -> Awaitable[None]:  # type: ignore[override]  # it is awaited
        return super().on_add(obj, is_initial=is_initial)

    async def on_deleted_twice(self) -> None:
        """Do something else."""

    async def on_delete(self, obj: Pod, **more: bool) -> None:
        """Do nothing."""


class WithHelper(Handler):
    """Calls a function of its own that has nearly the name of a callback."""

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        await self.on_updated(obj)

    async def on_updated(self, obj: Pod) -> None:
        """Do something."""


class Mocked(Handler):
    on_update = AsyncMock()


def test_handlers_in_each_form_are_added() -> None:
    informer = SharedInformer(ScriptedListWatch([listing()]))
    mock: Any = create_autospec(ResourceEventHandler, instance=True)
    handlers = (Handler(), Delegating(), FilteringHandler(lambda pod: True, Delegating()), mock, WithHelper(), Mocked())
    for handler in handlers:
        informer.add_event_handler(handler)
    assert informer.statistics().handlers_and_subscriptions == len(handlers)
