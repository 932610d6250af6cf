"""The resources and subresources of kube-apiserver that the server does not serve, although discovery lists them.

They are also in ``differences.csv``, with all other differences from kube-apiserver.  The documentation shows this
list, and the contract suite allows no other differences.
"""

from __future__ import annotations

from ...models._internal import decode
from .._storage._release import Release
from .._storage._status import APIStatusError, status_error
from ._requests import RequestRecord


def missing(release: Release, record: RequestRecord) -> APIStatusError:
    """Return the error for a built-in resource or subresource that the server does not serve: 501, or else 404."""
    path = f"apis/{record.group}/{record.version}" if record.group else f"api/{record.version}"
    listed = decode(release.table("discovery.txt").get(path, b"{}")).get("resources", ())
    subresource = (record.subresource or "").partition("/")[0]
    name = f"{record.resource}/{subresource}" if subresource else record.resource
    if all(each["name"] != name for each in listed):
        return status_error(404, details={})
    message = f"the embedded API server does not serve {name}{record.group and '.'}{record.group}"
    return status_error(501, reason="NotImplemented", message=message, details={})
