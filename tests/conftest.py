"""Options and rules of the whole test suite.

The end-to-end tests need a control plane and are collected only when they are named: ``pytest tests/e2e``.
Of the contract tests among them, the half on the embedded server is collected always.
"""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import hypothesis
import pytest

from tests.support.end_to_end import is_collected
from trioformer.client import Client, ClientOptions
from trioformer.client.bodies import _wire_format
from trioformer.testing import _in_memory

LONGEST_ID = 100
"""Characters of a parameter in the name of a test."""

# An ordinary run is the same every time, so that a failure belongs to the change that it came with.
# Deadlines and "too slow" would measure the machine.
hypothesis.settings.register_profile(
    "default",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "long", parent=hypothesis.settings.get_profile("default"), derandomize=False, max_examples=2_000
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests marked long, and search longer for examples")
    parser.addoption("--encoding", choices=("json", "protobuf"), help="what all clients request for built-in kinds")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts a background job like this, and the programs that tests start would ignore Ctrl-C, too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        # Coverage measures the processes that run tests, not the programs that tests start: some are killed before they
        # can write down what was measured, and some must print nothing but their own lines.
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
    encoding = config.getoption("--encoding")
    if encoding == "json":
        _wire_format._has_messages = lambda kind: False
    elif encoding == "protobuf":
        _in_memory.CLIENT_OPTIONS = ClientOptions()
    hypothesis.settings.load_profile("long" if config.getoption("--long") else "default")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name long parameters by their argument, as pytest 9 does: keys that are made anew differ between processes."""
    return argname if isinstance(val, str | bytes) and len(val) > LONGEST_ID else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    skip = pytest.mark.skip(reason="takes long; run with --long")
    for item in items:
        if item.get_closest_marker("long") is not None:
            item.add_marker(skip)


@pytest.fixture(scope="module", autouse=True)
def set_aside_what_stays() -> None:
    """Let the garbage collector forget what exists before a file's tests.

    These are hundreds of thousands of objects, classes of models and tests and reports, which stay: a test that
    collects garbage, or looks at every object, has its own to do with.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
async def client(k8s_client: Client) -> Client:
    """The client of ``api_server``, under a shorter name."""
    return k8s_client


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return None if is_collected(collection_path, config) else True
