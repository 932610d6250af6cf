"""Run the operator of website_operator.py with webhooks, which check, complete and
convert Websites.

Each replica serves the webhooks on port 9443, with a certificate for their Service,
for example from cert-manager::

    python examples/website_webhooks.py --certificate tls.crt --key tls.key
    python examples/website_webhooks.py --embedded

``python -m trioformer webhooks manifests website_webhooks:webhooks`` prints the objects
that tell the API server to call the webhooks. The embedded operator has no webhooks.
"""

from __future__ import annotations

import command_line
import trio
from simulations import simulate_websites
from website_operator import COLUMNS, NAME, Website, WebsiteSpec, WebsiteStatus, start

from trioformer import crds, manager
from trioformer.models import KubernetesObject, Model
from trioformer.webhooks import (
    AdmissionRequest,
    Denied,
    Webhook,
    Webhooks,
    WebhookServer,
)

TEAM = "example.com/team"


@crds.resource_part()
class WebsiteSpecV1Alpha1(Model):
    html: str = ""
    pods: int = 1
    secret: str = ""


@crds.custom_resource(
    "example.com/v1alpha1",
    kind="Website",
    stored=False,
    deprecated=True,
    printer_columns=COLUMNS,
)
class WebsiteV1Alpha1(KubernetesObject):
    """The first version, in which two fields have other names."""

    spec: WebsiteSpecV1Alpha1 = WebsiteSpecV1Alpha1()
    status: WebsiteStatus = WebsiteStatus()


async def check(request: AdmissionRequest[Website]) -> list[str]:
    """Refuse a page that is too large, and a Secret that is replaced by none."""
    spec, old = request.object.spec, request.old
    causes: dict[str, str] = {}
    if len(spec.page) > 100_000:
        causes["spec.page"] = "must have at most 100,000 characters"
    if old is not None and old.spec.secret and not spec.secret:
        causes["spec.secret"] = "cannot be removed, because the page needs it"
    if causes:
        problems = "; ".join(f"{field} {text}" for field, text in causes.items())
        raise Denied(problems, causes, code=422)
    return [] if spec.replicas else ["spec.replicas is 0: nobody can see the page"]


async def complete(request: AdmissionRequest[Website]) -> Website:
    """Set the label of the user's team, unless there is one."""
    website = request.object
    teams = [group[5:] for group in request.user.groups if group.startswith("team:")]
    labels = {TEAM: teams[0] if teams else "none", **website.metadata.labels}
    return website.evolve(metadata=website.metadata.evolve(labels=labels))


def upgrade(old: WebsiteV1Alpha1) -> Website:
    """Convert a Website to v1."""
    spec = WebsiteSpec(
        page=old.spec.html, replicas=old.spec.pods, secret=old.spec.secret
    )
    return Website(metadata=old.metadata, spec=spec, status=old.status)


def downgrade(new: Website) -> WebsiteV1Alpha1:
    """Convert a Website to v1alpha1."""
    spec = WebsiteSpecV1Alpha1(
        html=new.spec.page, pods=new.spec.replicas, secret=new.spec.secret
    )
    return WebsiteV1Alpha1(metadata=new.metadata, spec=spec, status=new.status)


webhooks = Webhooks(
    validate={Website: check},
    mutate={Website: Webhook(complete, operations=("CREATE",))},
    convert={Website: {WebsiteV1Alpha1: (upgrade, downgrade)}},
)


async def main(arguments: command_line.Arguments, stop: trio.Event) -> None:
    server = None
    if not arguments.embedded:
        server = WebhookServer(
            webhooks,
            arguments.bind,
            certificate=arguments.certificate,
            key=arguments.key,
        )
    async with command_line.connect(arguments, simulate_websites) as client:
        if arguments.embedded:
            await crds.install_crds(client, Website)
        namespace = client.config.namespace or "default"
        await manager.run_controllers(
            client,
            {"websites": start},
            http=arguments.http,
            leader_election=manager.LeaderElection(NAME, namespace),
            webhooks=server,
            stop=stop,
        )


if __name__ == "__main__":
    parser = command_line.parser_of(__doc__, serves_http=True)
    parser.add_argument("--bind", default=":9443", type=command_line.address)
    parser.add_argument("--certificate", metavar="PATH", type=command_line.file)
    parser.add_argument("--key", metavar="PATH", type=command_line.file)
    required = ("--certificate", "--key")
    command_line.start(main, parser, stop=trio.Event(), required=required)
