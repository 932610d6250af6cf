"""Objects with a field that is newer than the table of types: what is compared, and which requests are refused."""

from __future__ import annotations

import pytest

from tests.support.messages import model_of
from trioformer.models import extract, merge_patch
from trioformer.models._internal import encode_request, tagged
from trioformer.models._meta import ManagedFieldsEntry
from trioformer.models._protobuf._encode import to_message
from trioformer.models._protobuf._heads import MAGIC
from trioformer.models._protobuf._tables import find_type
from trioformer.models.core_v1 import Pod

NEWER = 1000
"""The number of a field of Container that the table does not have."""


def pod(value: bytes, image: str = "nginx") -> Pod:
    """Return a pod whose container has a newer field."""
    metadata, container = find_type("meta_v1", "ObjectMeta"), find_type("core_v1", "Container")
    assert metadata is not None
    assert container is not None
    whole = to_message({"name": "c", "image": image}, container) + tagged(NEWER, value)
    name = to_message({"name": "web", "namespace": "default"}, metadata)
    return model_of(Pod, tagged(1, name) + tagged(2, tagged(2, whole)))


def with_image(old: Pod, image: str) -> Pod:
    (container,) = old.spec.containers
    return old.evolve(spec=old.spec.evolve(containers=(container.evolve(image=image),)))


def test_a_change_of_a_newer_field_is_a_change() -> None:
    assert pod(b"one").spec != pod(b"two").spec
    assert pod(b"one") != pod(b"two")
    assert pod(b"one").spec == pod(b"one").spec


def test_a_patch_that_replaces_a_list_with_newer_fields_is_refused() -> None:
    old = pod(b"one")
    with pytest.raises(ValueError, match=r"get\(\)"):
        merge_patch(old, with_image(old, "httpd"))
    labeled = old.evolve(metadata=old.metadata.evolve(labels={"a": "b"}))
    assert merge_patch(old, labeled) == {"metadata": {"labels": {"a": "b"}}}


def test_fields_that_a_manager_applied_are_not_extracted_without_newer_fields() -> None:
    entry = ManagedFieldsEntry(manager="m", operation="Apply", fields_v1={"f:spec": {}})
    old = pod(b"one")
    with pytest.raises(ValueError, match="newer"):
        extract(old.evolve(metadata=old.metadata.evolve(managed_fields=(entry,))), field_manager="m")


def test_an_empty_newer_field_is_kept_in_a_put_and_stops_no_other_request() -> None:
    old = pod(b"")
    assert encode_request(old).startswith(MAGIC)
    assert encode_request(old, is_applied=True).startswith(b"{")
    assert "spec" in merge_patch(old, with_image(old, "httpd"))
