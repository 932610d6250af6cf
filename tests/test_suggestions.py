"""The errors about arguments that a function does not have, and that a label selector has one name everywhere."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from trioformer._suggestions import suggest, suggest_arguments
from trioformer.cache import Lister, SharedInformerFactory
from trioformer.client import Client
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer
from trioformer.watchtools import resuming_watch

PACKAGES = ("cache", "client", "controller", "events", "testing", "watchtools")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nodeName", "node_name"),
        ("node_nam", "node_name"),
        ("selector", "label_selector"),
        ("labels", "label_selector"),
        ("labelSelector", "label_selector"),
        ("fieldselector", "field_selector"),
        ("colour", ""),
        ("", ""),
    ],
)
def test_the_suggested_name_is_the_one_that_was_meant(name: str, meant: str) -> None:
    assert suggest(name, ["label_selector", "node_name", "field_selector", "namespace"]) == meant


@suggest_arguments(name="call rename() first")
def paint(wall: str, *, first_colour: str = "", label_selector: str = "") -> str:
    return f"{wall} {first_colour}{label_selector}"


@suggest_arguments()
async def paint_later(wall: str, *, first_colour: str = "") -> str:
    return f"{wall} {first_colour}"


@pytest.mark.parametrize(
    ("argument", "hint"),
    [
        ("firstColour", "did you mean first_colour?"),
        ("selector", "did you mean label_selector?"),
        ("name", "call rename() first"),
        ("size", "the others are first_colour, label_selector"),
    ],
)
def test_an_unknown_argument_raises_with_a_hint(argument: str, hint: str) -> None:
    with pytest.raises(TypeError) as caught:
        paint("north", **{argument: "red"})
    assert str(caught.value) == f"paint() has no argument {argument!r}; {hint}"


async def test_a_decorated_function_is_called_with_what_it_has() -> None:
    assert paint("north", first_colour="red") == "north red"
    assert inspect.iscoroutinefunction(paint_later)
    assert await paint_later(wall="north", first_colour="red") == "north red"
    with pytest.raises(TypeError, match="did you mean first_colour"):
        await paint_later("north", first_color="red")  # type: ignore[call-arg]  # the mistake
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        paint()  # type: ignore[call-arg]  # Python's own error


# --- one name for label selectors ---


def public_functions() -> Iterator[tuple[str, Any]]:
    for package in PACKAGES:
        module = importlib.import_module(f"trioformer.{package}")
        for name in module.__all__:
            public = getattr(module, name)
            if not inspect.isclass(public):
                members = {"": public}
            else:
                members = {each: getattr(public, each) for each in vars(public) if each[0] != "_" or each == "__init__"}
            for member, function in members.items():
                if inspect.isroutine(function):
                    yield f"{package}.{name}.{member}", function


def test_a_label_selector_has_one_name_everywhere() -> None:
    parameters = {name: set(inspect.signature(function).parameters) for name, function in public_functions()}
    assert len(parameters) > 100
    assert [name for name, names in parameters.items() if names & {"selector", "labels", "labelselector"}] == []
    assert "label_selector" in parameters["cache.Lister.list"]
    assert len([name for name, names in parameters.items() if "label_selector" in names]) >= 8


async def test_a_selector_under_another_name_raises_with_the_right_one() -> None:
    async with APIServer().open_client() as client:
        assert isinstance(client, Client)
        pods: Any = client.api(Pod, namespace="shop")
        factory: Any = SharedInformerFactory(client)
        lister: Any = factory.informer(Pod).lister
        meant = r"has no argument 'selector'; did you mean label_selector\?$"
        with pytest.raises(TypeError, match=rf"^Api\.list\(\) {meant}"):
            await pods.list(selector="app=web")
        with pytest.raises(TypeError, match=rf"^Api\.watch\(\) {meant}"):
            pods.watch(selector="app=web")
        with pytest.raises(TypeError, match=rf"^Lister\.list\(\) {meant}"):
            lister.list(selector="app=web")
        with pytest.raises(TypeError, match=rf"^resuming_watch\(\) {meant}"):
            resuming_watch(pods, resource_version="1", selector="app=web")  # type: ignore[call-arg]  # the mistake
        with pytest.raises(TypeError, match=rf"^SharedInformerFactory\.informer\(\) {meant}"):
            factory.informer(Pod, selector="app=web")
        with pytest.raises(TypeError, match=rf"^SharedInformerFactory\.open_informer\(\) {meant}"):
            factory.open_informer(Pod, selector="app=web")
        with pytest.raises(TypeError, match=rf"^SharedInformerFactory\(\) {meant}"):
            SharedInformerFactory(client, selector="app=web")  # type: ignore[call-arg]  # the mistake
        with pytest.raises(TypeError, match=r"Api\.list\(\) has no argument 'namespace'; pass it to client\.api\(\)"):
            await pods.list(namespace="shop")


def test_the_decorated_methods_keep_their_names_and_texts() -> None:
    assert Lister.list.__qualname__ == "Lister.list"
    assert "does not decode" in str(Lister.list.__doc__)
