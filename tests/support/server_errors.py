"""The requests to which kube-apiserver also responds with 500."""

from __future__ import annotations

import re
from typing import Any, Final

_MESSAGES: Final = re.compile(
    "|".join(
        (
            # A strategic merge patch whose directives or lists do not fit the object.
            "unknown patch type: ",
            "list element types are not identical: ",
            "merging lists cannot yet be specified in the patch",
            r"map: map\[.*\] does not contain declared merge key: ",
            "The order in patch list:\n",
            # A server-side apply whose fields do not have their types, or of the scale of a custom object.
            r"failed to create typed patch object \(",
            r"failed to convert new object \(",
            # A resourceVersion that is not a number, or in a create.
            "(resourceVersion: Invalid value: .*)?strconv.ParseUint: parsing ",
            "resourceVersion should not be set on objects to be created$",
            # The scale of a custom object without replicas, and a Binding without a node.
            "Internal error occurred: the spec replicas field .* does not exist$",
            "target.name: Required value$",
        )
    ),
    re.DOTALL,
)


def is_expected(status: dict[str, Any]) -> bool:
    """Return whether a Status is an error of the client, a 501 for what is not served, or a 500 of kube-apiserver."""
    code = status["code"]
    return code < 500 or code == 501 or (code == 500 and _MESSAGES.match(status["message"]) is not None)
