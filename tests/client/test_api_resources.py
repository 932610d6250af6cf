"""The names of resources: which one kubectl's RESTMapper would choose."""

from __future__ import annotations

import pytest

from trioformer.client._api_resources import ApiResources, ResourceName, find_builtin
from trioformer.models import ResourceInfo
from trioformer.models._kinds import builtin_resources


def resource(plural: str, api_version: str, kind: str, *short_names: str) -> ResourceInfo:
    group, _, version = api_version.rpartition("/")
    return ResourceInfo(
        group=group, version=version, kind=kind, plural=plural, namespaced=True, short_names=short_names
    )


SERVED = ApiResources(
    resources=(
        resource("pods", "v1", "Pod", "po"),
        resource("events", "v1", "Event", "ev"),
        resource("deployments", "apps/v1", "Deployment", "deploy"),
        resource("events", "events.k8s.io/v1", "Event", "ev"),
        resource("leases", "coordination.k8s.io/v1", "Lease"),
        resource("widgets", "example.com/v2", "Widget", "w", "po"),
        resource("deploy", "odd.example.com/v1", "DeployTask"),
        resource("gadgets", "other.example.com/v1", "Gadget"),
        resource("mics", "apps.example.com/v1", "Mic"),
        resource("mics", "apps/v1", "Mic"),
        # Versions that are not preferred come after all that are.
        resource("widgets", "example.com/v1", "Widget", "w"),
        resource("gadgets", "example.com/v1beta1", "Gadget"),
        resource("things", "v1.example.com/v1", "Thing"),
        resource("things", "example.com/v1", "Thing"),
    )
)


def test_a_name_means_what_it_means_for_kubectl() -> None:
    for name, found in [
        ("pod", "pods v1"),
        ("Pod", "pods v1"),
        ("PODS", "pods v1"),
        ("po", "pods v1"),
        ("pods.v1.", "pods v1"),
        ("ev", "events v1"),
        ("deployments", "deployments apps/v1"),
        ("Deployment.v1.apps", "deployments apps/v1"),
        ("deploy", "deploy odd.example.com/v1"),
        ("leases.coordination", "leases coordination.k8s.io/v1"),
        ("Lease.coordination.k8s.io", "leases coordination.k8s.io/v1"),
        ("mics", "mics apps.example.com/v1"),
        ("mics.apps", "mics apps/v1"),
        ("widgets", "widgets example.com/v2"),
        ("widgets.v1.example.com", "widgets example.com/v1"),
        ("w.v1.example", "widgets example.com/v1"),
        ("gadgets", "gadgets other.example.com/v1"),
        ("things.v1.example.com", "things example.com/v1"),
        ("things.v1.example.com.", None),
        ("widgets.v3.example.com", None),
        ("pods.apps", None),
    ]:
        if name.endswith("com."):
            with pytest.raises(ValueError, match="the name of a kind must be one that kubectl accepts"):
                SERVED.find(name)
            return
        info = SERVED.find(name)
        assert (info and f"{info.plural} {info.api_version}") == found


def test_what_can_be_no_name_is_refused_with_a_hint() -> None:
    for name in ["", "apps/v1", "pods..", "größe", "a" * 64]:
        with pytest.raises(
            ValueError, match=r"^the name of a kind must be one that kubectl accepts, such as .*, not .*; for an apiV"
        ):
            ResourceName.parse(name)
    with pytest.raises(TypeError):
        SERVED.find(3)  # type: ignore[arg-type]  # the mistake


def test_resources_are_iterated_once_each_in_their_preferred_version() -> None:
    found = [f"{info.plural}.{info.group} {info.version}" for info in SERVED]
    assert found.count("widgets.example.com v2") == 1
    assert "widgets.example.com v1" not in found
    assert "gadgets.example.com v1beta1" in found
    assert len(SERVED) == len(found) == len(SERVED.resources) - 1
    assert repr(SERVED) == "<ApiResources: 13>"
    failed = ApiResources(resources=(), failures={"metrics.k8s.io/v1beta1": "down"})
    assert repr(failed) == "<ApiResources: 0, without metrics.k8s.io/v1beta1>"


def test_built_in_kinds_are_found_in_the_version_that_a_server_prefers() -> None:
    for name, api_version in [
        ("ev", "v1"),
        ("hpa", "autoscaling/v2"),
        ("servicecidr", "networking.k8s.io/v1"),
        ("ServiceCIDR.v1beta1.networking.k8s.io", "networking.k8s.io/v1beta1"),
        ("LeaseCandidate", "coordination.k8s.io/v1beta1"),
        ("resourceclaims", "resource.k8s.io/v1"),
    ]:
        info = find_builtin(ResourceName.parse(name))
        assert info is not None
        assert info.api_version == api_version


def test_no_two_groups_of_built_in_kinds_but_events_share_a_name() -> None:
    groups: dict[str, set[str]] = {}
    for info in builtin_resources(beta=True):
        for name in (info.plural, info.singular, info.kind.lower(), *info.short_names):
            groups.setdefault(name, set()).add(info.group)
    assert {name for name, found in groups.items() if len(found) > 1} == {"ev", "event", "events"}
