"""Fixtures for pytest-trio: an embedded API server that runs until the test ends, and a client for it.

pytest loads this plugin through its entry point in every environment with trioformer.  So the plugin imports no other
module of trioformer until a fixture is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ._simulation_options import options

if TYPE_CHECKING:
    import trio

    from ..client import Client
    from ..controller._internal import Journal
    from ._server import APIServer


LAST_RECONCILES = 10
"""The number of journal entries in the report of a failed test."""
LAST_REQUESTS = 20
"""The number of requests in the report of a failed test."""


_JOURNALS: pytest.StashKey[list[Journal[Any]]] = pytest.StashKey()
"""The journals of the controllers of a test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option ``k8s_field_manager``, and the options for simulations and roles."""
    parser.addini("k8s_field_manager", "the field manager of the client of the fixture k8s_client", default="tests")
    group = parser.getgroup("trioformer")
    group.addoption("--trioformer-stories", type=int, metavar="N", help="the number of stories of each simulation")
    group.addoption("--trioformer-story-seed", type=int, metavar="S", help="the seed of each simulation")
    group.addoption("--trioformer-rbac", metavar="FILE", help="compare what operators request with the role in FILE")
    group.addoption("--trioformer-rbac-write", action="store_true", help="write FILE if it differs")
    group.addoption("--trioformer-rbac-prove", action="store_true", help="run the tests without each permission")


def pytest_configure(config: pytest.Config) -> None:
    """Pass the options to simulations, which save the stories that fail below ``.trioformer/stories``, and to roles."""
    options.stories = config.getoption("--trioformer-stories")
    options.seed = config.getoption("--trioformer-story-seed")
    options.directory = config.rootpath / ".trioformer" / "stories"
    writes, proves = (bool(config.getoption(f"--trioformer-rbac-{word}")) for word in ("write", "prove"))
    if path := config.getoption("--trioformer-rbac"):
        from ._role_check import RoleCheck  # noqa: PLC0415  # only with the option

        if proves and config.getoption("numprocesses", None):
            raise pytest.UsageError("--trioformer-rbac-prove runs the tests in one process: leave out -n")
        config.pluginmanager.register(RoleCheck(Path(path), writes=writes, proves=proves))
    elif writes or proves:
        raise pytest.UsageError("--trioformer-rbac-write and --trioformer-rbac-prove need --trioformer-rbac=FILE")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Collect the journals of the controllers of a test, whose ``api_server`` may be a fixture of its own module."""
    if "api_server" in getattr(item, "fixturenames", ()):
        from ..controller._internal import collect_journal  # noqa: PLC0415  # only when the fixture is used

        item.stash[_JOURNALS] = []
        token = collect_journal.set(item.stash[_JOURNALS].append)
        try:
            return (yield)
        finally:
            collect_journal.reset(token)
    return (yield)


def _server_of(item: pytest.Item) -> APIServer | None:
    """Return the value of the fixture ``api_server`` in a test, which pytest-trio wraps."""
    value: Any = getattr(item, "funcargs", {}).get("api_server")
    server = getattr(value, "fixture_value", value)
    if server is None:
        return None
    from ._server import APIServer  # noqa: PLC0415  # only when a test has failed

    return server if isinstance(server, APIServer) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the last requests, and the state of the objects named in them, to the report of a failed test."""
    report = yield
    server = _server_of(item) if report.failed and call.when == "call" else None
    if server is not None:
        report.sections.append(("requests to the embedded API server", "\n".join(_describe_requests(server))))
        if entries := [str(entry) for journal in item.stash[_JOURNALS] for entry in journal.entries()]:
            report.sections.append(("last reconciles", "\n".join(entries[-LAST_RECONCILES:])))
    return report


def _describe_requests(server: APIServer) -> list[str]:
    """Describe the last requests and the state of the objects named in them, but not the content of the objects."""
    from ..errors import NotFoundError  # noqa: PLC0415  # only when a test has failed

    lines = []
    objects: dict[tuple[str, str, str], None] = {}
    for record in list(server.requests)[-LAST_REQUESTS:]:
        query = "&".join(f"{key}={value}" for key, value in record.query.items())
        lines.append(f"{record.time:10.3f} s  {record.verb} {record.path}{f'?{query}' if query else ''}")
        if record.name is not None:
            plural = f"{record.resource}.{record.group}" if record.group else record.resource
            objects[plural, record.namespace or "", record.name] = None
    for plural, namespace, name in objects:
        shown = f"{plural} {namespace}/{name}" if namespace else f"{plural} {name}"
        try:
            metadata: Any = server.get(plural, name, namespace=namespace)["metadata"]
        except NotFoundError:
            lines.append(f"{shown}: does not exist")
        else:
            state = ", is being deleted" if "deletionTimestamp" in metadata else ""
            lines.append(f"{shown}: resourceVersion {metadata['resourceVersion']}{state}")
    return lines


@pytest.fixture
def _trioformer_trio_test(request: pytest.FixtureRequest) -> None:
    """Fail with a hint if the test is not run by pytest-trio.

    Pytest would only report "fixture 'nursery' not found".
    """
    if not request.config.pluginmanager.has_plugin("trio"):
        pytest.fail(
            "the fixtures of trioformer require pytest-trio; install it with `pip install 'trioformer[testing]'`",
            pytrace=False,
        )
    if request.node.get_closest_marker("trio") is None:
        pytest.fail(
            "the fixtures of trioformer require tests that pytest-trio runs: set trio_mode = true in pytest's "
            "configuration, or mark this test with @pytest.mark.trio",
            pytrace=False,
        )


@pytest.fixture
async def api_server(request: pytest.FixtureRequest, _trioformer_trio_test: None, nursery: trio.Nursery) -> APIServer:
    """An empty :class:`~trioformer.testing.APIServer` that runs until the test ends.

    If the server raises an error, the test fails.
    """
    from trio.lowlevel import current_clock  # noqa: PLC0415  # only when the fixture is used
    from trio.testing import MockClock  # noqa: PLC0415

    from ._server import APIServer  # noqa: PLC0415

    clocks = {"autojump_clock", "mock_clock"}.intersection(request.fixturenames)
    if clocks and not isinstance(current_clock(), MockClock):  # the test would wait in real time
        pytest.fail(
            f"{clocks.pop()} has no effect: pytest-trio uses a clock only if the test function itself requests it",
            pytrace=False,
        )
    server = APIServer()
    await nursery.start(server.run)
    return server


@pytest.fixture
def k8s_field_manager(request: pytest.FixtureRequest) -> str:
    """The field manager of ``k8s_client``.

    The field manager is set with the ini option ``k8s_field_manager``, and the default is "tests".
    """
    return str(request.config.getini("k8s_field_manager"))


@pytest.fixture
async def k8s_client(api_server: APIServer, k8s_field_manager: str) -> AsyncIterator[Client]:
    """A client of ``api_server``, closed when the test ends.

    The field manager of the client is the value of the fixture ``k8s_field_manager``.
    """
    async with api_server.open_client(field_manager=k8s_field_manager) as opened:
        yield opened
