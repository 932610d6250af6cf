"""What importing costs, and the rules of the house that import-linter cannot see."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

import trioformer
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, serve_http

PACKAGE = Path(trioformer.__file__).parent
LONGEST_MODULE = 500
LONGER = {"trioformer.client._api": 630, "trioformer.client._api_verbs": 670}
"""The two modules of one class, whose methods are documented at length."""


def is_generated(path: Path) -> bool:
    """A name without underscore in models/ is generated; whatever else is says so in its first line."""
    with path.open() as file:
        first = file.readline()
    return "GENERATED" in first or (path.parent == PACKAGE / "models" and not path.name.startswith("_"))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


ALL_MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
GENERATED = {name for name, path in ALL_MODULES.items() if is_generated(path)}
HAND_WRITTEN = {name: path for name, path in ALL_MODULES.items() if name not in GENERATED}


def loaded_after(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter holds after a statement."""
    program = f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=PACKAGE.parent
    )
    return set(done.stdout.split())


def test_importing_trioformer_imports_no_generated_module() -> None:
    assert loaded_after("from trioformer import *") & GENERATED == set()


def test_importing_trioformer_imports_neither_the_embedded_server_nor_tools() -> None:
    packages = {"trioformer.testing", "hypercorn", "hypothesis", "prometheus_client", "pytest", "trustme"}
    assert loaded_after("from trioformer import *") & packages == set()


@pytest.mark.parametrize(
    ("statement", "bound"),
    [
        ("import trioformer", 12),
        ("from trioformer import open_client", 128),
        ("from trioformer import SharedInformerFactory", 162),
    ],
)
def test_an_import_adds_few_modules_to_those_of_trio(statement: str, bound: int) -> None:
    # The time itself is measured by the benchmark ``start``: a test of it would measure the machine.
    added = loaded_after(statement) - loaded_after("import trio")
    assert len(added) <= bound, sorted(added)


INFORMER = """
import sys
import trio
from trioformer import ClusterConfig, SharedInformerFactory, open_client
from trioformer.models.core_v1 import Pod

async def main():
    async with open_client(ClusterConfig(server=sys.argv[1])) as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client)
        lister = factory.informer(Pod).lister
        await nursery.start(factory.run)
        await factory.wait_for_cache_sync()
        print([pod.metadata.name for pod in lister.list()])
        nursery.cancel_scope.cancel()

trio.run(main)
made = [name for name, cls in vars(sys.modules[Pod.__module__]).items() if isinstance(cls, type)
        and cls.__module__ == Pod.__module__ and isinstance(vars(cls)["__attrs_attrs__"], tuple)]
print(made)
print(*sys.modules, sep="\\n")
"""
"""Prints the names of its pods, the models that attrs has described, and the modules."""


async def test_the_program_of_an_informer_imports_only_what_it_uses(nursery: trio.Nursery) -> None:
    server = APIServer()
    server.create(Pod(metadata=ObjectMeta(name="web-0", namespace="default")))
    url = await nursery.start(serve_http, server)
    done = await trio.run_process([sys.executable, "-c", INFORMER, url], capture_stdout=True, cwd=PACKAGE.parent)
    names, described, *modules = done.stdout.decode().splitlines()
    assert names == "['web-0']"
    assert described == "['Pod']"
    assert {"httpx", "yaml", "cattrs", "trioformer.kubeconfig._load"} & {*modules} == set()
    assert len({*modules} - loaded_after("import trio")) <= 190
    nursery.cancel_scope.cancel()


def test_every_package_is_an_attribute_of_trioformer() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("[a-z]*/__init__.py")}
    program = "import trioformer\nprint(*[getattr(trioformer, name).__name__ for name in sorted({0})])"
    done = subprocess.run(
        [sys.executable, "-c", program.format(packages)], check=True, capture_output=True, text=True, cwd=PACKAGE.parent
    )
    assert done.stdout.split() == [f"trioformer.{name}" for name in sorted(packages)]


@pytest.mark.parametrize("name", ALL_MODULES)
def test_every_module_can_be_imported(name: str) -> None:
    assert importlib.import_module(name).__name__ == name


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_no_hand_written_module_is_too_long(name: str) -> None:
    assert len(HAND_WRITTEN[name].read_text().splitlines()) <= LONGER.get(name, LONGEST_MODULE)


def imported_modules(name: str, path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and absolute name of everything that a module's import statements name."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield node.lineno, start
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)


def is_private_import(importer: str, imported: str) -> bool:
    """Whether this imports a private module of another top-level package.

    - ``trioformer._util`` and the like are for all packages.
    - The packages within one top-level package share their private modules: import-linter knows their layers.
    - ``_internal.py`` of a package re-exports what other packages need of it and users do not.
    """
    parts = imported.split(".")
    if parts[0] != "trioformer" or len(parts) < 3 or imported not in ALL_MODULES:
        return False
    is_private = any(part.startswith("_") for part in parts[2:]) and parts[2:] != ["_internal"]
    return is_private and importer.split(".")[1:2] != parts[1:2]


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_packages_import_only_public_names_of_each_other(name: str) -> None:
    found = [
        f"{line}: {imported}"
        for line, imported in imported_modules(name, HAND_WRITTEN[name])
        if is_private_import(name, imported)
    ]
    assert found == []


def test_an_import_of_a_private_module_is_found() -> None:
    private = next(name for name in HAND_WRITTEN if name.startswith("trioformer.models._"))
    assert is_private_import("trioformer.cache.store._indexer", private)
    assert not is_private_import("trioformer.models", private)
    assert not is_private_import("trioformer.cache.store._indexer", "trioformer._util")


@pytest.mark.parametrize("name", [name for name in HAND_WRITTEN if name.endswith("._internal")])
def test_an_internal_module_lists_what_other_packages_import_and_users_do_not(name: str) -> None:
    package = importlib.import_module(name.removesuffix("._internal"))
    # From the source: pytest adds names of its own to the modules of a plugin.
    imports = [node for node in ast.walk(ast.parse(HAND_WRITTEN[name].read_text())) if isinstance(node, ast.ImportFrom)]
    listed = {alias.name for node in imports if node.level == 1 for alias in node.names}
    imported_elsewhere = {
        imported.removeprefix(f"{name}.")
        for importer, path in HAND_WRITTEN.items()
        if importer.split(".")[1:2] != name.split(".")[1:2]
        for _, imported in imported_modules(importer, path)
        if imported.startswith(f"{name}.")
    }
    assert listed == imported_elsewhere
    assert listed.isdisjoint(package.__all__)


_FROM_SURROUNDINGS = {
    "time.time",
    "time.perf_counter",
    "random.random",
    "uuid.uuid4",
    "socket.gethostname",
    "datetime.now",
}
"""What only ``_surroundings`` uses, so that a simulation can replace it."""


@pytest.mark.parametrize("name", sorted(HAND_WRITTEN))
def test_time_and_chance_come_from_the_surroundings(name: str) -> None:
    if name.startswith(("trioformer._surroundings", "trioformer.testing", "trioformer.cli")):
        return
    tree = ast.parse(HAND_WRITTEN[name].read_text())
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert used & _FROM_SURROUNDINGS == set()
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "factory"]
    made = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert "random.Random" not in made | {ast.unparse(value) for value in values}
