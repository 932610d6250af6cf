"""The roles of the operators among the examples: their tests use each permission, and no other."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.processes import ROOT, result_of

ROLES: Final = {
    "deploy": "deploy/manifests/rbac.yaml",
    "first_controller": "first_controller/deploy.yaml",
    "controller_manager": "roles/controller_manager.yaml",
    "crd_operator": "roles/crd_operator.yaml",
    "custom_controller": "roles/custom_controller.yaml",
    "job_controller": "roles/job_controller.yaml",
    "restart_dependents": "roles/restart_dependents.yaml",
    "workqueue_controller": "roles/workqueue_controller.yaml",
}
"""The files with roles below ``examples``, by what ``test_*.py`` tests."""
# They take long, and need nothing that the other tests do not need: after a lost response, a controller reads the
# object if it may, and otherwise waits for its cache.
QUICK: Final = " and ".join(
    f"not {word}" for word in ("single_fault", "signal", "stor", "simul", "file", "process", "outage", "whichever")
)


def command_for(name: str) -> list[str]:
    """Return the command that compares a role; with --trioformer-rbac-write, it writes the role."""
    path, test = f"examples/{ROLES[name]}", f"tests/examples/test_{name}.py"
    return ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", QUICK, f"--trioformer-rbac={path}", test]


@pytest.mark.parametrize("name", ROLES)
async def test_the_role_of_an_operator_is_what_its_tests_use(name: str) -> None:
    code, output, errors = await result_of(*command_for(name), deadline=300)
    assert (code, errors) == (0, []), "\n".join(output)


def test_each_committed_role_is_compared() -> None:
    assert {path.name for path in (ROOT / "examples" / "roles").iterdir()} == {
        path.removeprefix("roles/") for path in ROLES.values() if path.startswith("roles/")
    }
