"""Requests: the objects of a cluster, read, written, listed and watched.

- ``_client.py``: :func:`open_client` and :class:`Client`, the connection to one cluster
- ``_api.py``: :class:`Api`, the objects of one kind
- ``_lists.py``: :class:`ObjectList`, and how a list is read while it arrives
- ``_watch.py``: :class:`WatchStream`, an open watch
- ``_discovery.py``: where the objects of a kind live, if it has no class
- ``_forms.py``: how the objects of a kind travel, and whether what came is one
- ``_undecodable.py``: :class:`Undecodable`, what nobody can read
- ``_patch.py``: the three types of patch
- ``_options.py``: selectors and other query parameters
- ``_answers.py``: answers → objects and errors
- ``_retry.py``: a change that is tried again after a conflict

A request is sent once; what to do about a failure is for the caller, or for the informers of :mod:`trioformer.cache`.
"""

from __future__ import annotations

from ._api import Api as Api
from ._api import PropagationPolicy as PropagationPolicy
from ._client import Client as Client
from ._client import VersionInfo as VersionInfo
from ._client import open_client as open_client
from ._lists import PAGE_SIZE as PAGE_SIZE
from ._lists import ObjectList as ObjectList
from ._options import FieldSelectorLike as FieldSelectorLike
from ._options import LabelSelectorLike as LabelSelectorLike
from ._options import ListOptions as ListOptions
from ._patch import PatchType as PatchType
from ._retry_on_conflict import retry_on_conflict as retry_on_conflict
from ._undecodable import Undecodable as Undecodable
from ._undecodable import UndecodableHandler as UndecodableHandler
from ._watch import WatchEvent as WatchEvent
from ._watch import WatchStream as WatchStream

__all__ = [
    "PAGE_SIZE",
    "Api",
    "Client",
    "FieldSelectorLike",
    "LabelSelectorLike",
    "ListOptions",
    "ObjectList",
    "PatchType",
    "PropagationPolicy",
    "Undecodable",
    "UndecodableHandler",
    "VersionInfo",
    "WatchEvent",
    "WatchStream",
    "open_client",
    "retry_on_conflict",
]
