"""What a program gives for a part of an object must be a model, and is refused when the object is made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import pytest

from trioformer.models import KubernetesObject, Model, ResourceInfo, encode, from_dict, from_json
from trioformer.models.core_v1 import Container, Pod, PodSpec


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Backend(Model):
    """A part of a custom kind."""

    port: int = 80


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Route(KubernetesObject):
    """A custom kind with parts of each form."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="example.com", version="v1", kind="Route", plural="routes", namespaced=True
    )

    status: Backend | None = None
    steps: tuple[Backend, ...] = ()
    by_name: Mapping[str, Backend] = attrs.field(factory=dict)


BACKEND = "write Backend(...) or from_dict(Backend, ...)"


@pytest.mark.parametrize(
    ("cls", "given", "text"),
    [
        (Pod, {"metadata": {"name": "x"}}, "Pod.metadata must be an ObjectMeta, not a dict; write ObjectMeta(...) or"),
        (PodSpec, {"containers": [Container(name="a"), {"name": "c"}]}, "PodSpec.containers[1] must be a Container,"),
        (PodSpec, {"containers": Container(name="a")}, "PodSpec.containers must be a tuple, not a Container; write"),
        (Route, {"status": {"port": 1}}, f"Route.status must be a Backend, not a dict; {BACKEND}"),
        (Route, {"steps": ({"port": 1},)}, f"Route.steps[0] must be a Backend, not a dict; {BACKEND}"),
        (Pod, {"metadata": None}, "Pod.metadata must be an ObjectMeta, not None; write ObjectMeta(...)"),
        (Route, {"steps": [None]}, "Route.steps[0] must be a Backend, not None; write Backend(...)"),
        (Route, {"by_name": {"a": {"port": 1}}}, "each value of Route.by_name must be a Backend, not a dict;"),
        (Route, {"by_name": [Backend()]}, "Route.by_name must be a mapping, not a list; write {key: Backend(...)}"),
    ],
)
def test_a_part_that_is_no_model_is_refused_when_the_object_is_made(
    cls: type[Model], given: dict[str, Any], text: str
) -> None:
    with pytest.raises(TypeError, match="^" + re.escape(text)):
        cls(**given)


def test_a_changed_object_is_checked_like_a_new_one() -> None:
    decoded = from_json(Route, b'{"status":{"port":1}}')
    given: Any = {"port": 2}
    with pytest.raises(TypeError, match=r"^Route\.status must be a Backend, not a dict; write Backend"):
        decoded.evolve(status=given)
    given = None
    with pytest.raises(TypeError, match=r"^Pod\.metadata must be an ObjectMeta, not None"):
        Pod().evolve(metadata=given)


def test_parts_that_are_models_are_taken_in_each_form() -> None:
    given: Any = [Backend(port=1), from_dict(Backend, {"port": 2})]
    route = Route(status=Backend(), steps=given, by_name={"a": Backend(port=3)})
    assert encode(route).endswith(b'"status":{},"steps":[{"port":1},{"port":2}],"byName":{"a":{"port":3}}}')


def test_none_still_removes_a_part() -> None:
    nothing: Any = None
    changed = from_json(Route, b'{"status":{"port":1},"steps":[]}').evolve(status=None, steps=nothing)
    assert encode(changed) == b"{}"


def test_a_class_with_a_part_that_is_defined_later_can_make_objects_before() -> None:
    @attrs.frozen(kw_only=True, eq=False, repr=False)
    class Early(Model):
        port: int = 0
        later: NotDefinedYet | None = None  # type: ignore[name-defined]  # noqa: F821  # the point of the test

    assert Early(port=1).port == 1
