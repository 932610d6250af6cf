"""What kube-apiserver stores after a read, a change and a write is what a JSON client would have stored."""

from __future__ import annotations

import itertools

import hypothesis
import trio
from hypothesis import strategies as st

from tests.support.read_modify_write import DEFINITION, read_modify_write
from trioformer import Client, has_condition, load_config, open_client, wait_for
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.testing import ControlPlane

IS_LONG = hypothesis.settings.get_current_profile_name() == "long"
numbers = itertools.count()


async def install(client: Client) -> None:
    """Create the kind, and wait until it is served."""
    definitions = client.api(CustomResourceDefinition)
    await definitions.create(DEFINITION)
    await wait_for(definitions, DEFINITION.name, has_condition("Established"))


def test_kube_apiserver_stores_what_a_json_client_would_have_stored(control_plane: ControlPlane) -> None:
    config = load_config(kubeconfig=control_plane.kubeconfig)

    async def in_client(data: st.DataObject | None) -> None:
        async with open_client(config) as client:
            if data is None:
                await install(client)
            else:
                await read_modify_write(client, f"record-{next(numbers)}", data.draw)

    @hypothesis.settings(max_examples=1_000 if IS_LONG else 100)
    @hypothesis.given(st.data())
    def check(data: st.DataObject) -> None:
        trio.run(in_client, data)

    trio.run(in_client, None)
    check()
