"""Kubernetes client machinery for trio: every task has an owner, and every buffer is bounded.

The packages, in the order in which data flows through them::

    trioformer.kubeconfig       kubeconfig files and in-cluster configuration → ClusterConfig
    trioformer.models           the API's objects: lazy, frozen, encoded without loss (core_v1, apps_v1, …)
    trioformer.transport        bytes: connections, credentials, frames
    trioformer.client           requests: open_client(), Client, Api[T], watches
    trioformer.manifests        YAML and JSON files: load, apply, prune, wait, delete
    trioformer.watchtools       a watch that resumes after failures, and wait_for()
    trioformer.crds             CustomResourceDefinitions from classes, and install_crds()
    trioformer.cache            reflector, delta FIFO, indexer, lister, shared informers and their factory
    trioformer.workqueue        keys for workers, each key for one worker at a time; does not depend on Kubernetes
    trioformer.controller       requests, predicates, Controller, expectations, adoption
    trioformer.leaderelection   one of several processes leads
    trioformer.events           the event recorder
    trioformer.pods             logs, commands, ports and files of pods
    trioformer.metrics          Prometheus metrics of all of these
    trioformer.webhooks         admission and conversion webhooks: async functions of typed objects
    trioformer.manager          many controllers in one process: order, leadership, health over HTTP, a watched file
    trioformer.aio              clients, caches and controllers for asyncio programs
    trioformer.sync             clients and caches for threads
    trioformer.aio              a door for asyncio programs
    trioformer.sync             a door for threads
    trioformer.cli              the command line tool, python -m trioformer
    trioformer.testing          an API server in your process, and a real control plane for tests
    trioformer.errors           every exception

This module re-exports the most common names. Import kinds from their API group, for example ``from
trioformer.models.core_v1 import Pod``.
:func:`run` runs a program, shuts it down cleanly on Ctrl-C and SIGTERM, and returns its exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._run import run as run
from ._util import names_on_demand as _names_on_demand
from ._version import __version__ as __version__

if TYPE_CHECKING:
    from .cache import Added as Added
    from .cache import Deleted as Deleted
    from .cache import FilteringHandler as FilteringHandler
    from .cache import HandlerRegistration as HandlerRegistration
    from .cache import Lister as Lister
    from .cache import Notification as Notification
    from .cache import ReflectorOptions as ReflectorOptions
    from .cache import ResourceEventHandler as ResourceEventHandler
    from .cache import SharedInformer as SharedInformer
    from .cache import SharedInformerFactory as SharedInformerFactory
    from .cache import Subscription as Subscription
    from .cache import Updated as Updated
    from .cache import annotation_index as annotation_index
    from .cache import field_index as field_index
    from .cache import label_index as label_index
    from .client import Api as Api
    from .client import Client as Client
    from .client import ClientOptions as ClientOptions
    from .client import ListOptions as ListOptions
    from .client import ObjectList as ObjectList
    from .client import WatchEvent as WatchEvent
    from .client import open_client as open_client
    from .errors import AlreadyExistsError as AlreadyExistsError
    from .errors import CacheNotSyncedError as CacheNotSyncedError
    from .errors import CacheSyncError as CacheSyncError
    from .errors import ConfigError as ConfigError
    from .errors import ConflictError as ConflictError
    from .errors import ConnectionFailedError as ConnectionFailedError
    from .errors import ExpiredError as ExpiredError
    from .errors import ForbiddenError as ForbiddenError
    from .errors import InvalidError as InvalidError
    from .errors import NotFoundError as NotFoundError
    from .errors import StatusError as StatusError
    from .errors import TrioformerError as TrioformerError
    from .kubeconfig import ClusterConfig as ClusterConfig
    from .kubeconfig import load_config as load_config
    from .models import KubernetesObject as KubernetesObject
    from .models import Model as Model
    from .models import ObjectMeta as ObjectMeta
    from .models import Quantity as Quantity
    from .models import ResourceInfo as ResourceInfo
    from .watchtools import has_condition as has_condition
    from .watchtools import resuming_watch as resuming_watch
    from .watchtools import wait_for as wait_for

# Imported when they are used first: a program that only sends requests loads no caches.
_NAMES: Final = {
    "cache": (
        "Added Deleted FilteringHandler HandlerRegistration Lister Notification ReflectorOptions "
        "ResourceEventHandler SharedInformer SharedInformerFactory Subscription Updated annotation_index field_index "
        "label_index"
    ),
    "client": "Api Client ClientOptions ListOptions ObjectList WatchEvent open_client",
    "errors": (
        "AlreadyExistsError CacheNotSyncedError CacheSyncError ConfigError ConflictError ConnectionFailedError "
        "ExpiredError ForbiddenError InvalidError NotFoundError StatusError TrioformerError"
    ),
    "kubeconfig": "ClusterConfig load_config",
    "models": "KubernetesObject Model ObjectMeta Quantity ResourceInfo",
    "watchtools": "has_condition resuming_watch wait_for",
}
_PACKAGES: Final = frozenset(
    [
        "aio",
        "cache",
        "cli",
        "client",
        "controller",
        "crds",
        "errors",
        "events",
        "kubeconfig",
        "leaderelection",
        "pods",
        "sharding",
        "sync",
        "manager",
        "manifests",
        "metrics",
        "models",
        "testing",
        "transport",
        "watchtools",
        "webhooks",
        "workqueue",
    ]
)
_PLACES: Final = {name: package for package, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Added",
    "AlreadyExistsError",
    "Api",
    "CacheNotSyncedError",
    "CacheSyncError",
    "Client",
    "ClientOptions",
    "ClusterConfig",
    "ConfigError",
    "ConflictError",
    "ConnectionFailedError",
    "Deleted",
    "ExpiredError",
    "FilteringHandler",
    "ForbiddenError",
    "HandlerRegistration",
    "InvalidError",
    "KubernetesObject",
    "ListOptions",
    "Lister",
    "Model",
    "NotFoundError",
    "Notification",
    "ObjectList",
    "ObjectMeta",
    "Quantity",
    "ReflectorOptions",
    "ResourceEventHandler",
    "ResourceInfo",
    "SharedInformer",
    "SharedInformerFactory",
    "StatusError",
    "Subscription",
    "TrioformerError",
    "Updated",
    "WatchEvent",
    "__version__",
    "annotation_index",
    "field_index",
    "has_condition",
    "label_index",
    "load_config",
    "open_client",
    "resuming_watch",
    "run",
    "wait_for",
]


if not TYPE_CHECKING:
    __getattr__, __dir__ = _names_on_demand(globals(), _PLACES, _PACKAGES)
