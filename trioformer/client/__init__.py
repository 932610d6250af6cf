"""Requests to the API server: read, write, list, watch and discover objects.

- ``_client.py``: :func:`open_client` and :class:`Client`, a client of one cluster
- ``_client_writes.py``: the methods of a client that write one object
- ``_api_verbs.py``: the verbs of :class:`Api`; ``_api.py``: its other methods, such as ``scale`` and ``evict``
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

from ..transport._internal import ClientOptions as ClientOptions
from ._api import Api as Api
from ._client import Client as Client
from ._client import open_client as open_client
from ._object_ref import ObjectRef as ObjectRef
from ._options import ListOptions as ListOptions
from ._retry_on_conflict import retry_on_conflict as retry_on_conflict
from ._watch import WatchEvent as WatchEvent
from ._watch import WatchStream as WatchStream
from .bodies._lists import ObjectList as ObjectList
from .bodies._undecodable import Undecodable as Undecodable

__all__ = [
    "Api",
    "Client",
    "ClientOptions",
    "ListOptions",
    "ObjectList",
    "ObjectRef",
    "Undecodable",
    "WatchEvent",
    "WatchStream",
    "open_client",
    "retry_on_conflict",
]
