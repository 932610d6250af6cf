"""Clients that read, write, list, watch and discover objects on the API server.

- ``_client.py``: :func:`open_client` and :class:`Client`, a client of one cluster
- ``_client_writes.py``: the methods of a client that create, apply and delete one object
- ``_api_verbs.py``: the verbs of :class:`Api`, such as ``get`` and ``list``
- ``_api.py``: the other methods of :class:`Api`, such as ``scale`` and ``evict``
- ``_api_requests.py``: the requests that the methods of an API send
- ``_paths.py``: the URL paths of a resource
- ``_subresources.py``: responses with objects of another kind than the API's kind
- ``_watch.py``: :class:`WatchStream`, an open watch
- ``_discovery.py``: the lookup of one kind in the resource list of its version
- ``_discover_all.py``: the discovery of all resources of a server
- ``_api_resources.py``: :class:`ApiResources`, and the names of resources that kubectl accepts
- ``_known_kinds.py``: the kinds that a client knows by name
- ``bodies``: the decoding of responses, :class:`ObjectList` and :class:`Undecodable`
- ``_patch.py``: the types of patches
- ``_object_ref.py``: :class:`ObjectRef`, the namespace and name of an object
- ``_client_requests.py`` and ``_raw.py``: requests to any path, and the health of the server
- ``_options.py``: selectors and other query parameters
- ``_writes.py``: a record of the writes of a task
- ``_retry_on_conflict.py``: :func:`retry_on_conflict`
- ``_internal.py``: names that other packages of trioformer import

:mod:`trioformer.transport` retries requests if a retry is safe.  docs/howto/connect.rst describes the rules. Callers
that retry on their own, such as an informer of :mod:`trioformer.cache`, disable these retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util import names_on_demand as _names_on_demand
from ..transport._internal import ClientOptions as ClientOptions
from ._api import Api as Api
from ._client import Client as Client
from ._client import open_client as open_client
from ._object_ref import ObjectRef as ObjectRef
from ._options import ListOptions as ListOptions
from ._watch import WatchEvent as WatchEvent
from ._watch import WatchStream as WatchStream
from .bodies._lists import ObjectList as ObjectList
from .bodies._undecodable import Undecodable as Undecodable

if TYPE_CHECKING:
    from ._retry_on_conflict import retry_on_conflict as retry_on_conflict

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

if not TYPE_CHECKING:  # not needed for reading
    __getattr__, __dir__ = _names_on_demand(globals(), {"retry_on_conflict": "_retry_on_conflict"})
