"""The programs in ``examples/``, and how each is started."""

from __future__ import annotations

from pathlib import Path

import attrs

from tests.support.processes import ROOT

FOLDER = ROOT / "examples"
SHARED = {"command_line.py", "simulations.py", "spans.py"}
"""What the examples and pages import."""
SERVED = {"web/app.py", "web/dashboard.py"}
"""What a web server imports."""
ENDS_BY_ITSELF = {
    "apply_manifests.py",
    "custom_resource.py",
    "dynamic_kinds.py",
    "first_controller/step_1_see_pods.py",
    "first_controller/step_2_index_pods.py",
    "indexes.py",
    "many_namespaces.py",
    "port_forward.py",
    "run_in_pods.py",
    "served_apis.py",
    "transforms.py",
    "wait_for.py",
    "work_queue.py",
}
USES_A_THREAD = {"apply_manifests.py"}
"""What cannot run with a clock that jumps: it would not wait for the thread."""
ONLY_LOGS = {
    "controller_manager.py",
    "first_controller/step_7_run_in_a_cluster.py",
    "first_controller/step_8_stop_cleanly.py",
}
"""What writes to standard error alone."""
LOGS_WARNINGS = {"bad_objects.py", *ONLY_LOGS}
"""What has something to warn of, embedded."""
FIRST_LINES = {"simple_watch.py": ["Using namespace=default"]}
"""What it prints before it connects."""
_ANY_FILE = "tests/examples/dependents.yaml"
NEEDED = {
    "dynamic_kinds.py": ["pods"],
    "restart_dependents.py": ["--config", _ANY_FILE],
    "website_webhooks.py": ["--certificate", _ANY_FILE, "--key", _ANY_FILE],
}
"""The arguments that only ``--embedded`` can do without."""
READS_FILES: dict[str, list[str]] = {
    "apply_manifests.py": [],
    "controller_manager.py": ["--config"],
    "custom_controller.py": ["--config"],
    "restart_dependents.py": ["--config"],
}
"""What is before the name of a file."""


@attrs.frozen
class Example:
    """A program."""

    name: str
    """Its path in the folder."""

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> str:
        """Its path in the project."""
        return f"examples/{self.name}"

    @property
    def is_self_contained(self) -> bool:
        """Whether it imports nothing of the folder, so that it can be copied; it has no flags but ``--embedded``."""
        return "command_line import" not in self.text and "import command_line" not in self.text

    @property
    def text(self) -> str:
        """Its code."""
        return (FOLDER / self.name).read_text()

    @property
    def is_virtual(self) -> bool:
        """Whether it can run with a clock that jumps over every wait."""
        return self.name not in USES_A_THREAD

    @property
    def needed(self) -> list[str]:
        """The arguments with which it runs in a cluster."""
        return NEEDED.get(self.name, [])


def examples() -> list[Example]:
    """Return all programs: every file that can be run."""
    found = [path.relative_to(FOLDER) for path in FOLDER.glob("**/*.py")]
    names = [str(path) for path in found if str(path) not in SHARED | SERVED and not is_test(path)]
    return [Example(name) for name in sorted(names)]


def is_test(path: Path) -> bool:
    """Whether pytest runs the file."""
    return path.stem.startswith("test_") or path.stem.endswith("_test")
