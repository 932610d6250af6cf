"""Suggestions for errors: the name or the value that the caller probably meant."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_SYNONYMS: Final = {"selector": "label_selector", "labels": "label_selector", "fields": "field_selector"}
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Convert an API field name to a Python name, for example ``nodeName`` to ``node_name``."""
    return _CAPITAL.sub("_", name).lower()


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the known name that the caller probably meant, or an empty string if no known name is similar."""
    names = {each: each for each in known}
    snake = snake_case(name)
    for exact in (snake, f"{snake}_"):  # words of Python end with an underscore
        if exact in names:
            return exact
    if (synonym := _SYNONYMS.get(name, "")) in names:
        return synonym
    import difflib  # noqa: PLC0415  # few programs make mistakes

    return next(iter(difflib.get_close_matches(snake, names, n=1, cutoff=0.7)), "")


def with_article(named: type[Any] | str) -> str:
    """Return the name of a class or kind, preceded by "a" or "an"."""
    name = named if isinstance(named, str) else named.__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def describe(value: object) -> str:
    """Describe a value for an error message, without its content."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    return "None" if value is None else with_article(type(value))


def check_async(given: object, what: str, definition: str, *args: object, **named: object) -> None:
    """Check that a value is an async function that accepts the given arguments.

    A function without ``async`` is refused only if it cannot return an awaitable, so mocks and decorators without
    ``functools.wraps`` are accepted.

    Args:
        given: The value that the caller passed.
        what: The name of the parameter in the error message.
        definition: An example of a definition for the error message, such as ``async def reconcile(request)``.
        args: Positional arguments that the function must accept. Their values do not matter.
        named: Keyword arguments that the function must accept.

    Raises:
        TypeError: The value is not such a function.
    """
    if isinstance(given, Coroutine):
        given.close()  # so that Python does not warn that it was never awaited
        raise TypeError(f"{what} must be an async function, not its coroutine; pass the function without calling it")
    if isinstance(given, type) or not callable(given):
        raise TypeError(f"{what} must be an async function, not {describe(given)}; write {definition}")
    if _is_sync(given):
        name = getattr(given, "__name__", type(given).__name__)
        raise TypeError(f"{what} must be an async function, but {name} is not one; write {definition}")
    _check_call(given, what, definition, *args, **named)


def check_sync(given: object, what: str, definition: str, *, arguments: int = 1) -> None:
    """Check that a value is a synchronous function that accepts a number of arguments.

    Args:
        given: The value that the caller passed.
        what: The name of the parameter in the error message.
        definition: An example of a definition for the error message, such as ``def is_wanted(event): return True``.
        arguments: The number of positional arguments that the function must accept.

    Raises:
        TypeError: The value is not such a function.
    """
    if not callable(given):
        raise TypeError(f"{what} must be a function, not {describe(given)}; write {definition}")
    _check_not_async(given, what, definition)
    _check_call(given, what, definition, *[None] * arguments)


def check_observer(observer: object, protocol: type[Any]) -> None:
    """Check that no method of an observer is async.

    Args:
        observer: The observer that the caller passed.
        protocol: The protocol whose methods are checked.

    Raises:
        TypeError: A method is async.
    """
    for name in vars(protocol):
        method = getattr(observer, name, None)
        if not name.startswith("_") and callable(method):
            _check_not_async(method, f"observer.{name}", f"def {name}(self, ...)")


def _check_not_async(given: Callable[..., object], what: str, definition: str) -> None:
    if any(map(inspect.iscoroutinefunction, (inspect.unwrap(given), type(given).__call__))):
        raise TypeError(f"{what} must not be async, because it is not awaited; write {definition}")


def _check_call(given: Callable[..., object], what: str, definition: str, *args: object, **named: object) -> None:
    try:
        signature = inspect.signature(given, follow_wrapped=False)  # a decorator may add arguments
    except (TypeError, ValueError):  # some callables of C have none
        return
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        raise TypeError(f"{what} cannot be called ({error}); write {definition}") from None


def _is_sync(function: Callable[..., object]) -> bool:
    """Return whether a function cannot return an awaitable, because it is a generator or returns only None."""
    inner: Any = function
    while isinstance(inner, functools.partial | types.MethodType):
        inner = inner.func if isinstance(inner, functools.partial) else inner.__func__
    if not inspect.isroutine(inner):
        inner = type(inner).__call__
    if not isinstance(inner, types.FunctionType):
        return isinstance(inner, types.BuiltinFunctionType)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        return True
    return not inspect.iscoroutinefunction(inner) and _returns_nothing(inner)


def _returns_nothing(function: types.FunctionType) -> bool:
    """Return whether a function has no ``return`` with a value. If its bytecode is not understood, return False."""
    import dis  # noqa: PLC0415  # few programs make mistakes

    steps = list(dis.get_instructions(function))
    loaded = [None, *steps]
    returned = [
        step if step.opname == "RETURN_CONST" else before
        for before, step in zip(loaded, steps, strict=False)
        if step.opname.startswith("RETURN_") and step.opname != "RETURN_GENERATOR"
    ]
    constants = ("_CONST", "_CONSTANT")  # the second is CPython 3.15's, whose argval is a number
    return all(each is not None and each.opname.endswith(constants) and each.argrepr == "None" for each in returned)


def attribute_hints(**hints: str) -> Callable[[object, str], object]:
    """Return a ``__getattr__`` that suggests the right name when a caller uses a name from another client library.

    Python itself suggests similarly spelled names.
    """

    def __getattr__(self: object, name: str) -> object:  # noqa: N807  # it becomes the class's
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in hints:
            raise AttributeError(f"{text}; {hints[name]}")
        raise AttributeError(text, name=name, obj=self)

    return __getattr__
