"""Every public package: what it exports is documented, typed, final where it should be, and free of ``timeout=``."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
import types
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import cast

import attrs
import pytest

import trioformer
from tests.docs.blocks import blocks_of, pages
from trioformer._util import NoPublicConstructor
from trioformer.models import Model

TOP_LEVEL = [
    "trioformer",
    *(f"trioformer.{r.name}" for r in pkgutil.iter_modules(trioformer.__path__) if r.name[0] != "_"),
]
PACKAGES = [*TOP_LEVEL, "trioformer.testing.simulation"]


def exports_of(package: str) -> dict[str, object]:
    """Return what a public package exports: what its ``__all__`` names, else every public name that it holds."""
    module = importlib.import_module(package)
    held = [name for name in vars(module) if not name.startswith("_") and name != "annotations"]
    # Not from vars(): a package may import a module when its name is first used.
    offered = {name: getattr(module, name) for name in getattr(module, "__all__", held)}
    return {name: value for name, value in offered.items() if not isinstance(value, types.ModuleType)}


EXPORTS = [(package, name, value) for package in PACKAGES for name, value in exports_of(package).items()]


def classes() -> list[type]:
    found = {value for _, _, value in EXPORTS if isinstance(value, type)}
    ours = (cls for cls in found if cls.__module__.startswith("trioformer"))
    return sorted(ours, key=lambda cls: (cls.__module__, cls.__qualname__))


CLASSES = classes()
FUNCTIONS = sorted(
    {value for _, _, value in EXPORTS if isinstance(value, types.FunctionType)},
    key=lambda function: (function.__module__, function.__qualname__),
)

SUBCLASSABLE = {
    # Models: a custom resource and its parts are subclasses.
    "Model",
    "KubernetesObject",
    # What a user overrides in part.
    "ResourceEventHandler",
    # RateLimitingQueue is a subclass, so that a function that takes a WorkQueue takes both.
    "WorkQueue",
    # A read-only dict; isinstance() is how it is told from a caller's own.
    "FrozenMap",
}
"""Classes that are open to subclasses without being abstract, exceptions, enums, models or frozen values."""

LOOSE = {
    # What JSON holds is known to the caller alone.
    "trioformer.models._plain.to_dict",
    "trioformer.models._unstructured.Unstructured.get",
    # Informers of several kinds in one mapping; their kind is in the key.
    "trioformer.cache.factory._factory.SharedInformerFactory.informers",
    # Limiters and observers of any key: mypy cannot tell the requests from them and the reconcile together.
    "trioformer.controller._controller.Controller.__init__",
}
"""Functions that have Any in their signature for a reason."""


@attrs.frozen
class _Frozen:
    pass


def is_frozen_value(cls: type) -> bool:
    return attrs.has(cls) and cls.__setattr__ is _Frozen.__setattr__


def is_open_by_nature(cls: type) -> bool:
    return (
        inspect.isabstract(cls)
        or getattr(cls, "_is_protocol", False)
        or issubclass(cls, BaseException | Enum | Model)
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
        or is_frozen_value(cls)
    )


def own_members(cls: type) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the public methods, and the getters of properties, that a class itself defines."""
    for name, value in vars(cls).items():
        if name.startswith("_"):
            continue
        member = value.fget if isinstance(value, property) else inspect.unwrap(getattr(value, "__func__", value))
        if isinstance(member, types.FunctionType) and not member.__name__.startswith("_"):
            yield name, member


def signatures() -> list[tuple[str, Callable[..., object]]]:
    """Return every public function and method, constructors included, by its full name."""
    found: list[tuple[str, Callable[..., object]]] = [
        (f"{function.__module__}.{function.__qualname__}", inspect.unwrap(function)) for function in FUNCTIONS
    ]
    for cls in CLASSES:
        found += [(f"{cls.__module__}.{cls.__qualname__}.{name}", member) for name, member in own_members(cls)]
        init = vars(cls).get("__init__")
        # Models' constructors are fields of the API; a class without public constructor is only made by the library.
        if isinstance(init, types.FunctionType) and not (
            issubclass(cls, Model) or isinstance(cls, NoPublicConstructor)
        ):
            found.append((f"{cls.__module__}.{cls.__qualname__}.__init__", init))
    return found


SIGNATURES = signatures()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_public_package_has_a_docstring_and_exports_something(package: str) -> None:
    assert importlib.import_module(package).__doc__
    assert exports_of(package)


@pytest.mark.parametrize(
    "package", [package for package in PACKAGES if hasattr(importlib.import_module(package), "__all__")]
)
def test_a_public_package_lists_all_of_its_names(package: str) -> None:
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    ours = {
        name
        for name, value in vars(module).items()
        if isinstance(value, type | types.FunctionType) and value.__module__.startswith("trioformer")
    }
    assert {name for name in ours if not name.startswith("_")} - set(module.__all__) == set()


@pytest.mark.parametrize(
    ("package", "name", "value"), EXPORTS, ids=[f"{package}.{name}" for package, name, _ in EXPORTS]
)
def test_a_public_package_exports_only_what_is_ours(package: str, name: str, value: object) -> None:
    # What a module imports for its own use must not look like part of its interface.
    if isinstance(value, type | types.FunctionType):
        assert value.__module__.startswith("trioformer")


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__}.{cls.__qualname__}")
def test_every_public_class_and_each_of_its_methods_has_a_docstring(cls: type) -> None:
    assert vars(cls).get("__doc__")
    undocumented = [name for name, _ in own_members(cls) if not inspect.getdoc(getattr(cls, name))]
    assert undocumented == []


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: f"{function.__module__}.{function.__qualname__}")
def test_every_public_function_has_a_docstring(function: Callable[..., object]) -> None:
    assert inspect.getdoc(function)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__}.{cls.__qualname__}")
def test_every_public_class_is_final_or_made_to_be_subclassed(cls: type) -> None:
    final = getattr(cls, "__final__", False) and vars(cls).get("__final__", False)
    if cls.__name__ in SUBCLASSABLE:
        assert not final, "it is final, and yet on the list of SUBCLASSABLE"
    else:
        assert final or is_open_by_nature(cls)


def test_the_list_of_subclassable_classes_names_only_what_is_exported() -> None:
    assert {name for name in SUBCLASSABLE if name not in {cls.__name__ for cls in CLASSES}} == set()


def test_the_public_surface_stays_small() -> None:
    """httpx has 70 names at its top level, trio 65; each of ours has to be learned, documented and kept."""
    names = {name for package in TOP_LEVEL for name in getattr(importlib.import_module(package), "__all__", ())}
    assert len(names) <= 220


def undocumented_fields(cls: type) -> list[str]:
    """Return the public fields of a class body that no string follows."""
    tree = cast("ast.ClassDef", ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0])
    missing = []
    for node, following in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        if not documented and not node.target.id.startswith("_"):
            missing.append(node.target.id)
    return missing


@pytest.mark.parametrize(
    "cls",
    [cls for cls in CLASSES if is_frozen_value(cls) and not issubclass(cls, Model)],
    ids=lambda cls: f"{cls.__module__}.{cls.__qualname__}",
)
def test_every_field_of_a_value_has_a_line_that_says_what_it_is(cls: type) -> None:
    # The fields of API objects are described by Kubernetes.
    assert undocumented_fields(cls) == []


@pytest.mark.parametrize(("name", "function"), SIGNATURES, ids=[name for name, _ in SIGNATURES])
def test_no_public_function_takes_a_timeout_or_any(name: str, function: Callable[..., object]) -> None:
    signature = inspect.signature(function)
    assert "timeout" not in signature.parameters, f"{name}: the caller writes `with trio.fail_after(…)`"
    annotations = [*(parameter.annotation for parameter in signature.parameters.values()), signature.return_annotation]
    loose = [text for text in map(str, annotations) if re.search(r"\bAny\b", text)]
    assert bool(loose) == (name in LOOSE), loose


def test_every_public_name_is_in_an_example_that_is_run() -> None:
    """Blocks of pages are run by tests/docs, and the examples by tests/examples."""
    root = Path(trioformer.__file__).parents[1]
    blocks = [block.text for path in pages() for block in blocks_of(path) if block.language in ("python", "pycon")]
    code = "\n".join([*blocks, *(path.read_text() for path in (root / "examples").rglob("*.py"))])
    words = set(re.findall(r"\w+", code))
    names = {name for package in PACKAGES for name in getattr(importlib.import_module(package), "__all__", ())}
    assert sorted(names - words - {"__version__"}) == []
