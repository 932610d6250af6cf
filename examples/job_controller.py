"""Write a controller of Jobs like the one in kube-controller-manager: informers, a
queue, expectations and status.

The controller runs at most ``parallelism`` pods of a Job at the same time, until
``completions`` pods have succeeded or more than ``backoffLimit`` pods have failed. It
writes the counts to the status of the Job::

    python examples/job_controller.py --embedded
    python examples/job_controller.py --workers 4

In a cluster, it processes only Jobs with ``spec.managedBy:
example.com/job-controller``, which the built-in controller ignores.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from operator import attrgetter

import attrs
import trio
from command_line import (
    Arguments,
    check_reachable,
    connect,
    log_to_output,
    parser_of,
    positive,
    start,
)

from trioformer import (
    Client,
    ConflictError,
    NotFoundError,
    SharedInformer,
    SharedInformerFactory,
)
from trioformer.controller import (
    Controller,
    Expectations,
    Request,
    RequeueAfter,
    controller_of,
    controller_reference,
    request_for_owner,
)
from trioformer.models import ObjectMeta
from trioformer.models.batch_v1 import Job, JobCondition
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer

MANAGED_BY = "example.com/job-controller"
JOB_NAME = "batch.kubernetes.io/job-name"
ENDS = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
"""The conditions that say that a Job ends, and those that say that it has ended."""
PATIENCE = 10.0
"""Seconds in which the workers must finish at the end."""

logger = logging.getLogger("job_controller")
owner_of = request_for_owner(Job)
counted = attrgetter("active", "succeeded", "failed")


def uid_of_owner(pod: Pod) -> Iterable[str]:
    """Index pods by the uid of their controller, because a new Job may have the name
    of an earlier Job.
    """
    owner = controller_of(pod)
    return [] if owner is None else [owner.uid]


def is_managed(job: Job) -> bool:
    """Return whether this controller manages a Job."""
    return job.spec.managed_by == MANAGED_BY


def is_finished(job: Job) -> bool:
    """Return whether a Job has completed or failed."""
    return any(
        each.type in ("Complete", "Failed") and each.status == "True"
        for each in job.status.conditions
    )


@attrs.define(eq=False)
class JobController:
    """Creates and deletes pods as each Job specifies."""

    client: Client
    jobs: SharedInformer[Job]
    pods: SharedInformer[Pod]
    expectations: Expectations[Request] = attrs.field(factory=Expectations)

    async def sync_job(self, request: Request) -> RequeueAfter | None:
        """Reconcile one Job. The method is called after each event of the Job or its
        pods, and is idempotent.
        """
        job = self.jobs.lister.get(request)
        if job is None:
            self.expectations.forget(request)
            return None
        if (
            not is_managed(job)
            or is_finished(job)
            or job.metadata.deletion_timestamp is not None
        ):
            return None
        pods = self.pods.lister.by_index("owner", job.uid)
        # Without expectations, it would create the same pods again if the cache is
        # late.
        if self.expectations.is_satisfied(request):
            counts = Counts.of(job, pods)
            outcome = outcome_of(job, counts)
            active = [pod for pod in pods if is_active(pod)]
            counts.active = await self.manage_job(
                request, job, active, 0 if outcome else wanted(job, counts)
            )
            counts.terminating += max(len(active) - counts.active, 0)
            await self.write_status(job, counts, outcome)
        return self.expectations.requeue(request)  # in case an event is lost

    async def manage_job(
        self, request: Request, job: Job, active: list[Pod], want: int
    ) -> int:
        """Create or delete pods until the desired number of pods is active, and return
        the number of active pods.
        """
        api = self.client.api(Pod, namespace=job.namespace)
        # The names have numbers, so that a pod which an outdated cache lacks is not
        # created again: the server responds that it exists. They are chosen before the
        # first request, from the same cache as the number of active pods.
        new = (pod_of(job, number) for number in itertools.count())
        free = (pod for pod in new if self.pods.lister.get(pod) is None)
        missing = list(itertools.islice(free, max(want - len(active), 0)))
        # The pods with the least progress are deleted first.
        active = sorted(
            active, key=lambda pod: pod.status.phase == "Running", reverse=True
        )
        for pod in active[want:]:
            with self.expectations.deleting(request, pod):
                await api.delete(pod.name)
        if missing and not await self.exists(job):
            return len(active)
        for pod in missing:
            with self.expectations.creating(request):
                await api.create(pod)
        return want

    async def exists(self, job: Job) -> bool:
        """Read a Job from the server. An outdated cache may contain a deleted Job, and
        the garbage collector would delete its new pods again and again.
        """
        jobs = self.client.api(Job, namespace=job.namespace)
        found = await jobs.get_or_none(job.name)
        return found is not None and found.uid == job.uid

    async def write_status(self, job: Job, counts: Counts, outcome: str) -> None:
        """Write the counts and the conditions of a Job if they have changed."""
        now = datetime.now(UTC)
        has_ended = bool(outcome) and not counts.active and not counts.terminating
        status = job.status.evolve(
            active=counts.active or None,
            terminating=counts.terminating or None,
            succeeded=counts.succeeded or None,
            failed=counts.failed or None,
            start_time=job.status.start_time or now,
            completion_time=now if has_ended and outcome == "Complete" else None,
            conditions=(
                *job.status.conditions,
                *new_conditions(job, outcome, has_ended, now),
            ),
        )
        if status == job.status:
            return
        jobs = self.client.api(Job, namespace=job.namespace)
        try:
            await jobs.update_status(
                job, job.evolve(status=status), optimistic_lock=True
            )
        except (ConflictError, NotFoundError):
            return  # the cache is outdated; the newer state will follow
        if counted(status) != counted(job.status):
            logger.info("%s: %s", Request.of(job), counts)
        if has_ended:
            logger.info("%s: %s", Request.of(job), outcome)


def is_active(pod: Pod) -> bool:
    """Return whether a pod is running or will run."""
    return (
        pod.status.phase not in ("Succeeded", "Failed")
        and pod.metadata.deletion_timestamp is None
    )


@attrs.define
class Counts:
    """The numbers of active, succeeded and failed pods of a Job."""

    active: int
    terminating: int
    succeeded: int
    failed: int

    @classmethod
    def of(cls, job: Job, pods: Collection[Pod]) -> Counts:
        """Count the pods. Ended pods that were deleted are still counted, because the
        counts must not decrease.
        """
        ended = [pod for pod in pods if pod.status.phase in ("Succeeded", "Failed")]
        active = sum(map(is_active, pods))
        succeeded = sum(pod.status.phase == "Succeeded" for pod in ended)
        # A pod that is deleted while it runs, for example when its Job is suspended,
        # may fail because of that.
        failed = sum(
            pod.status.phase == "Failed" and pod.metadata.deletion_timestamp is None
            for pod in ended
        )
        return cls(
            active=active,
            terminating=len(pods) - len(ended) - active,
            succeeded=max(succeeded, job.status.succeeded or 0),
            failed=max(failed, job.status.failed or 0),
        )

    def __str__(self) -> str:
        return f"active {self.active}, succeeded {self.succeeded}, failed {self.failed}"


def wanted(job: Job, counts: Counts) -> int:
    """Return the desired number of active pods."""
    spec = job.spec
    parallelism = (
        0 if spec.suspend else 1 if spec.parallelism is None else spec.parallelism
    )
    # a work queue: after the first success, no new pod starts
    if spec.completions is None:
        return min(counts.active, parallelism) if counts.succeeded else parallelism
    return max(min(spec.completions - counts.succeeded, parallelism), 0)


def outcome_of(job: Job, counts: Counts) -> str:
    """Return ``Complete`` or ``Failed`` if a Job has ended, otherwise an empty
    string.
    """
    decided = [
        ENDS[each.type]
        for each in job.status.conditions
        if each.type in ENDS and each.status == "True"
    ]
    if decided:  # unchanged while the last pods end
        return decided[0]
    if counts.failed > (
        6 if job.spec.backoff_limit is None else job.spec.backoff_limit
    ):
        return "Failed"
    if job.spec.completions is None:
        is_complete = bool(counts.succeeded) and not counts.active
    else:
        is_complete = counts.succeeded >= job.spec.completions
    return "Complete" if is_complete else ""


def new_conditions(
    job: Job, outcome: str, has_ended: bool, now: datetime
) -> Iterable[JobCondition]:
    """Return the conditions of a Job that is ending. After its last pod has ended,
    they include the final condition.
    """
    reason = {"Complete": "CompletionsReached", "Failed": "BackoffLimitExceeded"}.get(
        outcome
    )
    types = [cause for cause, end in ENDS.items() if end == outcome] + (
        [outcome] if has_ended else []
    )
    for each in types:
        if not any(present.type == each for present in job.status.conditions):
            yield JobCondition(
                type=each,
                status="True",
                reason=reason,
                last_probe_time=now,
                last_transition_time=now,
            )


def pod_of(job: Job, number: int) -> Pod:
    """Return a new pod from the template of a Job. A later Job with the same name has
    other pods.
    """
    template = job.spec.template
    metadata = ObjectMeta(
        name=f"{job.name}-{job.uid[:8]}-{number}",
        namespace=job.namespace,
        labels={**template.metadata.labels, JOB_NAME: job.name},
        annotations=template.metadata.annotations,
        finalizers=template.metadata.finalizers,
        owner_references=(controller_reference(job),),
    )
    return Pod(metadata=metadata, spec=template.spec)


async def serve(
    client: Client, namespace: str | None, workers: int, stop: trio.Event
) -> None:
    """Run the controller and its informers until ``stop`` is set."""
    factory = SharedInformerFactory(client, namespace=namespace)
    jobs = factory.informer(Job)
    pods = factory.informer(Pod, indexers={"owner": uid_of_owner})
    job_controller = JobController(client, jobs, pods)
    controller = Controller("job", job_controller.sync_job, workers=workers)
    controller.watch(jobs)
    controller.watch(
        pods,
        enqueue=owner_of,
        predicates=[job_controller.expectations.observing(owner_of)],
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(factory.run)
        nursery.start_soon(controller.run)
        nursery.start_soon(check_reachable, client)
        await stop.wait()
        with trio.move_on_after(PATIENCE):
            await controller.stop()
        nursery.cancel_scope.cancel()


async def main(arguments: Arguments, stop: trio.Event) -> None:
    """Run the controller until ``stop`` is set."""
    log_to_output(logger)
    async with connect(arguments, simulate_jobs) as client:
        await serve(client, arguments.namespace, arguments.workers, stop)


async def simulate_jobs(
    server: APIServer, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Create Jobs, and act as the kubelet of their pods. Every seventh pod fails."""
    task_status.started()
    ended = itertools.count(1)
    for step in itertools.count():
        if step % 10 == 0:
            spec: dict[str, object] = {
                "parallelism": 2,
                "completions": 4,
                "backoffLimit": 1,
                "managedBy": MANAGED_BY,
            }
            pod = {
                "restartPolicy": "Never",
                "containers": [{"name": "pi", "image": "perl"}],
            }
            metadata = {"name": f"pi-{step // 10}", "namespace": "default"}
            spec["template"] = {"spec": pod}
            server.create(
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": metadata,
                    "spec": spec,
                }
            )
            for job in server.list(Job):
                if is_finished(job):
                    server.delete(Job, job.name)
        await trio.sleep(0.5)
        for each in server.list(Pod):
            match each.status.phase:
                case "Running":
                    phase = "Succeeded" if next(ended) % 7 else "Failed"
                    server.patch(Pod, each.name, {"status": {"phase": phase}})
                case "Succeeded" | "Failed":
                    pass
                case _:
                    server.patch(Pod, each.name, {"status": {"phase": "Running"}})


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument(
        "--workers",
        type=positive,
        default=2,
        metavar="NUMBER",
        help="Jobs at once; default: 2",
    )
    stop = trio.Event()
    start(main, parser, stop=stop)
