"""Describes volumes, claims and classes of storage (kubectl ``pkg/describe/describe.go``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .._clock import age_of
from ..printing import sprint
from ._describe_related import Objects, Related
from ._describe_text import Description, as_int, at, boolean, pairs_text, rfc1123

__all__ = ["STORAGE", "describe_claim_templates", "volume_lines"]

_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_LONGEST: Final = 140
_INDENT: Final = "    "
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def volume_lines(volume: Mapping[str, Any]) -> list[str]:
    """Return the lines below the name of a volume; its source is the only key that is no name."""
    for kind, lines_of in _SOURCES.items():
        if (source := volume.get(kind)) is not None:
            return lines_of(source)
    kinds = [key for key in volume if key != "name"]
    return [f"Type:\t{kinds[0][0].upper()}{kinds[0][1:]}"] if kinds else ["<unknown>"]


def _flag(value: object) -> str:
    return str(bool(value)).lower()


def _host_path(source: Mapping[str, Any]) -> list[str]:
    lines = ["Type:\tHostPath (bare host directory volume)", f"Path:\t{source.get('path') or ''}"]
    return [*lines, f"HostPathType:\t{source.get('type', '<none>')}"]


def _empty_dir(source: Mapping[str, Any]) -> list[str]:
    return [
        "Type:\tEmptyDir (a temporary directory that shares a pod's lifetime)",
        f"Medium:\t{source.get('medium') or ''}",
        f"SizeLimit:\t{source.get('sizeLimit') or '<unset>'}",
    ]


def _secret(source: Mapping[str, Any]) -> list[str]:
    lines = ["Type:\tSecret (a volume populated by a Secret)", f"SecretName:\t{source.get('secretName') or ''}"]
    return [*lines, f"Optional:\t{_flag(source.get('optional'))}"]


def _config_map(source: Mapping[str, Any]) -> list[str]:
    lines = ["Type:\tConfigMap (a volume populated by a ConfigMap)", f"Name:\t{source.get('name') or ''}"]
    return [*lines, f"Optional:\t{_flag(source.get('optional'))}"]


def _claim(source: Mapping[str, Any]) -> list[str]:
    return [
        "Type:\tPersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        f"ClaimName:\t{source.get('claimName') or ''}",
        f"ReadOnly:\t{_flag(source.get('readOnly'))}",
    ]


def _projected(source: Mapping[str, Any]) -> list[str]:
    lines = ["Type:\tProjected (a volume that contains injected data from multiple sources)"]
    for each in source.get("sources") or []:
        for kind, name in (("secret", "SecretName"), ("configMap", "ConfigMapName")):
            if (one := each.get(kind)) is not None:
                lines += [f"{name}:\t{one.get('name') or ''}", f"Optional:\t{_flag(one.get('optional'))}"]
        if each.get("downwardAPI") is not None:
            lines.append("DownwardAPI:\ttrue")
        if (token := each.get("serviceAccountToken")) is not None:
            lines.append(f"TokenExpirationSeconds:\t{token.get('expirationSeconds', 3600)}")
    return lines


def _downward(source: Mapping[str, Any]) -> list[str]:
    lines = ["Type:\tDownwardAPI (a volume populated by information about the pod)", "Items:"]
    for item in source.get("items") or []:
        if field := item.get("fieldRef"):
            lines.append(f"  {field.get('fieldPath')} -> {item.get('path')}")
        if amount := item.get("resourceFieldRef"):
            lines.append(f"  {amount.get('resource')} -> {item.get('path')}")
    return lines


def _nfs(source: Mapping[str, Any]) -> list[str]:
    return [
        "Type:\tNFS (an NFS mount that lasts the lifetime of a pod)",
        f"Server:\t{source.get('server') or ''}",
        f"Path:\t{source.get('path') or ''}",
        f"ReadOnly:\t{_flag(source.get('readOnly'))}",
    ]


def _csi(source: Mapping[str, Any]) -> list[str]:
    lines = [
        "Type:\tCSI (a Container Storage Interface (CSI) volume source)",
        f"Driver:\t{source.get('driver') or ''}",
        f"FSType:\t{source.get('fsType') or ''}",
    ]
    if "volumeHandle" in source:  # of a PersistentVolume
        lines.append(f"VolumeHandle:\t{source['volumeHandle']}")
    lines.append(f"ReadOnly:\t{_flag(source.get('readOnly'))}")
    attributes = source.get("volumeAttributes") or {}
    texts = [f"{key}={attributes[key]}" for key in sorted(attributes)] or ["<none>"]
    texts = [text[:_LONGEST] + "..." if len(text) > _LONGEST else text for text in texts]
    # kubectl indents the values, too.
    return [*lines, f"VolumeAttributes:\t{_INDENT}{texts[0]}", *(f"{_INDENT}\t{_INDENT}{text}" for text in texts[1:])]


def _ephemeral(source: Mapping[str, Any]) -> list[str]:
    lines = ["Type:\tEphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)"]
    if (template := source.get("volumeClaimTemplate")) is None:
        return lines
    text = Description()
    _claim_fields(text, template, is_whole=False)
    for line in text.lines():
        name, tab, value = line.partition("\t")
        # kubectl indents the values of several lines, too.
        is_list = name in ("Labels:", "Annotations:", "")
        lines.append(f"{name or _INDENT}\t{_INDENT}{value}" if is_list else f"{name}{tab}{value}")
    return lines


_SOURCES: Final[Mapping[str, Callable[[Mapping[str, Any]], list[str]]]] = {
    "hostPath": _host_path,
    "emptyDir": _empty_dir,
    "secret": _secret,
    "configMap": _config_map,
    "nfs": _nfs,
    "persistentVolumeClaim": _claim,
    "ephemeral": _ephemeral,
    "downwardAPI": _downward,
    "projected": _projected,
    "csi": _csi,
    "local": lambda source: [
        "Type:\tLocalVolume (a persistent volume backed by local storage on a node)",
        f"Path:\t{source.get('path') or ''}",
    ],
    "image": lambda source: [
        "Type:\tImage (a container image or OCI artifact)",
        f"Reference:\t{source.get('reference') or ''}",
        f"PullPolicy:\t{source.get('pullPolicy') or ''}",
    ],
}
_NO_SOURCES: Final = frozenset(
    (
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    )
)
"""The fields of a PersistentVolume beside its source."""


def _class_of(obj: Mapping[str, Any]) -> str:
    annotations = at(obj, "metadata", "annotations") or {}
    return str(annotations[_CLASS] if _CLASS in annotations else at(obj, "spec", "storageClassName") or "")


def _modes(modes: object) -> str:
    given = modes if isinstance(modes, list) else []
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def _phase(obj: Mapping[str, Any]) -> str:
    if deleted := at(obj, "metadata", "deletionTimestamp"):
        return f"Terminating (lasts {age_of(deleted)})"
    return str(at(obj, "status", "phase") or "")


def _volume(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    spec = obj.get("spec") or {}
    text.head(obj, with_namespace=False)
    text.field("Finalizers", sprint(at(obj, "metadata", "finalizers") or []))
    text.field("StorageClass", _class_of(obj))
    text.field("Status", _phase(obj))
    claim = spec.get("claimRef")
    text.field("Claim", f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else "")
    text.field("Reclaim Policy", spec.get("persistentVolumeReclaimPolicy") or "")
    text.field("Access Modes", _modes(spec.get("accessModes")))
    text.optional("VolumeMode", spec.get("volumeMode"))
    text.field("Capacity", at(spec, "capacity", "storage") or "0")
    _node_affinity(text, spec.get("nodeAffinity"))
    text.field("Message", at(obj, "status", "message") or "")
    text.line(0, "Source:")
    for line in volume_lines({key: value for key, value in spec.items() if key not in _NO_SOURCES}):
        text.line(1 if line == "<unknown>" else 2, line)
    text.events(events)
    return text.render()


def _node_affinity(text: Description, affinity: object) -> None:
    required = at(affinity, "required")
    if required is None:
        text.field("Node Affinity", "<none>")
        return
    text.field("Node Affinity", "")
    terms = required.get("nodeSelectorTerms") or []
    text.field("Required Terms", "" if terms else "<none>", 1)
    for index, term in enumerate(terms):
        texts = []
        for each in term.get("matchExpressions") or []:
            values = f" [{', '.join(each['values'])}]" if each.get("values") else ""
            texts.append(f"{each.get('key')} {str(each.get('operator')).lower()}{values}")
        text.field(f"Term {index}", texts[0] if texts else "<none>", 2)
        for one in texts[1:]:
            text.line(2, f"\t{one}")


def _volume_claim(obj: Mapping[str, Any], events: Objects | None, related: Related) -> str:
    text = Description()
    _claim_fields(text, obj, is_whole=True)
    text.many("Used By", sorted(str(at(pod, "metadata", "name")) for pod in related.get("pods") or ()))
    if conditions := at(obj, "status", "conditions"):
        text.line(0, "Conditions:")
        text.line(1, "Type\tStatus\tLastProbeTime\tLastTransitionTime\tReason\tMessage")
        text.line(1, "----\t------\t-----------------\t------------------\t------\t-------")
        for each in conditions:
            times = "\t".join(f"{rfc1123(each.get(key))} " for key in ("lastProbeTime", "lastTransitionTime"))
            head = f"{each.get('type')} \t{each.get('status')} \t{times}"
            text.line(1, f"{head}\t{each.get('reason') or ''} \t{each.get('message') or ''}")
    text.events(events)
    return text.render()


def _claim_fields(text: Description, obj: Mapping[str, Any], *, is_whole: bool) -> None:
    spec = obj.get("spec") or {}
    if is_whole:
        text.field("Name", at(obj, "metadata", "name"))
        text.field("Namespace", at(obj, "metadata", "namespace") or "")
    text.field("StorageClass", _class_of(obj))
    if is_whole:
        text.field("Status", _phase(obj))
    text.field("Volume", spec.get("volumeName") or "")
    text.labels("Labels", at(obj, "metadata", "labels"))
    text.annotations(at(obj, "metadata", "annotations"))
    if is_whole:
        text.field("Finalizers", sprint(at(obj, "metadata", "finalizers") or []))
    is_bound = bool(spec.get("volumeName"))
    text.field("Capacity", (at(obj, "status", "capacity", "storage") or "0") if is_bound else "")
    text.field("Access Modes", _modes(at(obj, "status", "accessModes")) if is_bound else "")
    text.optional("VolumeMode", spec.get("volumeMode"))
    if (source := spec.get("dataSource")) is not None:
        text.line(0, "DataSource:")
        text.optional("APIGroup", source.get("apiGroup"), 1)
        text.field("Kind", source.get("kind") or "", 1)
        text.field("Name", source.get("name") or "", 1)


def describe_claim_templates(text: Description, templates: object) -> None:
    """Add the templates of the claims of a StatefulSet."""
    if not isinstance(templates, list) or not templates:
        text.field("Volume Claims", "<none>")
        return
    text.line(0, "Volume Claims:")
    for each in templates:
        text.field("Name", at(each, "metadata", "name"), 1)
        text.field("StorageClass", _class_of(each), 1)
        text.labels("Labels", at(each, "metadata", "labels"), 1)
        text.labels("Annotations", at(each, "metadata", "annotations"), 1)
        text.field("Capacity", at(each, "spec", "resources", "requests", "storage") or "<default>", 1)
        text.field("Access Modes", sprint(at(each, "spec", "accessModes") or []), 1)


def _storage_class(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    annotations = at(obj, "metadata", "annotations") or {}
    text.field("Name", at(obj, "metadata", "name"))
    text.field("IsDefaultClass", "Yes" if any(annotations.get(key) == "true" for key in _DEFAULT_CLASS) else "No")
    text.field("Annotations", pairs_text(annotations))
    text.field("Provisioner", obj.get("provisioner") or "")
    text.field("Parameters", pairs_text(obj.get("parameters")))
    text.field("AllowVolumeExpansion", boolean(obj.get("allowVolumeExpansion")))
    options = obj.get("mountOptions") or []
    text.line(0, "MountOptions:" if options else "MountOptions:\t<none>")
    for option in options:
        text.line(1, option)
    text.optional("ReclaimPolicy", obj.get("reclaimPolicy"))
    text.optional("VolumeBindingMode", obj.get("volumeBindingMode"))
    if (topologies := obj.get("allowedTopologies")) is not None:
        text.field("AllowedTopologies", "" if topologies else "<none>")
        for index, term in enumerate(topologies):
            labels = term.get("matchLabelExpressions") or []
            texts = [f"{each.get('key')} in [{', '.join(each.get('values') or [])}]" for each in labels]
            text.field(f"Term {index}", texts[0] if texts else "<none>", 1)
            for one in texts[1:]:
                text.line(1, f"\t{one}")
    text.events(events)
    return text.render()


def _attributes_class(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    text.field("Name", at(obj, "metadata", "name"))
    text.field("Annotations", pairs_text(at(obj, "metadata", "annotations")))
    text.field("DriverName", obj.get("driverName") or "")
    text.field("Parameters", pairs_text(obj.get("parameters")))
    text.events(events)
    return text.render()


def _csi_node(obj: Mapping[str, Any], events: Objects | None, _: Related) -> str:
    text = Description()
    text.head(obj, with_namespace=False)
    text.field("CreationTimestamp", rfc1123(at(obj, "metadata", "creationTimestamp")))
    text.line(0, "Spec:")
    if (drivers := at(obj, "spec", "drivers")) is not None:
        text.line(1, "Drivers:")
        for driver in drivers:
            text.line(2, f"{driver.get('name')}:")
            text.field("Node ID", driver.get("nodeID") or "", 3)
            if (count := at(driver, "allocatable", "count")) is not None:
                text.line(3, "Allocatables:")
                text.field("Count", as_int(count), 4)
            text.optional("Topology Keys", driver.get("topologyKeys"), 3)
    text.events(events)
    return text.render()


STORAGE: Final = {
    "csinodes.storage.k8s.io": _csi_node,
    "persistentvolumeclaims": _volume_claim,
    "persistentvolumes": _volume,
    "storageclasses.storage.k8s.io": _storage_class,
    "volumeattributesclasses.storage.k8s.io": _attributes_class,
}
