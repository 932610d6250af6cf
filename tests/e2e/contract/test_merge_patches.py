"""Merge patches of random values: the server makes of the old one what the patch was made for."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from tests.e2e.contract.custom_kinds import serve_kind
from tests.e2e.contract.drawn import drawn
from trioformer.client import Client
from trioformer.models import from_dict, json_equal, merge_patch, to_dict
from trioformer.models.core_v1 import ConfigMap

PAIRS: Final = 60
"""Pairs of values that one test sends; each is three requests."""

KEYS = st.sampled_from(["a", "b", "c", "x.y", "é", "~/"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.sampled_from([0.5, -2.25, 1e-7]) | st.text(max_size=4)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=15
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
DATA = st.dictionaries(st.sampled_from(["a", "b", "c.d", "E"]), st.text(max_size=5), max_size=4)


def _without_nulls(value: Any) -> Any:
    """Remove the null members of objects, which a server removes of what comes in a merge patch."""
    if isinstance(value, dict):
        return {key: _without_nulls(member) for key, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


async def test_the_data_of_a_config_map_becomes_that_of_the_new_one(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    for number, (before, after) in enumerate(drawn(st.tuples(DATA, DATA), PAIRS)):
        metadata = {"name": f"c{number}", "namespace": namespace, "labels": {key[0]: "x" for key in before}}
        old = await api.create(from_dict(ConfigMap, {"metadata": metadata, "data": before}))
        labels = {key[0]: "y" for key in after}
        new = from_dict(
            ConfigMap, {**to_dict(old), "metadata": {**to_dict(old.metadata), "labels": labels}, "data": after}
        )
        stored = await api.update(old, new)
        assert (stored.data, stored.metadata.labels) == (after, labels), merge_patch(old, new)


async def test_free_form_values_become_the_new_ones(server_client: Client, namespace: str) -> None:
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    async with serve_kind(server_client, {"type": "object", "properties": {"spec": spec}}) as widget:
        api = server_client.api(widget, namespace)
        for number, (before, after) in enumerate(drawn(st.tuples(OBJECTS, OBJECTS), PAIRS)):
            old = await api.create(widget.of({"metadata": {"name": f"w{number}"}, "spec": before}))
            was = to_dict(old).get("spec", {})
            patch = merge_patch({"spec": was}, {"spec": after})
            stored = to_dict(await api.patch(old.name, patch)).get("spec", {}) if patch else was
            # What is null in the new one alone is absent; what is null in both is not touched.
            assert json_equal(_without_nulls(stored), _without_nulls(after)), (was, after, patch, stored)
