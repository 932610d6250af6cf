"""Random classes: a real server accepts their definitions, and stores and refuses objects as the class says."""

from __future__ import annotations

import pytest
import trio
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.random_kinds import RandomKind, kinds, view
from trioformer import Client, open_client
from trioformer.crds import install_crds
from trioformer.errors import InvalidError
from trioformer.models import KubernetesObject, from_dict, to_dict
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.testing import ControlPlane


async def check(control_plane: ControlPlane, drawn: list[RandomKind]) -> None:
    with trio.fail_after(120):
        async with open_client(kubeconfig=control_plane.kubeconfig) as client:
            definitions = await install_crds(client, *(each.kind for each in drawn))
            async with trio.open_nursery() as nursery:
                for each in drawn:
                    nursery.start_soon(check_objects, client, each)
            for definition in definitions:
                await client.api(CustomResourceDefinition).delete(definition.name)


async def check_objects(client: Client, drawn: RandomKind) -> None:
    things = client.api(drawn.kind, namespace="default")
    for sent in drawn.objects:
        stored = await things.create(sent)
        assert spec_of(stored) == spec_of(sent)
        assert spec_of(await things.get(sent)) == spec_of(sent)
    good = to_dict(drawn.objects[0])["spec"]
    for index, wrong in enumerate(drawn.wrong):
        bad = from_dict(drawn.kind, {"metadata": {"name": f"wrong-{index}"}, "spec": {**good, **wrong}})
        with pytest.raises(InvalidError):
            await things.create(bad)


def spec_of(obj: KubernetesObject) -> object:
    return view(getattr(obj, "spec"))  # noqa: B009  # the class is drawn


IS_LONG = settings.get_current_profile_name() == "long"


def test_a_server_stores_and_refuses_objects_as_a_random_class_says(control_plane: ControlPlane) -> None:
    @given(st.lists(kinds(), min_size=8, max_size=8))
    @settings(max_examples=100 if IS_LONG else 10, phases=(Phase.generate,))  # to shrink takes minutes
    def check_kinds(drawn: list[RandomKind]) -> None:
        trio.run(check, control_plane, drawn)

    check_kinds()
