"""What the caller of a function, or the reader of an attribute, probably meant; for the errors about such mistakes."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_SYNONYMS: Final = {"selector": "label_selector", "labels": "label_selector", "fields": "field_selector"}
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Convert a name of the API to one of Python, such as ``nodeName`` to ``node_name``."""
    return _CAPITAL.sub("_", name).lower()


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the known name that was probably meant; empty if nothing is close."""
    names = {each: each for each in known}
    snake = snake_case(name)
    for exact in (snake, f"{snake}_"):  # words of Python end with an underscore
        if exact in names:
            return exact
    if (synonym := _SYNONYMS.get(name, "")) in names:
        return synonym
    return next(iter(difflib.get_close_matches(snake, names, n=1, cutoff=0.7)), "")


def suggest_arguments(**hints: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a decorator for functions whose keyword arguments are often mistaken: the error says which was meant.

    Args:
        hints: What to do instead, by the names of arguments that other functions have.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = frozenset(inspect.signature(function).parameters)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: P.args, **given: P.kwargs) -> object:
                if not given.keys() <= known:
                    raise _unexpected_argument(function, given, hints)
                return await function(*args, **given)

            return cast("Callable[P, R]", call_async)

        @functools.wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> R:
            if not given.keys() <= known:
                raise _unexpected_argument(function, given, hints)
            return function(*args, **given)

        return call

    return decorate


def _unexpected_argument(
    function: Callable[..., Any], given: Mapping[str, object], hints: Mapping[str, str]
) -> TypeError:
    parameters = inspect.signature(function).parameters
    known = [each.name for each in parameters.values() if each.kind is each.KEYWORD_ONLY]
    name = next(each for each in given if each not in parameters)
    meant = suggest(name, known)
    hint = hints.get(name) or (f"did you mean {meant}?" if meant else f"the others are {', '.join(known)}")
    return TypeError(f"{function.__qualname__.removesuffix('.__init__')}() has no argument {name!r}; {hint}")
