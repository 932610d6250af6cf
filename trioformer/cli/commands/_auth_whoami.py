"""``auth whoami``: who the user is, as the server sees it."""

from __future__ import annotations

import argparse
from typing import Final

from ...errors import ForbiddenError, NotFoundError
from .._arguments import Parser
from .._failures import CommandError
from .._session import Session
from ..printing import TableWriter, make_printer, sprint

__all__ = ["add_flags", "run"]

_VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")


def add_flags(parser: Parser) -> None:
    """Add the flags of ``auth whoami``."""
    parser.add_argument("-o", "--output", default="", help="Output format.")
    parser.add_argument("--template", default="", help="Template string, or path to a template file, for -o jsonpath")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``auth whoami``."""
    printer = make_printer(flags.output, session.out, template=flags.template)
    async with session.open_client() as client:
        for version in _VERSIONS:
            body = {"apiVersion": f"authentication.k8s.io/{version}", "kind": "SelfSubjectReview"}
            try:
                response = await client.request(
                    "POST", f"/apis/authentication.k8s.io/{version}/selfsubjectreviews", body=body
                )
            except ForbiddenError as exc:
                raise CommandError(
                    "the selfsubjectreviews API is not enabled in the cluster or you do not have permission to call it"
                ) from exc
            except NotFoundError:
                continue
            break
        else:
            raise CommandError("the selfsubjectreviews API is not enabled in the cluster")
    review = response.json()
    if not isinstance(review, dict):
        raise CommandError("unexpected response: not a SelfSubjectReview")
    if printer is not None:
        printer.print(review)
        printer.finish()
        return None
    user = (review.get("status") or {}).get("userInfo") or {}
    writer = TableWriter(session.out)
    writer.add(["ATTRIBUTE", "VALUE"])
    for name, key in (("Username", "username"), ("UID", "uid"), ("Groups", "groups")):
        if user.get(key):
            writer.add([name, sprint(user[key])])
    extra = user.get("extra") or {}
    for key in sorted(extra):
        writer.add([f"Extra: {key}", sprint(extra[key])])
    writer.flush()
    return None
