"""Requests to the API server: read, write, list, watch and discover objects.

- ``_client.py``: :func:`open_client` and :class:`Client`, a client of one cluster
- ``_client_writes.py``: the methods of a client that write one object
- ``_api.py``: :class:`Api`, the objects of one kind; ``_api_verbs.py`` has the methods that send one request
- ``_api_requests.py``: the requests of an API
- ``_paths.py``: the URL paths of a resource
- ``_subresources.py``: responses of another kind than the API
- ``_watch.py``: :class:`WatchStream`, an open watch
- ``_discovery.py``: looks up one kind in the resource list of its version
- ``_discover_all.py``: reads all resources of a server
- ``_api_resources.py``: :class:`ApiResources`, and the names of resources that kubectl accepts
- ``_known_kinds.py``: the kinds that a client knows by name
- ``bodies``: decodes responses: :class:`ObjectList`, :class:`Undecodable`
- ``_patch.py``: the types of patch
- ``_object_ref.py``: :class:`ObjectRef`, the namespace and name of an object
- ``_client_requests.py`` and ``_raw.py``: requests to any path, and the health of the server
- ``_options.py``: selectors and other query parameters
- ``_retry_on_conflict.py``: :func:`retry_on_conflict`
- ``_internal.py``: names for other packages of trioformer

:mod:`trioformer.transport` retries requests where that is safe; docs/howto/connect.rst has the table.
Callers with their own retries, such as an informer of :mod:`trioformer.cache`, send each request once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._util import names_on_demand as _names_on_demand
from ..transport._internal import ClientOptions as ClientOptions
from ._api import Api as Api
from ._client import Client as Client
from ._client import VersionInfo as VersionInfo
from ._client import open_client as open_client
from ._object_ref import ObjectRef as ObjectRef
from ._options import FieldSelectorLike as FieldSelectorLike
from ._options import FieldValidation as FieldValidation
from ._options import LabelSelectorLike as LabelSelectorLike
from ._options import ListOptions as ListOptions
from ._options import PropagationPolicy as PropagationPolicy
from ._patch import PatchType as PatchType
from ._retry_on_conflict import retry_on_conflict as retry_on_conflict
from ._subresources import OwnSubresource as OwnSubresource
from ._watch import WatchEvent as WatchEvent
from ._watch import WatchStream as WatchStream
from .bodies._lists import PAGE_SIZE as PAGE_SIZE
from .bodies._lists import ObjectList as ObjectList
from .bodies._undecodable import Undecodable as Undecodable
from .bodies._undecodable import UndecodableHandler as UndecodableHandler
from .bodies._wire_format import EventType as EventType

if TYPE_CHECKING:
    from ._api_resources import ApiResources as ApiResources
    from ._raw import Health as Health
    from ._raw import HealthCheck as HealthCheck
    from ._raw import QueryParams as QueryParams
    from ._raw import RawLines as RawLines
    from ._raw import RawResponse as RawResponse
    from ._raw import RawStream as RawStream
    from ._raw import RequestBody as RequestBody

# Imported on first use: most programs do not need them.
_LATER: Final = {
    "ApiResources": "_api_resources",
    "Health": "_raw",
    "HealthCheck": "_raw",
    "QueryParams": "_raw",
    "RawLines": "_raw",
    "RawResponse": "_raw",
    "RawStream": "_raw",
    "RequestBody": "_raw",
}

__all__ = [
    "PAGE_SIZE",
    "Api",
    "ApiResources",
    "Client",
    "ClientOptions",
    "EventType",
    "FieldSelectorLike",
    "FieldValidation",
    "Health",
    "HealthCheck",
    "LabelSelectorLike",
    "ListOptions",
    "ObjectList",
    "ObjectRef",
    "OwnSubresource",
    "PatchType",
    "PropagationPolicy",
    "QueryParams",
    "RawLines",
    "RawResponse",
    "RawStream",
    "RequestBody",
    "Undecodable",
    "UndecodableHandler",
    "VersionInfo",
    "WatchEvent",
    "WatchStream",
    "open_client",
    "retry_on_conflict",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = _names_on_demand(globals(), _LATER)
