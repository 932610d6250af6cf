"""Flows of workloads: what a test or a user does to them, and what the controllers have made of it after each step.

All fields with defaults are given, so that a server without defaulting has the same objects.
On the real server, kwok runs the pods.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import trio

from trioformer.client import Client
from trioformer.errors import NotFoundError

JSON: TypeAlias = dict[str, Any]

RESULTS: Final = Path(__file__).with_name("controller_results.json")
"""What kube-controller-manager and kwok have made of each flow."""
FAILING: Final = "pod-container-running-failed.stage.kwok.x-k8s.io"
"""The label of pods that kwok has fail."""

GROUPS: Final = {
    "deployments": "apis/apps/v1",
    "replicasets": "apis/apps/v1",
    "statefulsets": "apis/apps/v1",
    "controllerrevisions": "apis/apps/v1",
    "jobs": "apis/batch/v1",
    "pods": "api/v1",
    "services": "api/v1",
    "endpointslices": "apis/discovery.k8s.io/v1",
}
NOWHERE: Final = "no-such-node"
"""The node of pods that nothing runs."""
_SUFFIX: Final = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9])")
_TIMES: Final = frozenset(
    {"lastTransitionTime", "lastUpdateTime", "lastProbeTime", "startTime", "completionTime", "startedAt", "finishedAt"}
)


def template(
    app: str, *, node: str = "node-1", image: str = "busybox:1", restart: str = "Always", **labels: str
) -> JSON:
    """Return a template of pods."""
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
    }
    spec = {
        "nodeName": node,
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": restart,
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 0,
    }
    return {"metadata": {"labels": {"app": app, **labels}}, "spec": spec}


def deployment(name: str, replicas: int, **spec: Any) -> JSON:
    """Return a Deployment."""
    given = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": template(name),
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 10,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {**given, **spec}}


def stateful_set(name: str, replicas: int, **spec: Any) -> JSON:
    """Return a StatefulSet."""
    given = {
        "replicas": replicas,
        "serviceName": name,
        "selector": {"matchLabels": {"app": name}},
        "template": template(name),
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "revisionHistoryLimit": 10,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": {**given, **spec}}


def job(name: str, *, fails: bool = False, **spec: Any) -> JSON:
    """Return a Job."""
    labels = {FAILING: "true"} if fails else {}
    given = {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "manualSelector": False,
        "template": template(name, restart="Never", **labels),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {**given, **spec},
    }


def _text(text: str, words: dict[str, str]) -> str:
    for word, replacement in words.items():
        text = text.replace(word, replacement)
    return _SUFFIX.sub("-?????", text)


def _plain(value: Any, words: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {_text(key, words): "…" if key in _TIMES else _plain(each, words) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, words) for each in value]
    return _text(value, words) if isinstance(value, str) else value


def comparable(kind: str, obj: JSON, words: dict[str, str]) -> JSON:
    """Return what two clusters should agree on: not uids, versions, times, and not the defaults of pods."""
    metadata = {
        key: value
        for key, value in obj["metadata"].items()
        if key not in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace", "selfLink")
    }
    metadata["ownerReferences"] = [{**owner, "uid": "…"} for owner in metadata.get("ownerReferences") or ()]
    metadata["labels"] = {key: value for key, value in (metadata.get("labels") or {}).items() if "kwok" not in key}
    metadata["annotations"] = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if "last-change" not in key
    }
    if "deletionTimestamp" in metadata:
        metadata["deletionTimestamp"] = "…"
    rest: JSON = {key: value for key, value in obj.items() if key not in ("metadata", "kind", "apiVersion")}
    rest["spec"] = {key: value for key, value in rest.get("spec", {}).items() if key != "template"}
    if kind == "pods":
        status = obj["status"]
        ready = [one["status"] for one in status.get("conditions") or () if one["type"] == "Ready"]
        spec = {key: obj["spec"][key] for key in ("hostname", "subdomain", "nodeName") if key in obj["spec"]}
        rest = {"spec": spec, "phase": status["phase"], "ready": ready if status["phase"] == "Running" else []}
    elif kind == "replicasets":
        # How often a ReplicaSet is scaled depends on how many pods become ready at once.
        rest["status"] = {**rest["status"]}
        rest["is_observed"] = metadata.pop("generation") == rest["status"].pop("observedGeneration")
    elif kind == "services":
        rest = {}
    elif kind == "endpointslices":
        del rest["spec"]
        del metadata["generation"]  # it depends on which changes the controller sees at once
        rest["endpoints"] = sorted(
            ({**one, "addresses": len(one["addresses"])} for one in rest.get("endpoints") or ()),
            key=lambda one: str(one.get("targetRef")),
        )
        for one in rest["endpoints"]:
            if one.get("targetRef"):
                name = re.sub(r"^web-[a-z0-9]+", "web", one["targetRef"]["name"])
                one["targetRef"] = {**one["targetRef"], "uid": "…", "namespace": "…", "name": name}
        rest["ports"] = rest.get("ports") or []
    elif kind == "controllerrevisions":
        rest = {"revision": rest["revision"]}
    found: JSON = _plain({"metadata": metadata, **rest}, words)
    if isinstance(conditions := (found.get("status") or {}).get("conditions"), list):
        found["status"]["conditions"] = sorted(conditions, key=lambda one: str(one["type"]))
    if kind == "jobs":
        found["status"].pop("uncountedTerminatedPods", None)
    return found


@attrs.define(eq=False)
class Flow:
    """One flow in one namespace of one cluster."""

    client: Client
    namespace: str
    kinds: tuple[str, ...]
    states: dict[str, JSON] = attrs.field(factory=dict)
    """The objects after each step."""
    events: list[str] = attrs.field(factory=list)
    """The pods that were created, became ready, and were deleted, in this order."""

    def path(self, kind: str, name: str = "") -> str:
        return f"/{GROUPS[kind]}/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    async def create(self, kind: str, obj: JSON) -> None:
        await self.client.request("POST", self.path(kind), body=obj)

    async def patch(self, kind: str, name: str, patch: JSON) -> None:
        await self.client.request(
            "PATCH", self.path(kind, name), body=patch, content_type="application/merge-patch+json"
        )

    async def delete(self, kind: str, name: str, policy: str | None = None) -> None:
        params = {"propagationPolicy": policy} if policy else {}
        await self.client.request("DELETE", self.path(kind, name), params=params)

    async def get(self, kind: str, name: str) -> JSON | None:
        try:
            found: JSON = (await self.client.request("GET", self.path(kind, name))).json()
        except NotFoundError:
            return None
        return found

    async def list(self, kind: str) -> list[JSON]:
        items: list[JSON] = (await self.client.request("GET", self.path(kind))).json()["items"]
        return items

    async def until(self, kind: str, name: str, condition: Callable[[JSON], bool], *, patience: float = 60.0) -> None:
        """Wait until an object meets a condition."""
        with trio.fail_after(patience):
            while (found := await self.get(kind, name)) is None or not condition(found):  # noqa: ASYNC110  # the state of a server
                await trio.sleep(0.1)  # between two requests, on both servers

    async def until_count(self, kind: str, count: int) -> None:
        with trio.fail_after(60):
            while len(await self.list(kind)) != count:  # noqa: ASYNC110  # the state of a server
                await trio.sleep(0.1)

    async def until_rolled_out(self, kind: str, name: str) -> None:
        await self.until(kind, name, _is_rolled_out)

    async def snapshot(self, step: str) -> None:
        """Record all objects as soon as they no longer change."""
        before: Any = None
        for _ in range(100):
            found = {kind: await self.list(kind) for kind in self.kinds}
            versions = {
                kind: [obj["metadata"]["resourceVersion"] for obj in objects] for kind, objects in found.items()
            }
            if versions == before:
                break
            before = versions
            await trio.sleep(1.0)
        hashes = {}
        replica_sets = sorted(found.get("replicasets", ()), key=lambda one: str(_revision(one)))
        for number, one in enumerate(replica_sets, 1):
            if (found_hash := one["metadata"]["labels"].get("pod-template-hash")) is not None:
                hashes[found_hash] = f"<hash {number}>"
        for number, one in enumerate(
            sorted(found.get("controllerrevisions", ()), key=lambda one: int(one["revision"])), 1
        ):
            hashes[one["metadata"]["name"].rpartition("-")[2]] = f"<hash {number}>"
        for one in found.get("jobs", ()):
            hashes[one["metadata"]["uid"]] = "<uid>"
        self.states[step] = {
            kind: sorted((comparable(kind, one, hashes) for one in objects), key=_text_of)
            for kind, objects in found.items()
        }

    async def watch_pods(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Record the pods that begin and end, and that become ready."""
        version = (await self.client.request("GET", self.path("pods"))).json()["metadata"]["resourceVersion"]
        params = {"watch": "true", "resourceVersion": version}
        ready: set[str] = set()
        async with self.client.stream("GET", self.path("pods"), params=params, endless=True) as stream:
            task_status.started()
            async for line in stream.lines():
                event = json.loads(line)
                obj = event["object"]
                name, conditions = obj["metadata"]["name"], obj["status"].get("conditions") or ()
                is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
                if event["type"] == "MODIFIED" and (not is_ready or name in ready):
                    continue
                (ready.add if is_ready and event["type"] != "DELETED" else ready.discard)(name)
                shown = re.sub(r"^web-[a-z0-9]+-", "web-", _SUFFIX.sub("-?????", name))
                self.events.append(f"{'READY' if event['type'] == 'MODIFIED' else event['type']} {shown}")


def _text_of(obj: JSON) -> str:
    return json.dumps(obj, sort_keys=True)


def _revision(obj: JSON) -> int:
    return int((obj["metadata"].get("annotations") or {}).get("deployment.kubernetes.io/revision", 0))


def _is_rolled_out(obj: JSON) -> bool:
    status, wanted = obj.get("status") or {}, obj["spec"]["replicas"]
    counts = {status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")}
    return status.get("observedGeneration") == obj["metadata"]["generation"] and counts == {wanted}


def has_condition(kind: str, reason: str = "") -> Callable[[JSON], bool]:
    """Return whether an object has a condition that is true, or has the reason."""

    def condition(obj: JSON) -> bool:
        found = [one for one in (obj.get("status") or {}).get("conditions") or () if one["type"] == kind]
        return any(one["reason"] == reason if reason else one["status"] == "True" for one in found)

    return condition


async def rollout(flow: Flow) -> None:
    await flow.create("deployments", deployment("web", 3))
    await flow.until_rolled_out("deployments", "web")
    await flow.snapshot("created")
    await flow.patch("deployments", "web", {"spec": {"replicas": 5}})
    await flow.until_rolled_out("deployments", "web")
    await flow.snapshot("scaled up")
    await flow.patch("deployments", "web", {"spec": {"replicas": 2}})
    await flow.until_rolled_out("deployments", "web")
    await flow.until_count("pods", 2)
    await flow.snapshot("scaled down")
    await flow.patch("deployments", "web", {"spec": {"template": template("web", image="busybox:2")}})
    await flow.until_rolled_out("deployments", "web")
    await flow.until_count("pods", 2)
    await flow.snapshot("second image")
    await flow.patch("deployments", "web", {"spec": {"template": template("web")}})
    await flow.until_rolled_out("deployments", "web")
    await flow.until_count("pods", 2)
    await flow.snapshot("rolled back")
    await flow.delete("deployments", "web")
    await flow.until_count("pods", 0)
    await flow.snapshot("deleted")


async def failed_rollout(flow: Flow) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    await flow.create("deployments", deployment("web", 4, strategy=strategy, progressDeadlineSeconds=5))
    await flow.until_rolled_out("deployments", "web")
    await flow.snapshot("created")
    await flow.patch("deployments", "web", {"spec": {"template": template("web", node=NOWHERE)}})
    await flow.until("deployments", "web", has_condition("Progressing", "ProgressDeadlineExceeded"))
    await flow.snapshot("stuck")
    await flow.patch("deployments", "web", {"spec": {"replicas": 6}})
    await flow.until("deployments", "web", lambda found: found["status"]["observedGeneration"] == 3)
    await flow.snapshot("scaled while stuck")
    await flow.patch("deployments", "web", {"spec": {"template": template("web")}})
    await flow.until_rolled_out("deployments", "web")
    await flow.snapshot("rolled back")
    await flow.patch("deployments", "web", {"spec": {"template": template("web", image="busybox:3")}})
    await flow.until_rolled_out("deployments", "web")
    await flow.until_count("pods", 6)
    await flow.snapshot("rolled out")
    await flow.delete("deployments", "web", "Orphan")
    await flow.until_count("deployments", 0)
    await flow.snapshot("orphaned")
    await flow.create("deployments", deployment("web", 6, template=template("web", image="busybox:3")))
    await flow.until_rolled_out("deployments", "web")
    await flow.snapshot("adopted")
    await flow.delete("deployments", "web", "Foreground")
    await flow.until_count("deployments", 0)
    await flow.snapshot("deleted in the foreground")


async def recreate(flow: Flow) -> None:
    await flow.create("deployments", deployment("web", 2, strategy={"type": "Recreate"}, revisionHistoryLimit=0))
    await flow.until_rolled_out("deployments", "web")
    await flow.patch("deployments", "web", {"spec": {"template": template("web", image="busybox:2")}})
    await flow.until_rolled_out("deployments", "web")
    await flow.until_count("replicasets", 1)
    await flow.snapshot("recreated")


async def ordered(flow: Flow) -> None:
    await flow.create("statefulsets", stateful_set("db", 3))
    await flow.until_rolled_out("statefulsets", "db")
    await flow.snapshot("created")
    await flow.patch("statefulsets", "db", {"spec": {"replicas": 4}})
    await flow.until_rolled_out("statefulsets", "db")
    await flow.patch("statefulsets", "db", {"spec": {"replicas": 2}})
    await flow.until_rolled_out("statefulsets", "db")
    await flow.snapshot("scaled")
    await flow.patch("statefulsets", "db", {"spec": {"template": template("db", image="busybox:2")}})
    await flow.until_rolled_out("statefulsets", "db")
    await flow.snapshot("second image")
    await flow.delete("pods", "db-0")
    await flow.until("pods", "db-0", has_condition("Ready"))
    await flow.until_rolled_out("statefulsets", "db")
    await flow.snapshot("replaced")
    partitioned = {"updateStrategy": {"rollingUpdate": {"partition": 1}}}
    await flow.patch("statefulsets", "db", {"spec": {"template": template("db", image="busybox:3"), **partitioned}})
    await flow.until("statefulsets", "db", lambda found: found["status"].get("updatedReplicas") == 1)
    await flow.until_count("pods", 2)
    await flow.snapshot("partitioned")
    await flow.patch("statefulsets", "db", {"spec": {"replicas": 0}})
    await flow.until_count("pods", 0)
    await flow.delete("statefulsets", "db")
    await flow.until_count("controllerrevisions", 0)
    await flow.snapshot("deleted")


async def parallel(flow: Flow) -> None:
    broken = stateful_set("db", 2, template=template("db", node=NOWHERE))
    await flow.create("statefulsets", broken)
    await flow.until_count("pods", 1)
    await flow.snapshot("stuck")
    await flow.create("statefulsets", stateful_set("all", 3, podManagementPolicy="Parallel"))
    await flow.until_rolled_out("statefulsets", "all")
    await flow.snapshot("parallel")


async def completed(flow: Flow) -> None:
    await flow.create("jobs", job("sum", completions=3, parallelism=2))
    await flow.until("jobs", "sum", has_condition("Complete"))
    await flow.snapshot("complete")
    await flow.create("jobs", job("later", suspend=True))
    await flow.until("jobs", "later", has_condition("Suspended"))
    await flow.snapshot("suspended")
    await flow.patch("jobs", "later", {"spec": {"suspend": False}})
    await flow.until("jobs", "later", has_condition("Complete"))
    await flow.snapshot("resumed")
    await flow.delete("jobs", "sum", "Background")
    await flow.until_count("pods", 1)
    await flow.snapshot("deleted")


async def failed(flow: Flow) -> None:
    await flow.create("jobs", job("sum", fails=True, backoffLimit=1))
    await flow.until("jobs", "sum", has_condition("Failed"), patience=120)
    await flow.snapshot("failed")
    stuck = job("stuck", activeDeadlineSeconds=2, template=template("stuck", node=NOWHERE, restart="Never"))
    await flow.create("jobs", stuck)
    await flow.until("jobs", "stuck", has_condition("Failed"))
    await flow.snapshot("deadline")


async def endpoints(flow: Flow) -> None:
    spec = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    await flow.create("services", {"metadata": {"name": "web", "labels": {"team": "a"}}, "spec": spec})
    await flow.until_count("endpointslices", 1)
    await flow.snapshot("empty")
    await flow.create("deployments", deployment("web", 2))
    await flow.until_rolled_out("deployments", "web")
    await flow.snapshot("ready")
    await flow.patch("deployments", "web", {"spec": {"replicas": 1}})
    await flow.until_rolled_out("deployments", "web")
    await flow.snapshot("scaled down")
    await flow.create("statefulsets", stateful_set("db", 1))
    spec = {"selector": {"app": "db"}, "clusterIP": "None", "ports": [{"port": 80}]}
    await flow.create("services", {"metadata": {"name": "db"}, "spec": spec})
    await flow.until_rolled_out("statefulsets", "db")
    await flow.snapshot("headless")
    await flow.delete("services", "web")
    await flow.until_count("endpointslices", 1)
    await flow.snapshot("deleted")


FLOWS: Final[dict[str, tuple[Callable[[Flow], Awaitable[None]], tuple[str, ...]]]] = {
    "rollout": (rollout, ("deployments", "replicasets", "pods")),
    "failed rollout": (failed_rollout, ("deployments", "replicasets", "pods")),
    "recreate": (recreate, ("deployments", "replicasets", "pods")),
    "ordered": (ordered, ("statefulsets", "controllerrevisions", "pods")),
    "parallel": (parallel, ("statefulsets", "controllerrevisions", "pods")),
    "completed": (completed, ("jobs", "pods")),
    "failed": (failed, ("jobs", "pods")),
    "endpoints": (endpoints, ("services", "endpointslices")),
}


IN_ORDER: Final = ("ordered", "failed")
"""The flows whose events have only one possible order."""


async def run_flow(client: Client, namespace: str, name: str) -> JSON:
    """Run a flow in an empty namespace; returns the objects after each step, and what happened to pods."""
    steps, kinds = FLOWS[name]
    flow = Flow(client, namespace, kinds)
    async with trio.open_nursery() as nursery:
        await nursery.start(flow.watch_pods)
        await steps(flow)
        nursery.cancel_scope.cancel()
    return {"states": flow.states, "events": flow.events if name in IN_ORDER else sorted(flow.events)}
