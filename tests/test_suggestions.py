"""The names that errors suggest, and that a label selector has one name everywhere."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from trioformer._suggestions import suggest

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
