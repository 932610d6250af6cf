"""Runs the Python blocks of a page, in their order and in one namespace, as the cells of a notebook.

They run under trio, on virtual time, beside an API server in memory.  `open_client()` reaches it, whatever it is given,
and so does ``client``, the one name that every page has.  A block that has not ended after `PATIENCE` virtual seconds
goes on in its task while the following ones run, as ``factory.run`` does in a program; the page's end cancels it.

What else a block needs and its page does not show is in ``tests/docs/given/<page>.py``: only what a reader has anyhow,
such as a ``reconcile`` of their own.  The blocks find the names that it defines, those that its ``set_up`` returns, and
its ``FILES`` in their folder.

A block with ``if __name__ == "__main__":`` is a whole program.  It runs by itself, in a namespace of its own and with
its own ``run``, and is cancelled after `PATIENCE` virtual seconds.  The blocks after it find its names.
Functions named ``test_…`` are run, with the fixtures of the pytest plugin and ``tmp_path``.

A block that says ``runs in: asyncio`` or ``runs in: a thread`` runs after all these, in real time and beside a server
of its own, which is the one in the kubeconfig.  It begins with the names of the blocks before it.

A module that a page shows a part of (``literalinclude``) is imported: its names are there for the blocks after it.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import dis
import importlib
import inspect
import linecache
import logging
import socket
import sys
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
import trio
import trio.testing

import trioformer
import trioformer.client
from tests.docs.blocks import ROOT, Block, page_name
from tests.docs.cluster import KUBECONFIG, fill
from tests.support.processes import logging_as_in_a_new_process, serving_in_a_thread
from trioformer.client import Client
from trioformer.testing import APIServer, serve_http

PATIENCE = 20
"""Virtual seconds after which a block counts as one that does not end."""
REAL_PATIENCE = 1
"""Seconds after which a block of asyncio counts as one that does not end."""
THRESHOLD = 0.01
"""Real seconds that virtual time leaves to threads, such as those that read files."""
GIVEN = Path(__file__).parent / "given"
SERVER: ContextVar[APIServer] = ContextVar("SERVER")
"""The server of the run."""
real_run = trio.run
open_really = trioformer.client.open_client
really_bind = socket.socket.bind


class BlockError(Exception):
    """A block has failed; the message says where."""


def compile_block(block: Block) -> types.CodeType:
    """Compile a block with the line numbers that it has in its page."""
    text = prompted(block.text) if block.language == "pycon" else block.text
    tree = compile(text, block.place, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    ast.increment_lineno(tree, block.line - 1)
    code = compile(tree, str(block.path), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    assert isinstance(code, types.CodeType)
    return code


def prompted(text: str) -> str:
    """Return what a session at the prompt has typed, with the same number of lines."""
    return "\n".join(line[4:] if line.startswith((">>> ", "... ")) else "" for line in text.splitlines()) + "\n"


def is_program(block: Block) -> bool:
    """Whether a block is a whole program."""
    return '__name__ == "__main__"' in block.text


@contextlib.contextmanager
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the blocks a home with a kubeconfig, and a folder to write to."""
    kubeconfig = folder / ".kube" / "config"
    kubeconfig.parent.mkdir(parents=True)
    kubeconfig.write_text(KUBECONFIG)
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.delenv("KUBECONFIG", raising=False)
        patch.setenv("POD_NAME", "operator-0")
        patch.setenv("POD_NAMESPACE", "default")
        patch.chdir(folder)
        patch.setattr(socket.socket, "bind", bind_to_a_free_port)
        patch.setattr(sys, "argv", ["program.py"])
        patch.syspath_prepend(str(ROOT / "examples"))
        yield


def bind_to_a_free_port(listener: socket.socket, address: Any) -> None:
    """Bind to a free port of the loopback interface in the place of the one that a program names."""
    if listener.family in (socket.AF_INET, socket.AF_INET6):
        address = ("::1" if listener.family == socket.AF_INET6 else "127.0.0.1", 0)
    really_bind(listener, address)


def virtual_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=THRESHOLD)


class Given:
    """What a page's reader has anyhow: names, files, and objects in the cluster."""

    def __init__(self, page: str) -> None:
        path = GIVEN / f"{page}.py"
        self.names = own_names(path) if path.exists() else {}
        self.files: dict[str, str] = self.names.pop("FILES", {})
        self.set_up: Callable[..., Awaitable[dict[str, Any]]] | None = self.names.pop("set_up", None)

    def write_files(self, folder: Path) -> None:
        for name, text in self.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    @asynccontextmanager
    async def running_server(self) -> AsyncIterator[tuple[APIServer, Client, dict[str, Any]]]:
        """Run a server with all objects; yields it, a client of it and the names that are given."""
        server = APIServer()
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            fill(server)
            async with server.open_client() as client:
                made = await self.set_up(client, server, nursery) if self.set_up else {}
                with reached_by_everybody(server):
                    yield server, client, self.names | made
            nursery.cancel_scope.cancel()


@contextlib.contextmanager
def reached_by_everybody(server: APIServer) -> Iterator[None]:
    """Let every `open_client` of this run check its arguments, read its configuration, and reach a server in memory.

    Blocks that have imported the function before reach it, too.
    """
    token = SERVER.set(server)
    try:
        yield
    finally:
        SERVER.reset(token)


def open_client(*args: Any, **options: Any) -> AbstractAsyncContextManager[Client]:
    """Be everybody's `open_client`, and the usual one for those that have imported it while a page ran."""
    server = SERVER.get(None)
    return open_really(*args, **({"http_transport": server.http_transport()} if server else {}) | options)


def run_program(block: Block, given: Given) -> dict[str, Any]:
    """Run a whole program on virtual time, for a while; returns its names."""

    def run(async_fn: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        async def run_for_a_while() -> Any:
            async with given.running_server():
                with trio.move_on_after(PATIENCE):
                    return await async_fn(*args)

        return real_run(run_for_a_while, **{"clock": virtual_clock()} | options)

    module = types.ModuleType("__main__")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trio, "run", run)
        # Where annotations look up names.
        patch.setitem(sys.modules, "__main__", module)
        try:
            exec(compile_block(block), module.__dict__)
        except SystemExit as end:
            if end.code not in (None, 0):
                raise BlockError(f"{block.place}: the program has ended with exit code {end.code}") from None
    return {name: value for name, value in vars(module).items() if name[:2] != "__"}


class Page:
    """The blocks of one page while they run."""

    def __init__(self, path: Path, blocks: Sequence[Block], folder: Path) -> None:
        self.path = path
        shown = [block for block in blocks if block.language in ("python", "pycon") and not block.not_run]
        self.blocks = [block for block in shown if block.runs_in == "trio"]
        self.outside = {way: [block for block in shown if block.runs_in == way] for way in ("asyncio", "a thread")}
        self.folder = folder
        self.module = types.ModuleType(f"docs.{page_name(path).replace('/', '.')}")
        self.namespace = vars(self.module)
        self.codes: list[types.CodeType] = []

    def run(self) -> None:
        """Run all blocks; raises the first failure, in which lines are those of the page."""
        linecache.checkcache(str(self.path))
        given = Given(page_name(self.path))
        given.write_files(self.folder)
        with pytest.MonkeyPatch.context() as patch:
            for package in (trioformer, trioformer.client):
                patch.setattr(package, "open_client", open_client)
            patch.setitem(sys.modules, self.module.__name__, self.module)
            patch.setattr(prometheus_client, "REGISTRY", prometheus_client.CollectorRegistry())
            with logging_as_in_a_new_process(), logged() as lines:
                whole = [block for block in self.blocks if block.included is None and is_program(block)]
                programs = {block.line: run_program(block, given) for block in whole}
                try:
                    real_run(self._run, given, programs, clock=virtual_clock())
                except BaseExceptionGroup as group:
                    raise single(group) from None
                if any(self.outside.values()):
                    self._run_outside_of_trio()
        self._check_names()
        self._check_log(lines)

    async def _run(self, given: Given, programs: dict[int, dict[str, Any]]) -> None:
        async with given.running_server() as (_, client, names), trio.open_nursery() as nursery:
            self.namespace |= names
            for block in self.blocks:
                self.namespace["client"] = client
                if block.included is not None:
                    self.namespace |= names_in(block)
                elif block.line in programs:
                    self.namespace |= programs[block.line]
                else:
                    await self._run_block(block, nursery)
            nursery.cancel_scope.cancel()

    def _run_outside_of_trio(self) -> None:
        server = APIServer()
        fill(server)
        with serving_in_a_thread(partial(serve_http, server)) as url:
            kubeconfig = self.folder / ".kube" / "config"
            kubeconfig.write_text(KUBECONFIG.replace("http://127.0.0.1:1", url))
            asyncio.run(self._run_in_asyncio())
            for block in self.outside["a thread"]:
                exec(self._compile(block), self.namespace)

    async def _run_in_asyncio(self) -> None:
        pending = []
        for block in self.outside["asyncio"]:
            result = eval(self._compile(block), self.namespace)
            if inspect.iscoroutine(result):
                task = asyncio.ensure_future(result)
                await asyncio.wait([task], timeout=REAL_PATIENCE)
                if task.done():
                    task.result()
                else:
                    pending.append(task)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    def _compile(self, block: Block) -> types.CodeType:
        code = compile_block(block)
        self.codes.append(code)
        return code

    def _check_log(self, lines: Sequence[str]) -> None:
        """Find warnings of the library, such as that of a period without effect, which no block says that it shows."""
        expected = [block.logs for block in self.blocks if block.logs]
        missing = [text for text in expected if not any(text in line for line in lines)]
        found = [line for line in lines if not any(text in line for text in expected)]
        if missing or found:
            raise BlockError(f"{page_name(self.path)}: logged: {found}; not logged: {missing}")

    async def _run_block(self, block: Block, nursery: trio.Nursery) -> None:
        ended = trio.Event()
        with trio.move_on_after(PATIENCE):
            nursery.start_soon(self._execute, block, ended, name=block.place)
            await ended.wait()

    async def _execute(self, block: Block, ended: trio.Event) -> None:
        known = set(self.namespace)
        code = self._compile(block)
        raised: list[BaseException] = []
        try:
            result = eval(code, self.namespace)
            if inspect.iscoroutine(result):
                await result
            for name in self.namespace.keys() - known:
                if name.startswith("test_"):
                    await self._run_test(self.namespace[name])
        except Exception as error:
            if not block.raises:
                raise
            raised = [error]
        if block.raises:
            names = [type(error).__name__ for error in raised]
            if names != [block.raises]:
                raise BlockError(f"{block.place}: should raise {block.raises}, but: {names or 'nothing'}")
        ended.set()

    async def _run_test(self, test: Callable[..., Awaitable[None]]) -> None:
        server = APIServer()
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with server.open_client() as client:
                fixtures = {
                    "api_server": server,
                    "client": client,
                    "k8s_client": client,
                    "nursery": nursery,
                    "autojump_clock": None,
                    "tmp_path": self.folder,
                }
                await test(**{name: fixtures[name] for name in inspect.signature(test).parameters})
                nursery.cancel_scope.cancel()

    def _check_names(self) -> None:
        """Find names in functions that nobody has called: each must be there at the end of the page."""
        known = self.namespace.keys() | set(dir(builtins))
        missing = [
            f"{self.path.relative_to(ROOT)}:{line}: name {name!r} is not defined"
            for code in self.codes
            if code.co_filename == str(self.path)
            for line, name in used_names(code)
            if name not in known
        ]
        if missing:
            raise BlockError("\n".join(missing))


@contextlib.contextmanager
def logged() -> Iterator[list[str]]:
    """Gather the library's warnings and errors."""
    lines: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]  # that is all of it
    logger = logging.getLogger("trioformer")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


def single(error: BaseException) -> BaseException:
    """Return the error in groups of one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def names_in(block: Block) -> dict[str, Any]:
    """Return the names that a module of ours defines; those that it imports only if the page shows the whole of it."""
    assert block.included is not None
    if not block.is_whole:
        return own_names(block.included)
    return {name: value for name, value in vars(module_at(block.included)).items() if name[:2] != "__"}


def module_at(path: Path) -> types.ModuleType:
    return importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def own_names(path: Path) -> dict[str, Any]:
    """Return what a module of ours defines, without its imports."""
    names = vars(module_at(path))
    return {name: names[name] for name in defined_names(ast.parse(path.read_text()))}


def defined_names(tree: ast.Module) -> Iterator[str]:
    """Return the names that a module gives to functions, classes and values."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def used_names(code: types.CodeType) -> Iterator[tuple[int, str]]:
    """Return the global names that code uses, in functions and classes as well, with their lines."""
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        position = instruction.positions
        line = (position and position.lineno) or line
        if instruction.opname == "LOAD_GLOBAL":
            yield line, instruction.argval
        if isinstance(instruction.argval, types.CodeType):
            yield from used_names(instruction.argval)
