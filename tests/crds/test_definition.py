"""``crd_of``: the versions of a kind, its names, subresources, columns and selectable fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import pytest

from trioformer.crds import PrinterColumn, Rule, ScaleSubresource, Schema, crd_of, custom_resource, resource_part
from trioformer.crds._definition import crds_of
from trioformer.errors import SchemaError
from trioformer.models import JSON, FrozenMap, KubernetesObject, Model, Time, to_dict
from trioformer.models.apiextensions_v1 import CustomResourceConversion
from trioformer.models.apps_v1 import Deployment

RULE = Rule("self.minimum <= self.maximum", message="wrong", reason="FieldValueForbidden", field_path=".maximum")


@resource_part(rules=(RULE,), map_type="atomic", min_properties=1, max_properties=4, more={"title": "Range"})
class Range(Model):
    minimum: int | None = None
    maximum: int | None = None


@resource_part(preserve_unknown_fields=True)
class ShopSpec(Model):
    host: Annotated[str, Schema(max_length=253)]
    replicas: int = 1
    range: Range | None = None
    flags: Mapping[str, bool] = FrozenMap()
    open: bool | None = None


@resource_part()
class ShopStatus(Model):
    replicas: int = 0
    selector: str | None = None
    seen_at: Time | None = None


@custom_resource(
    "shops.example.com/v1",
    short_names=("sh",),
    categories=("all",),
    scale=ScaleSubresource(label_selector=".status.selector"),
    printer_columns=(
        PrinterColumn("Host", ".spec.host"),
        PrinterColumn("Replicas", ".spec.replicas", priority=1, description="How many."),
        PrinterColumn("Open", ".spec.open"),
        PrinterColumn("Seen", ".status.seenAt"),
        PrinterColumn("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn("Flags", ".spec.flags"),
        PrinterColumn("Any", ".spec.unknown.member", type="number", format="double"),
        PrinterColumn("Age", ".metadata.creationTimestamp"),
    ),
    selectable_fields=(".spec.host", ".spec.open"),
    rules=(Rule("self.metadata.name.size() < 10"),),
    stored=True,
)
class Shop(KubernetesObject):
    """A shop."""

    spec: ShopSpec
    status: ShopStatus | None = None


@custom_resource(
    "shops.example.com/v1beta1",
    kind="Shop",
    short_names=("sh",),
    categories=("all",),
    stored=False,
    served=False,
    deprecated="use v1",
)
class ShopV1Beta1(KubernetesObject):
    spec: ShopSpec


def version_of(cls: type[KubernetesObject]) -> dict[str, Any]:
    found: dict[str, Any] = to_dict(crd_of(cls))["spec"]["versions"][0]
    return found


def test_a_definition_has_the_names_and_the_scope_of_its_kind() -> None:
    definition = to_dict(crd_of(Shop))
    assert definition["metadata"] == {"name": "shops.shops.example.com"}
    assert {name: value for name, value in definition["spec"].items() if name != "versions"} == {
        "group": "shops.example.com",
        "scope": "Namespaced",
        "names": {
            "kind": "Shop",
            "listKind": "ShopList",
            "plural": "shops",
            "singular": "shop",
            "shortNames": ["sh"],
            "categories": ["all"],
        },
    }


def test_a_version_has_what_its_decorator_states() -> None:
    version = version_of(Shop)
    schema = version.pop("schema")["openAPIV3Schema"]
    assert version == {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "selectableFields": [{"jsonPath": ".spec.host"}, {"jsonPath": ".spec.open"}],
        "additionalPrinterColumns": [
            {"name": "Host", "type": "string", "jsonPath": ".spec.host"},
            {
                "name": "Replicas",
                "type": "integer",
                "jsonPath": ".spec.replicas",
                "description": "How many.",
                "priority": 1,
            },
            {"name": "Open", "type": "boolean", "jsonPath": ".spec.open"},
            {"name": "Seen", "type": "date", "jsonPath": ".status.seenAt"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
            {"name": "Flags", "type": "string", "jsonPath": ".spec.flags"},
            {"name": "Any", "type": "number", "jsonPath": ".spec.unknown.member", "format": "double"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert schema["description"] == "A shop."
    assert schema["required"] == ["spec"]
    assert schema["x-kubernetes-validations"] == [{"rule": "self.metadata.name.size() < 10"}]


def test_a_part_has_what_its_decorator_says_wherever_it_is() -> None:
    spec = version_of(Shop)["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["x-kubernetes-preserve-unknown-fields"] is True
    assert spec["properties"]["range"] == {
        "type": "object",
        "properties": {
            "minimum": {"type": "integer", "format": "int64"},
            "maximum": {"type": "integer", "format": "int64"},
        },
        "minProperties": 1,
        "maxProperties": 4,
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [
            {
                "rule": "self.minimum <= self.maximum",
                "message": "wrong",
                "reason": "FieldValueForbidden",
                "fieldPath": ".maximum",
            }
        ],
        "title": "Range",
    }


def test_several_versions_are_one_definition_of_which_one_is_stored() -> None:
    conversion = CustomResourceConversion(strategy="None")
    spec = to_dict(crd_of(Shop, ShopV1Beta1, conversion=conversion))["spec"]
    found = [(each["name"], each["served"], each["storage"]) for each in spec["versions"]]
    assert found == [("v1", True, True), ("v1beta1", False, False)]
    assert spec["versions"][1]["deprecated"] is True
    assert spec["versions"][1]["deprecationWarning"] == "use v1"
    assert spec["conversion"] == {"strategy": "None"}


@custom_resource("example.com/v1", namespaced=False)
class Zone(KubernetesObject):
    pass


def test_kinds_are_grouped_by_their_name_and_group() -> None:
    shops, zones = crds_of(ShopV1Beta1, Zone, Shop)
    assert [version.name for version in shops.spec.versions] == ["v1beta1", "v1"]
    assert (zones.name, zones.spec.scope) == ("zones.example.com", "Cluster")
    assert zones.spec.versions[0].storage is True
    assert crds_of() == ()


# --- what makes no definition -----------------------------------------------------------------------------------------


def other(**given: Any) -> type[KubernetesObject]:
    """Make a version of the kind of Shop that differs."""
    defaults: dict[str, Any] = {"short_names": ("sh",), "categories": ("all",)}
    api_version = given.pop("api_version", "shops.example.com/v2")

    @custom_resource(api_version, **{"kind": "Shop", **defaults, **given})
    class Other(KubernetesObject):
        spec: ShopSpec
        status: ShopStatus | None = None

    return Other


class Subclass(Shop):
    pass


@pytest.mark.parametrize(
    ("classes", "problem"),
    [
        ((Subclass,), "Subclass: it does not define a custom resource; decorate it with @custom_resource"),
        ((Shop, Shop), "Shop: Shop also has the version v1"),
        ((Shop, Zone), "Zone: group is 'example.com', but Shop has 'shops.example.com'"),
        ((Shop, other(kind="Stall", plural="shops")), "Other: kind is 'Stall'"),
        ((Shop, other(namespaced=False)), "Other: namespaced is False"),
        ((Shop, other(stored=True)), "must be stored, not Shop and Other"),
        ((ShopV1Beta1,), "must be stored, not none"),
        ((other(), ShopV1Beta1), "must be stored, not none"),
        ((other(selectable_fields=(".spec.nope",)),), "a selectable field: '.spec.nope' is not a string, an integer"),
        ((other(selectable_fields=(".status.nope",)),), "a selectable field: '.status.nope' is not a field of the"),
        ((other(selectable_fields=("spec.host",)),), "a selectable field: 'spec.host' is not a JSON path of names"),
        ((other(selectable_fields=(".spec.host",) * 9),), "9 selectable fields"),
        ((other(printer_columns=(PrinterColumn("A", "spec"),)),), "the column A: 'spec' is not a JSON path such as"),
        ((other(printer_columns=(PrinterColumn("A", ".status.no"),)),), "the column A: '.status.no' is not a field of"),
        ((other(printer_columns=("A",)),), "a column must be a PrinterColumn, not a str"),
        ((other(scale=ScaleSubresource(spec_replicas=".spec.host")),), "the specReplicasPath of its scale:"),
        ((other(scale=ScaleSubresource(status_replicas=".spec.replicas")),), "the statusReplicasPath of its scale:"),
        ((other(scale=ScaleSubresource(label_selector=".status.no")),), "the labelSelectorPath of its scale:"),
    ],
)
def test_classes_without_a_definition_are_an_error_that_names_the_class(
    classes: tuple[type[KubernetesObject], ...], problem: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        crd_of(*classes)
    assert problem in str(caught.value)
    assert caught.value.field is None
    assert caught.value.file is not None
    assert f"{caught.value.file}:{caught.value.line}: " in str(caught.value)


def test_a_definition_needs_a_class() -> None:
    with pytest.raises(ValueError, match=r"at least one version"):
        crd_of()
    with pytest.raises(SchemaError, match=r"^Deployment: it does not define a custom resource; decorate it with"):
        crd_of(Deployment)
    with pytest.raises(TypeError, match=r"^'Shop': it does not define a custom resource"):
        crd_of("Shop")  # type: ignore[arg-type]  # the mistake that is tested


@custom_resource("example.com/v1")
class Free(KubernetesObject):
    spec: JSON = None


def test_what_is_below_free_form_json_may_be_a_column() -> None:
    kind = custom_resource("example.com/v1", printer_columns=(PrinterColumn("A", ".spec.a.b"),))(Free)
    assert version_of(kind)["additionalPrinterColumns"] == [{"name": "A", "type": "string", "jsonPath": ".spec.a.b"}]
