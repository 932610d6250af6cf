"""Deployments: a ReplicaSet for each template, sized as the strategy requires.

Source: kubernetes ``pkg/controller/deployment``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .._storage._metadata import json_equal
from .._storage._storage import JSONObject
from ._cluster import Cluster
from ._objects import claim, find_condition, hash_of, number_in, replicas_of, scaled, set_condition

_HASH: Final = "pod-template-hash"
_PREFIX: Final = "deployment.kubernetes.io/"
_REVISION: Final = f"{_PREFIX}revision"
_HISTORY: Final = f"{_PREFIX}revision-history"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_UNLIMITED: Final = 2**31 - 1
_SHOWN: Final = ("replicas", "terminatingReplicas")
"""The numbers of a status that are shown if they are 0."""


def reconcile_deployment(cluster: Cluster, found: JSONObject) -> None:
    """Create, scale and delete ReplicaSets, and sum them up."""
    if found["spec"].get("selector"):
        _Rollout(cluster, found).run()


def _template_of(obj: JSONObject) -> JSONObject:
    """Return the template of the pods without its hash."""
    template = obj["spec"].get("template") or {}
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != _HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _annotations_of(obj: JSONObject) -> JSONObject:
    return obj["metadata"].get("annotations") or {}


def _revision_of(replica_set: JSONObject) -> int:
    return number_in(_annotations_of(replica_set).get(_REVISION, "0"))


def _total(replica_sets: Iterable[JSONObject], field: str) -> int:
    return sum(one["status"].get(field, 0) for one in replica_sets)


class _Rollout:
    """One check of a Deployment."""

    def __init__(self, cluster: Cluster, found: JSONObject) -> None:
        self.cluster, self.found, self.spec, self.replicas = cluster, found, found["spec"], replicas_of(found)
        self.all = sorted(claim(cluster, found, "ReplicaSet"), key=_revision_of)
        wanted = _template_of(found)
        self.new = next((one for one in self.all if json_equal(_template_of(one), wanted)), None)
        self.old = [one for one in self.all if one is not self.new]
        self.deadline: int = self.spec.get("progressDeadlineSeconds", 600)
        self.revision = 1 + max(map(_revision_of, self.old), default=0)
        strategy = self.spec.get("strategy") or {}
        self.is_rolling, limits = strategy.get("type") != "Recreate", strategy.get("rollingUpdate") or {}
        self.surge = self.unavailable = 0
        if self.is_rolling:
            self.surge = scaled(limits.get("maxSurge", "25%"), self.replicas, rounds_up=True)
            allowed = scaled(limits.get("maxUnavailable", "25%"), self.replicas, rounds_up=False)
            self.unavailable = min(allowed or int(not self.surge), self.replicas)

    def run(self) -> None:
        must_wait = not self.is_rolling and any(replicas_of(one) or _total([one], "replicas") for one in self.old)
        sizes = {_annotations_of(one).get(f"{_PREFIX}desired-replicas") for one in self.all if replicas_of(one)}
        is_held = self.spec.get("paused") or not sizes <= {None, str(self.replicas)}  # or the Deployment was scaled
        if self.new is not None:
            self._update(self.new)
        elif not is_held and not must_wait:
            self._create()
        if is_held:
            self._scale()
        elif must_wait:
            for one in self.old:
                self._resize(one, 0)
        elif self.new is not None:
            self._step(self.new)
        self._clean_up()
        self._write_status(estimates=not is_held)

    # --- ReplicaSets --------------------------------------------------------------------------------------------------

    def _update(self, new: JSONObject) -> None:
        """Copy the annotations of the Deployment to the new ReplicaSet, and number its revision."""
        before = _annotations_of(new)
        after = {**before, **self._annotations()}
        if (revision := _revision_of(new)) < self.revision:
            after[_REVISION] = str(self.revision)
            if revision:
                after[_HISTORY] = ",".join(filter(None, [before.get(_HISTORY), str(revision)]))
        new["metadata"]["annotations"], new["spec"]["minReadySeconds"] = after, self.spec.get("minReadySeconds")
        self.cluster.write(new)
        self._start("FoundNewReplicaSet", f'Found new replica set "{new["metadata"]["name"]}"')

    def _annotations(self) -> JSONObject:
        given = _annotations_of(self.found).items()
        return {key: value for key, value in given if not key.startswith(_PREFIX) and key != _LAST_APPLIED}

    def _size_annotations(self) -> JSONObject:
        sizes = {"desired-replicas": self.replicas, "max-replicas": self.replicas + self.surge}
        return {_PREFIX + key: str(size) for key, size in sizes.items()}

    def _create(self) -> None:
        """Create the ReplicaSet of the current template."""
        template, selector = _template_of(self.found), self.spec["selector"]
        label = {_HASH: hash_of(template)}
        name, labels = f"{self.found['metadata']['name']}-{label[_HASH]}", {**template["metadata"]["labels"], **label}
        annotations = {**self._annotations(), **self._size_annotations(), _REVISION: str(self.revision)}
        spec = {
            "replicas": self._new_size(0),
            "minReadySeconds": self.spec.get("minReadySeconds"),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **label}},
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        }
        names = {"generateName": None, "name": name, "labels": labels, "annotations": annotations}
        self.new = self.cluster.create_owned("ReplicaSet", self.found, names, spec=spec)
        self.all.append(self.new)
        conditions = self.found["status"].get("conditions") or ()
        self.found["status"]["conditions"] = [one for one in conditions if one["type"] != "Progressing"]
        self._start("NewReplicaSetCreated", f'Created new replica set "{name}"')

    def _new_size(self, size: int) -> int:
        """Return the next size of the new ReplicaSet."""
        if not self.is_rolling or size > self.replicas:
            return self.replicas
        free = self.replicas + self.surge - sum(map(replicas_of, self.all))
        return size + max(min(free, self.replicas - size), 0)

    def _clean_up(self) -> None:
        """After a rollout, delete the oldest ReplicaSets that exceed ``revisionHistoryLimit``."""
        if self._is_complete(self.found["status"]):
            empty = [one for one in self.old if not replicas_of(one) and not _total([one], "replicas")]
            for one in empty[: max(len(self.old) - self.spec.get("revisionHistoryLimit", 10), 0)]:
                self.cluster.delete(one)

    def _resize(self, replica_set: JSONObject, size: int, *, always: bool = False) -> bool:
        """Set the size of a ReplicaSet; returns whether it has changed."""
        if replicas_of(replica_set) == size and not always:
            return False
        replica_set["metadata"]["annotations"] = {**_annotations_of(replica_set), **self._size_annotations()}
        replica_set["spec"]["replicas"] = size
        self.cluster.write(replica_set)
        return True

    def _scale(self) -> None:
        """Scale the ReplicaSets in proportion, because the Deployment has been scaled or is paused."""
        active = sorted([one for one in self.all if replicas_of(one)] or self.all[-1:], key=replicas_of, reverse=True)
        rest = self.replicas + (self.surge if self.replicas and len(active) > 1 else 0) - sum(map(replicas_of, active))
        for one in active[1:]:
            before = number_in(_annotations_of(one).get(f"{_PREFIX}max-replicas", "")) or self.replicas + self.surge
            share = round(replicas_of(one) * (self.replicas + self.surge) / before) - replicas_of(one)
            share = min(max(share, 0), rest) if rest > 0 else max(min(share, 0), rest)
            rest -= share
            self._resize(one, replicas_of(one) + share, always=True)
        for one in active[:1]:
            self._resize(one, max(replicas_of(one) + rest, 0), always=len(active) > 1)

    def _step(self, new: JSONObject) -> None:
        """Scale up the new ReplicaSet, or else scale down the old ones.

        Of the old ones, pods that are not available are deleted first, and others if enough pods are available.
        """
        if self._resize(new, self._new_size(replicas_of(new))) or not self.is_rolling:
            return
        minimum = self.replicas - self.unavailable
        missing = replicas_of(new) - _total([new], "availableReplicas")
        spare = sum(map(replicas_of, self.all)) - minimum - missing
        for one in self.old if spare > 0 else ():
            count = min(spare, replicas_of(one) - _total([one], "availableReplicas"))
            spare -= max(count, 0)
            self._resize(one, replicas_of(one) - max(count, 0))
        spare = min(spare, _total(self.all, "availableReplicas") - minimum)
        for one in self.old:
            count = max(min(spare, replicas_of(one)), 0)
            spare -= count
            self._resize(one, replicas_of(one) - count)

    # --- the status ---------------------------------------------------------------------------------------------------

    def _start(self, reason: str, message: str) -> None:
        """Set the condition of a rollout that begins."""
        if self.deadline != _UNLIMITED and not find_condition(self.found, "Progressing"):
            set_condition(self.cluster, self.found, "Progressing", "True", reason, message)

    def _is_complete(self, status: JSONObject) -> bool:
        numbers = {status.get(key) or 0 for key in ("replicas", "updatedReplicas", "availableReplicas")}
        return numbers == {self.replicas} and status.get("observedGeneration") == self.found["metadata"]["generation"]

    def _write_status(self, *, estimates: bool) -> None:
        ready = _total(self.all, "availableReplicas")
        status = {
            "observedGeneration": self.found["metadata"]["generation"],
            "replicas": _total(self.all, "replicas"),
            "updatedReplicas": 0 if self.new is None else _total([self.new], "replicas"),
            "readyReplicas": _total(self.all, "readyReplicas"),
            "availableReplicas": ready,
            "unavailableReplicas": max(sum(map(replicas_of, self.all)) - ready, 0),
            "terminatingReplicas": 0,
        }
        words = "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
        if ready < self.replicas - self.unavailable:
            words = "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
        set_condition(self.cluster, self.found, "Available", *words)
        if estimates and self.deadline != _UNLIMITED:
            self._estimate(status)
        if self.new is not None:
            annotations = {**_annotations_of(self.found), _REVISION: _annotations_of(self.new)[_REVISION]}
            self.found["metadata"]["annotations"] = annotations
        kept = {key: self.found["status"].get(key) for key in ("collisionCount", "conditions")}
        status = {key: number or (0 if key in _SHOWN else None) for key, number in status.items()}
        self.cluster.write(self.found, status={**status, **kept})

    def _estimate(self, status: JSONObject) -> None:
        """Set the condition of the progress."""
        kind, one = ("Deployment", self.found) if self.new is None else ("ReplicaSet", self.new)
        who, old = f'{kind} "{one["metadata"]["name"]}"', find_condition(self.found, "Progressing")
        reason, progressing = old.get("reason"), (self.cluster, self.found, "Progressing")
        if status["replicas"] == status["updatedReplicas"] and reason == "NewReplicaSetAvailable":
            return
        keys = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        replicas, updated, ready, available = (status[key] - self.found["status"].get(key, 0) for key in keys)
        if self._is_complete(status):
            set_condition(*progressing, "True", "NewReplicaSetAvailable", f"{who} has successfully progressed.")
        elif replicas < updated or max(updated, ready, available) > 0:
            set_condition(*progressing, "True", "ReplicaSetUpdated", f"{who} is progressing.", renews=True)
        elif old and reason not in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
            if (wait := self.cluster.seconds_until(old["lastUpdateTime"], self.deadline)) < 0:
                set_condition(*progressing, "False", "ProgressDeadlineExceeded", f"{who} has timed out progressing.")
            else:
                self.cluster.check_later(wait + 1, self.found)
