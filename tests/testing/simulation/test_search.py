"""What the search finds: nine mistakes planted into one operator, and bugs that were published."""

from __future__ import annotations

import importlib
from typing import Any, Final

import pytest

from tests.testing.simulation import databases, mistakes
from trioformer.testing._simulation_options import options
from trioformer.testing.simulation import simulate

MOST: Final = 300
"""The number of stories within which a mistake must be found."""
QUICK: Final = ("owner reference missing",)
PUBLISHED: Final = (
    "azure_2719",
    "cass_operator_120",
    "casskop_370",
    "cert_manager_4956",
    "clickhouse_1430",
    "kubermatic_6759",
    "minio_2309",
    "rabbitmq_782",
    "tidb_6532",
)
QUICK_BUGS: Final = ("kubermatic_6759", "rabbitmq_782")


@pytest.fixture(autouse=True)
def nothing_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the stories of the tests out of the project."""
    monkeypatch.setattr(options, "directory", None)


@pytest.mark.parametrize(
    "mistake",
    [pytest.param(one, marks=[] if one in QUICK else [pytest.mark.long]) for one in mistakes.MISTAKES],
)
def test_a_mistake_is_found_and_shrunk(mistake: str) -> None:
    report = simulate(mistakes.make_operator(mistake), databases.Databases, stories=MOST, replicas=2)
    assert report.failure is not None
    assert len(report.failure.story.steps) <= 3
    assert len(report.failure.story.faults) <= 2


def test_the_operator_without_mistakes_passes() -> None:
    simulate(databases.operator, databases.Databases, stories=5, replicas=2).check()


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.long] * (one not in QUICK_BUGS)) for one in PUBLISHED]
)
def test_a_published_bug_is_found_and_its_mend_passes(name: str) -> None:
    module: Any = importlib.import_module(f"tests.testing.simulation.published.{name}")
    (scenario,) = (
        one
        for one in vars(module).values()
        if isinstance(one, type) and one.__module__ == module.__name__ and hasattr(one, "kinds")
    )
    replicas = 2 if name == "minio_2309" else 1
    assert simulate(module.operator, scenario, stories=MOST, replicas=replicas).failure is not None
    simulate(module.fixed, scenario, stories=10, replicas=replicas).check()
