"""Writes the types of the proxies of both doors: ``python -m tests.typing.door_stubs [--check]``.

The proxies of ``trioformer.aio`` and ``trioformer.sync`` look up their methods at run time.  Type checkers and editors
read the stubs that this program makes from the sources of the classes behind the proxies, so a method that is added
there has its types in both doors.  With ``--check``, the program only compares the stubs with the sources.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
STUBS = {door: ROOT / "trioformer" / door / "_proxies.pyi" for door in ("aio", "sync")}
WIDTH = 120
CLASSES = {
    "Door": ("Door",),
    "RawLines": ("_raw.RawLines",),
    "RawStream": ("_raw.RawStream",),
    "WatchStream": ("_watch.WatchStream",),
    "Api": ("_api_verbs.ApiVerbs", "_api.Api", "Proxy"),
    "Client": ("_client.Client", "_client_writes.ClientWrites", "_client_requests.ClientRequests", "Proxy"),
}
"""The classes of a door, and the classes that have their methods: in a module of ``trioformer/client``, or below."""
OMITTED = {
    "Api.wait_to_retry",  # for libraries on trio that retry on their own
    "Client.http",  # an httpx client that sends requests only in trio
}
SYNC = {
    "AbstractAsyncContextManager": "AbstractContextManager",
    "AsyncIterator": "Iterator",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "async for": "for",
}
"""What becomes of the names of the asyncio door in the door for threads."""
OWN = '''
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Concatenate, Generic, ParamSpec, TypeVar, final, overload
from trioformer import client as trio_client
from trioformer.aio._guest import Guest

P = ParamSpec("P")
R = TypeVar("R")

class Door:
    def __init__(self, guest: Guest) -> None: ...
    @property
    def guest(self) -> Guest: ...

class Proxy:
    def __init__(self, door: Door, target: Target) -> None: ...
    @property
    def _door(self) -> Door: ...
    @property
    def _target(self) -> Target: ...
    async def run(
        self, function: Callable[Concatenate[Target, P], Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Call an async function in trio, with the object of trioformer behind this one as its first argument."""

    @overload
    def open(
        self, function: Callable[Concatenate[Target, P], AbstractAsyncContextManager[AsyncIterable[R]]], /,
        *args: P.args, **kwargs: P.kwargs
    ) -> AbstractAsyncContextManager[AsyncIterator[R]]: ...
    @overload
    def open(
        self, function: Callable[Concatenate[Target, P], AbstractAsyncContextManager[R]], /,
        *args: P.args, **kwargs: P.kwargs
    ) -> AbstractAsyncContextManager[R]:
        """Enter the async context manager of a function of trio, which is called as by :meth:`run`."""
'''
"""What a door has that trioformer does not have."""
OWN_SYNC = OWN.replace("aio._guest", "sync._portal").replace("guest", "portal").replace("Guest", "Portal")
OWN_AIO = OWN.replace(OWN[OWN.index("    @overload") : OWN.rindex("    def open")], "")  # iterators have their types

Function = ast.FunctionDef | ast.AsyncFunctionDef


def stub_of(door: str) -> str:
    """Return the stub of a door, in ruff's format."""
    places: dict[str, tuple[str, str]] = {}
    variables: dict[str, str] = {}
    lines = [""]
    for name, sources in CLASSES.items():
        members: list[Function] = []
        is_generic = False
        for module, _, class_name in (source.rpartition(".") for source in sources):
            own = (OWN_SYNC if door == "sync" else OWN_AIO).replace("Target", f"trio_client.{name}{'[T]' * is_generic}")
            tree = ast.parse((ROOT / f"trioformer/client/{module}.py").read_text() if module else own)
            places |= places_in(tree, module)
            variables |= {text_of(node.targets[0]): text_of(node) for node in tree.body if isinstance(node, ast.Assign)}
            cls = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name)
            members += members_of(cls, with_private=not module)
            is_generic |= any(text_of(base) == "Generic[T]" for base in cls.bases)
        lines += ["", "@final", f"class {name}(Generic[T]):" if is_generic else f"class {name}:"][lines[-1] == "" :]
        overloaded = {each.name for each in members if "overload" in decorators_of(each)}
        # A stub has no implementation of an overloaded method: its description is that of the first overload.
        summaries = {each.name: text.partition("\n")[0] for each in members if (text := ast.get_docstring(each))}
        for each in members:
            is_implementation = each.name in overloaded and "overload" not in decorators_of(each)
            if not is_implementation and f"{name}.{each.name}" not in OMITTED:
                lines += lines_of(each, summaries.pop(each.name, ""), door)
    definitions = [text for name, text in sorted(variables.items()) if name in names_in(lines)]
    used = {places[name] for name in names_in(definitions + lines) - CLASSES.keys() if name in places}
    first = "# GENERATED from trioformer/client, do not edit: python -m tests.typing.door_stubs"
    return "\n".join([first, *imports_of(used), "", *definitions, *lines]).rstrip() + "\n"


def names_in(lines: list[str]) -> set[str]:
    return {node.id for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Name)}


def places_in(tree: ast.Module, module: str) -> dict[str, tuple[str, str]]:
    """Return the names that a module imports or defines, with the module and the name to import."""
    places: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            origin = ("", "trioformer.client.", "trioformer.")[node.level] + (node.module or "")
            places |= {alias.asname or alias.name: (origin, ast.unparse(alias)) for alias in node.names}
    defined = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    defined += [text_of(node.target) for node in tree.body if isinstance(node, ast.AnnAssign)]
    return places | {name: (f"trioformer.client.{module}", name) for name in defined}


def members_of(cls: ast.ClassDef, *, with_private: bool) -> Iterator[Function]:
    """Yield the methods of a class, and a property for each of its attributes."""
    for node in cls.body:
        for each in [*node.body, node] if isinstance(node, Function) and node.name == "__init__" else [node]:
            member = each
            if isinstance(each, ast.AnnAssign):
                name = text_of(each.target).removeprefix("self.")
                (member,) = ast.parse(f"@property\ndef {name}(self) -> {text_of(each.annotation)}: ...").body
            if isinstance(member, Function) and (with_private or member.name[0] != "_" or member.name in SYNC):
                yield member


def decorators_of(function: Function) -> list[str]:
    return [text_of(each).partition("(")[0] for each in function.decorator_list]


def lines_of(function: Function, summary: str, door: str) -> Iterator[str]:
    """Yield the lines of a method in the stub of a door."""
    assert function.returns is not None
    start, returned = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def", text_of(function.returns)
    if "opened_by" in decorators_of(function):
        opened = returned.removeprefix("AsyncGenerator[").removesuffix(", None]")
        start, returned = "def", f"AbstractAsyncContextManager[{opened}]"
    name = function.name
    if door == "sync":
        start = "def"
        for word, instead in SYNC.items():
            name, returned, summary = (text.replace(word, instead) for text in (name, returned, summary))
    yield from (f"    @{each}" for each in decorators_of(function) if each in ("overload", "property"))
    # The commas between parameters come before `*`, `/` or an annotated name; those in brackets do not.
    parameters = re.split(r", (?=[*/]|\w+:)", text_of(function.args).replace("=", " = "))
    first, joined, last = f"    {start} {name}(", ", ".join(parameters), f") -> {returned}:{'' if summary else ' ...'}"
    if len(line := f"{first}{joined}{last}") <= WIDTH:
        yield line
    else:
        inner = [joined] if len(joined) <= WIDTH - 8 else [f"{each}," for each in parameters]
        yield from (first, *(f"        {each}" for each in inner), f"    {last}")
    if summary:
        yield from (f'        """{summary}"""', "")


def imports_of(places: set[tuple[str, str]]) -> Iterator[str]:
    modules = sorted({module for module, _ in places}, key=lambda module: (module.startswith("trioformer"), module))
    for _, group in groupby(modules, lambda module: module.startswith("trioformer")):
        yield ""
        for module in group:
            names = sorted((name for of, name in places if of == module), key=lambda name: (not name.isupper(), name))
            line = f"from {module} import {', '.join(names)}"
            broken = (f"from {module} import (", *(f"    {name}," for name in names), ")")
            yield from [line] if len(line) <= WIDTH else broken


def text_of(node: ast.AST) -> str:
    return ast.unparse(node).replace("'", '"')


def main() -> int:
    code = 0
    for door, path in STUBS.items():
        stub = stub_of(door)
        if "--check" not in sys.argv:
            path.write_text(stub)
        elif not path.exists() or path.read_text() != stub:
            print(f"{path.relative_to(ROOT)} is stale: python -m tests.typing.door_stubs", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
