"""The resources and subresources of kube-apiserver that the server does not serve.

They are in ``differences.csv``, with all other differences from kube-apiserver.  The documentation shows this list, and
the contract suite allows no other differences.
"""

from __future__ import annotations

import csv
import functools
from pathlib import Path

from .._storage._status import APIStatusError, status_error
from ._requests import RequestRecord


@functools.cache
def _not_served() -> frozenset[str]:
    with Path(__file__).with_name("differences.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["Reason"].startswith("HTTP 501")]
    return frozenset(name for row in rows for name in row["Resources"].strip("`").split())


def missing(record: RequestRecord) -> APIStatusError:
    """Return the error for a built-in resource or subresource that the server does not serve: 501, or else 404."""
    resource = f"{record.resource}.{record.group}" if record.group else record.resource
    names = {resource, f"{resource}/{(record.subresource or '').partition('/')[0]}"} & _not_served()
    if not names:
        return status_error(404, details={})
    message = f"the embedded API server does not serve {min(names)}"
    return status_error(501, reason="NotImplemented", message=message, details={})
