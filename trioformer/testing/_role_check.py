"""The part of the pytest plugin that records the permissions of operators, and compares them with a role."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, final

import attrs
import pytest
from _pytest.runner import runtestprotocol  # what pytest runs each test with; there is no public name

from ._recording import Permission, Recorder
from ._role_files import RoleFileError, difference, read_roles, write_roles
from ._serving._access import operator_actions
from ._simulation_options import options

_STATE: Final = "trioformer_rbac"
"""The key of what a process of pytest-xdist has recorded."""
_NEEDLESS: Final = "not needed"


@final
@attrs.define(eq=False)
class RoleCheck:
    """Compares the permissions that the tests use with a file at the end of the run."""

    path: Path
    writes: bool
    """Whether the file is written if it differs."""
    proves: bool
    """Whether each permission is taken away, to find those that no test needs."""
    recorder: Recorder = attrs.field(init=False, factory=Recorder)
    _report: list[str] = attrs.field(init=False, factory=list)
    _durations: dict[str, float] = attrs.field(init=False, factory=lambda: defaultdict(float))
    """The seconds that each test took."""
    _needless: list[Permission] | None = attrs.field(init=False, default=None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record the permissions that a test and its fixtures use."""
        token = operator_actions.set(self.recorder.observer(item.nodeid))
        try:
            return (yield)
        finally:
            operator_actions.reset(token)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Measure the tests, so that the quickest ones prove a permission."""
        self._durations[report.nodeid] += report.duration

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Find the permissions that no test needs, when all tests have passed."""
        outcome = yield
        if self.proves and not session.testsfailed:
            self._needless = []
            terminal = session.config.pluginmanager.get_plugin("terminalreporter")
            for permission, tests in sorted(self.recorder.permissions().items()):
                found = self._prove(permission, [item for item in session.items if item.nodeid in tests])
                if found is _NEEDLESS:
                    self._needless.append(permission)
                if terminal is not None:  # the proof may take minutes
                    terminal.ensure_newline()
                    terminal.write_line(f"{found}: {permission}")
        return outcome

    def _prove(self, permission: Permission, items: list[pytest.Item]) -> str:
        """Find out whether a test fails without a permission, with simulations that have no faults."""
        if permission.verb == "watch":  # informers and candidates for a Lease would ask again and again
            return "needed by definition"
        was_asked = False
        self.recorder.denied, options.without_faults = permission, True
        try:
            for item in sorted(items, key=lambda item: self._durations[item.nodeid]):
                observer = self.recorder.observer(item.nodeid)
                token = operator_actions.set(observer)
                try:
                    if any(report.failed for report in runtestprotocol(item, log=False)):
                        return "needed"
                finally:
                    operator_actions.reset(token)
                was_asked = was_asked or observer.denied.is_set()
        finally:
            self.recorder.denied, options.without_faults = None, False
        return _NEEDLESS if was_asked else "needed after faults"

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a process of pytest-xdist has recorded."""
        self.recorder.add(getattr(node, "workeroutput", {}).get(_STATE, [[], []]))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Compare the permissions with the file, or send them to the process that does."""
        output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_STATE] = self.recorder.state()
        elif exitstatus != pytest.ExitCode.OK or session.config.option.collectonly:
            self._report = [f"not compared with {self.path}: a run without failures shows what the role needs"]
        elif not self._is_equal() or self._needless:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _is_equal(self) -> bool:
        """Return whether the file has the permissions that the tests use, and make the report."""
        used = set(self.recorder.permissions())
        if not used:
            problem = "no operator sent a request: run it with run_controllers, or open its client with operator=True"
            self._report = [problem]
            return False
        try:
            found = read_roles(self.path) if self.path.exists() or not self.writes else set()
            diff = difference(self.path, found, used)
            if diff and self.writes:
                write_roles(self.path, used)
        except RoleFileError as exc:
            self._report = [str(exc)]
            return False
        self._report = [*diff, f"{self.path}: {len(used)} permissions, as the tests use them"]
        if diff and not self.writes:
            self._report[-1] = f"{self.path} is not what the tests use: add --trioformer-rbac-write to write it"
        if self._needless is not None:
            self._report += [f"no test fails without the permission: {one}" for one in self._needless]
            self._report.append(f"{len(used)} permissions, {len(used) - len(self._needless)} needed")
        return not diff or self.writes

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the result."""
        if self._report:
            terminalreporter.section("role of the operator")
            for line in self._report:
                terminalreporter.write_line(line)
