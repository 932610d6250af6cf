"""``apply``, ``diff``, ``delete``, ``label`` and the others beside kubectl, on two namespaces of kube-apiserver.

After each step the two namespaces must have the same objects: their contents, the annotation of ``apply``, and the
owners of their fields.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from tests.support.cli import Result
from trioformer import open_client
from trioformer.cli._main import run_command
from trioformer.testing import ControlPlane

FIRST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "web:1", env: [{name: A, value: "1"}, {name: B, value: "<&>"}]}
      volumes: [{name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {x: "1", z: "2"}
"""
SECOND = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {other: web}}
spec:
  replicas: 3
  minReadySeconds: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {a: b}}
    spec:
      initContainers: [{name: first, image: "first:1"}]
      containers:
      - {name: proxy, image: "proxy:1", ports: [{containerPort: 80}, {containerPort: 81}]}
      - {name: main, image: "web:2", env: [{name: C, value: "1"}, {name: B, value: "2"}], resources: {limits: {cpu: 1}}}
      volumes: [{name: data, emptyDir: {medium: Memory}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web, tier: x}, ports: [{name: https, port: 443}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, finalizers: [example.com/a]}
data: {x: "1", w: "2"}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
"""
THIRD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, creationTimestamp: null}
spec:
  strategy: {}
  paused: true
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      containers:
      - {name: main, image: "web:2", env: [{name: B, value: "2"}], resources: {limits: {memory: 1Gi}}}
      volumes: [{name: data, configMap: {name: web}}]
status: {}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: https, port: 443, targetPort: null}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, finalizers: []}
data: null
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchExpressions: [{key: a, operator: Exists}]}}
"""
CUSTOM = """\
apiVersion: example.com/v1
kind: Site
metadata: {name: a}
spec: {list: [{name: a, x: 1}, {name: b}], map: {a: 1, b: 2}}
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.com}
spec:
  group: example.com
  names: {kind: Site, plural: sites, singular: site}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
SIDES = ("beside-1", "beside-2")
"""The namespaces of kubectl and of the tool."""


@attrs.define
class Both:
    """The two tools, each in a namespace of its own."""

    control_plane: ControlPlane
    kubectl: Path

    def call_kubectl(self, namespace: str, *arguments: str) -> Result:
        common = [str(self.kubectl), "--kubeconfig", str(self.control_plane.kubeconfig), "-n", namespace]
        done = subprocess.run(
            [*common, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, text=True, check=False
        )
        return Result(done.returncode, done.stdout, done.stderr)

    async def call_both(self, *arguments: str) -> tuple[Result, Result]:
        """Run a command with both; what is each one's own in the output is the same."""
        out, err = io.StringIO(), io.StringIO()
        codes: list[int] = []

        async def call_ours() -> None:
            common = ["--kubeconfig", str(self.control_plane.kubeconfig), "-n", SIDES[1]]
            codes.append(await run_command([*common, *arguments], out, err))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call_ours)
            theirs = await trio.to_thread.run_sync(self.call_kubectl, SIDES[0], *arguments)
        ours = Result(codes[0], out.getvalue(), err.getvalue())
        return plain(theirs), plain(ours)

    async def objects(self, namespace: str) -> list[Any]:
        """Return the objects of a namespace, less what differs between any two."""
        items: list[Any] = []
        async with open_client(kubeconfig=self.control_plane.kubeconfig) as client:
            for path in PATHS:
                response = await client.request("GET", path.format(namespace))
                text = response.text.replace(namespace, "N")
                items += json.loads(text)["items"]
        for item in items:
            for key in ("uid", "resourceVersion", "creationTimestamp"):
                del item["metadata"][key]
            owners = item["metadata"].get("managedFields", [])
            owners.sort(key=lambda entry: (entry["manager"], entry["operation"]))  # the server sorts by the second
            for entry in owners:
                entry["time"] = ""
            for key in ("clusterIP", "clusterIPs"):
                item.get("spec", {}).pop(key, None)
        return [item for item in items if item["metadata"]["name"] != "kube-root-ca.crt"]


def plain(result: Result) -> Result:
    """Return output without what differs between any two runs."""

    def of(text: str) -> str:
        text = re.sub(r"\bbeside-[12]\b", "N", text)
        text = re.sub(r"\b(kubectl|trioformer) (apply|create)\b", r"TOOL \2", text)
        text = re.sub(r"/\S*/(LIVE|MERGED)-\w+", r"\1", text)
        text = re.sub(r"\d{4}-\d\d-\d\d[T ][0-9:.]+(Z| \+0000)", "T", text)
        return re.sub(r"(resourceVersion|uid|clusterIP): \S+", r"\1", text)

    return Result(result.code, of(result.out), of(result.err))


@pytest.fixture
async def both(control_plane: ControlPlane, assets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    monkeypatch.chdir(tmp_path)
    texts = {"first": FIRST, "second": SECOND, "third": THIRD, "custom": CUSTOM, "definition": DEFINITION}
    changed = CUSTOM.replace("{name: a, x: 1}, ", "").replace("b: 2", "c: 3")
    for name, text in {**texts, "changed": changed}.items():
        await trio.Path(f"{name}.yaml").write_text(text)
    tools = Both(control_plane, assets / "kubectl")
    for namespace in SIDES:
        tools.call_kubectl(namespace, "create", "namespace", namespace)
        tools.call_kubectl(namespace, "delete", "deploy,svc,cm,pdb", "--all")
    tools.call_kubectl("default", "apply", "-f", "definition.yaml")
    tools.call_kubectl("default", "wait", "--for=condition=Established", "crd/sites.example.com")
    return tools


PATHS = (
    "/apis/apps/v1/namespaces/{}/deployments",
    "/api/v1/namespaces/{}/services",
    "/api/v1/namespaces/{}/configmaps",
    "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "/apis/example.com/v1/namespaces/{}/sites",
)
STEPS = [
    "apply -f first.yaml",
    "apply -f first.yaml",
    "diff -f first.yaml",
    "diff -f second.yaml",
    "apply -f second.yaml --dry-run=server",
    "apply -f second.yaml --dry-run=client",
    "apply -f second.yaml -o name",
    "apply -f third.yaml",
    "label -f third.yaml tier=a",
    "label svc web tier=b",
    "label svc web tier=b --overwrite",
    "annotate deploy,svc --all note=<1>",
    "apply -f first.yaml",
    "apply -f first.yaml --server-side",
    "apply -f second.yaml --server-side",
    "apply -f third.yaml --server-side --force-conflicts",
    "apply -f first.yaml --server-side --field-manager=other",
    "apply -f second.yaml",
    "apply -f custom.yaml",
    "apply -f changed.yaml",
    "diff -f custom.yaml",
    "apply -f nope.yaml",
    "create -f first.yaml",
    "get -f first.yaml -o name",
    "apply -f third.yaml",
    "delete cm web --dry-run=server",
    "delete cm web nope --wait=false",
    "delete svc -l tier=b",
    "delete -f first.yaml --ignore-not-found --wait=false",
    "delete site --all",
    "delete pdb",
]


async def test_each_step_has_the_output_and_the_result_of_kubectl(both: Both) -> None:
    for step in STEPS:
        theirs, ours = await both.call_both(*step.split())
        assert (step, ours) == (step, theirs)
        of_both = [await both.objects(namespace) for namespace in SIDES]
        assert (step, of_both[1]) == (step, of_both[0])


async def test_each_of_the_tools_goes_on_with_what_the_other_has_applied(both: Both) -> None:
    """The third state is the same whoever has applied the two before, and by which way."""
    for number, namespace in enumerate(SIDES):
        states = (("first", ""), ("second", "--server-side --force-conflicts"), ("third", ""))
        for index, (name, mode) in enumerate(states):
            arguments = ["apply", "-f", f"{name}.yaml", *mode.split()]
            if (number + index) % 2:
                assert both.call_kubectl(namespace, *arguments).code == 0
            else:
                given = ["--kubeconfig", str(both.control_plane.kubeconfig), "-n", namespace, *arguments]
                assert await run_command(given, io.StringIO(), io.StringIO()) == 0
    of_both = [await both.objects(namespace) for namespace in SIDES]
    assert of_both[1] == of_both[0]
