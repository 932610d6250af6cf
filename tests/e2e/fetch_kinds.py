"""Record the differences between the built-in kinds of kube-apiserver: the table ``kinds.txt``.

::

    python -m tests.e2e.fetch_kinds [DIRECTORY]     # kube-apiserver and etcd of the binaries in KUBEBUILDER_ASSETS

Each line has a resource and words, which :class:`trioformer.testing._storage._kinds.ServedKind` explains.
"""

from __future__ import annotations

import json
from typing import Any, Final

import trio
import yaml

from tests.e2e.manifest_set import BUILTIN, NAMESPACE, custom_kinds
from tests.e2e.tables import directory
from trioformer import open_client
from trioformer.client import Client
from trioformer.models import to_dict
from trioformer.testing import ControlPlane

OWNER: Final = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "mark"}
BACKGROUND: Final = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
MARKS: Final[dict[str, Any]] = {"annotations": {"mark": "x"}, "labels": {"mark": "x"}, "ownerReferences": [OWNER]}


async def send(client: Client, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Send a request, and return the code and the decoded body of the response; a PATCH is a merge patch."""
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    content = None if body is None else json.dumps(body).encode()
    response = await client._transport.request(method, path, content=content, content_type=content_type)
    return response.code, json.loads(response.body)


async def words_of(client: Client, path: str, obj: dict[str, Any], *, has_status: bool) -> list[str]:
    """Create, change and delete an object, and return the words of its kind."""
    words = []
    name = obj["metadata"]["name"]
    code, made = await send(client, "POST", path, obj)
    if code == 409:
        code, made = await send(client, "GET", f"{path}/{name}")
    assert code < 300, made
    if "generation" in made["metadata"]:
        words.append("generation")
    code, found = await send(client, "PUT", f"{path}/{name}", obj)
    causes = (found.get("details") or {}).get("causes") or ()
    if any(one.get("field") == "metadata.resourceVersion" for one in causes):
        words.append("version")
    for field in ("annotations", "labels") if "generation" in words else ():
        _, changed = await send(client, "PATCH", f"{path}/{name}", {"metadata": {field: {"changed": "x"}}})
        if changed["metadata"]["generation"] > made["metadata"]["generation"]:
            words.append(f"counted:{field}")
        made = changed
    if has_status:
        _, made = await send(client, "GET", f"{path}/{name}")
        changed = {**made, "metadata": {**made["metadata"], **MARKS}}
        code, changed = await send(client, "PUT", f"{path}/{name}/status", changed)
        assert code < 300, changed
        kept = [field for field in MARKS if "mark" not in str(changed["metadata"].get(field))]
        words += ["kept:metadata"] if len(kept) == len(MARKS) else [f"kept:{field}" for field in kept]
    await send(client, "PATCH", f"{path}/{name}", {"metadata": {"finalizers": None, "ownerReferences": None}})
    _, found = await send(client, "DELETE", f"{path}/{name}", BACKGROUND)
    if found["kind"] != "Status":
        words.append("returned")
    with trio.move_on_after(5):
        while (await send(client, "GET", f"{path}/{name}"))[0] != 404:  # noqa: ASYNC110  # the state of a server
            await trio.sleep(0.1)
    if (await send(client, "PUT", f"{path}/{name}", obj))[0] == 201:
        words.append("upsert")
    return words


async def main() -> None:
    text = "---\n".join(file.read_text() for file in sorted(BUILTIN.glob("*.yaml")))
    loaded = filter(None, yaml.safe_load_all(text.replace(NAMESPACE, "default")))
    objects = {(one["apiVersion"], one["kind"]): json.loads(json.dumps(one, default=str)) for one in loaded}
    definition = to_dict(custom_kinds()[0][0])
    objects[definition["apiVersion"], definition["kind"]] = definition
    lines = []
    async with ControlPlane() as control_plane, open_client(kubeconfig=control_plane.kubeconfig) as client:
        found = (await client.api_resources()).resources
        infos = {(info.api_version, info.kind): info for info in found if "update" in info.verbs}
        for kind, obj in [*objects.items()] * 2:  # some objects need others
            if kind in infos:
                await send(client, "POST", infos[kind].path(namespace="default"), obj)
        for kind, info in infos.items():
            if kind not in objects or info.kind == "Namespace":
                print("skipped:", *kind)
                continue
            has_status = "status" in info.subresources
            words = await words_of(client, info.path(namespace="default"), objects[kind], has_status=has_status)
            lines.append(" ".join([str(info), *words]))
    text = "".join(f"{line}\n" for line in sorted(set(lines)) if " " in line)
    await trio.Path(directory() / "kinds.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    trio.run(main)
