"""The exceptions that trioformer raises.

::

    TrioformerError
    ├── ConfigError                     a kubeconfig or in-cluster file is not valid: ``problems`` name files and keys
    ├── ManifestError                   manifests are not valid: ``problems`` name file and line (also a ValueError)
    ├── ManifestsFailedError            manifests were not applied, not deleted or not ready: ``failures`` name them
    ├── RolloutFailedError              an object, such as a failed Job, can no longer become ready
    ├── SelectorError                   a label or field selector does not parse (also a ValueError)
    ├── SchemaError                     a class is not a valid CustomResourceDefinition: names class, field, file, line
    ├── CRDInstallError                 a definition would drop a stored version, or its names are taken
    ├── DecodeError                     bytes are not JSON, or do not match the type (also a ValueError)
    ├── ConnectionFailedError           no complete response: refused, reset, TLS, timeout, early end
    │   ├── ExecPluginError             a credential plugin failed or is not allowed: the request was not sent
    │   └── ProxyError                  the proxy did not connect: the server has not received the request
    ├── CommandFailedError              a command in a container exited with a code other than 0
    ├── CopyFailedError                 files were not copied to or from a container: tar failed, or its archive is bad
    ├── PortForwardError                no pod is running, the pod lacks the port, or nothing listens on it
    ├── ListenError                     a port cannot be listened on (also an OSError)
    ├── LimitExceededError              a response or an output exceeded a limit, which ``limit`` names
    ├── UnexpectedResponseError         a success or redirect that is not from an API server: HTML, incomplete JSON
    ├── StatusError                     HTTP 4xx and 5xx: code, reason, message, details
    │   ├── BadRequestError             400
    │   ├── UnauthorizedError           401
    │   ├── ForbiddenError              403
    │   ├── NotFoundError               404
    │   │   └── NotInCacheError         raised by ``lister[key]`` without a request to the server
    │   ├── MethodNotAllowedError       405
    │   ├── ConflictError               409: the object has changed since it was read
    │   │   ├── AlreadyExistsError      409 on create
    │   │   └── ApplyConflictError      409 on apply: ``conflicts`` name fields and managers
    │   ├── ExpiredError                410: the resourceVersion or continue token is too old
    │   ├── InvalidError                422: details.causes name the fields
    │   ├── TooManyRequestsError        429: details.retry_after_seconds
    │   └── ServerError                 5xx
    │       ├── InternalServerError     500
    │       ├── ServiceUnavailableError 503
    │       └── ServerTimeoutError      504
    ├── CacheNotSyncedError             a lister was used before its cache had synced
    ├── QuarantinedError                the newest state of an object cannot be stored: names the key and the reason
    ├── NotOwnedError                   another process caches an object, or its range is not cached yet
    ├── CacheSyncError                  caches have not synced in time: names each with its reason
    ├── IndexerError                    an index is unknown or already exists, or its function failed
    ├── LeadershipLostError             a lease could not be kept, and the leader code was cancelled
    ├── TransformError                  an informer's transform failed, or changed the identity of an object
    └── HandlerOverflowError            a handler with overflow="block" fell behind

Using an object after it was closed, or in two tasks at the same time, raises one of trio's own errors
(``trio.ClosedResourceError``, ``trio.BusyResourceError``, …) or a ``RuntimeError``. The text of an error is a single
line, which names the object and, if possible, suggests a fix. The text never contains a secret.

- ``_base.py``: :class:`TrioformerError`, and the errors of configurations, connections and limits
- ``_status.py``: :class:`StatusError`, a class for each reason, and the details of a Status
- ``_manifests.py``: the errors of manifests
- ``_cache.py``: the errors of caches and leader election
- ``_internal.py``: names for other packages of trioformer
"""

from __future__ import annotations

from ._base import CommandFailedError as CommandFailedError
from ._base import ConfigError as ConfigError
from ._base import ConnectionFailedError as ConnectionFailedError
from ._base import CopyFailedError as CopyFailedError
from ._base import CRDInstallError as CRDInstallError
from ._base import DecodeError as DecodeError
from ._base import ExecPluginError as ExecPluginError
from ._base import LimitExceededError as LimitExceededError
from ._base import ListenError as ListenError
from ._base import PortForwardError as PortForwardError
from ._base import ProxyError as ProxyError
from ._base import SchemaError as SchemaError
from ._base import SelectorError as SelectorError
from ._base import TrioformerError as TrioformerError
from ._base import UnexpectedResponseError as UnexpectedResponseError
from ._cache import CacheNotSyncedError as CacheNotSyncedError
from ._cache import CacheSyncError as CacheSyncError
from ._cache import HandlerOverflowError as HandlerOverflowError
from ._cache import IndexerError as IndexerError
from ._cache import LeadershipLostError as LeadershipLostError
from ._cache import NotOwnedError as NotOwnedError
from ._cache import QuarantinedError as QuarantinedError
from ._cache import TransformError as TransformError
from ._manifests import ManifestError as ManifestError
from ._manifests import ManifestsFailedError as ManifestsFailedError
from ._manifests import RolloutFailedError as RolloutFailedError
from ._status import AlreadyExistsError as AlreadyExistsError
from ._status import ApplyConflictError as ApplyConflictError
from ._status import BadRequestError as BadRequestError
from ._status import ConflictError as ConflictError
from ._status import ExpiredError as ExpiredError
from ._status import ForbiddenError as ForbiddenError
from ._status import InternalServerError as InternalServerError
from ._status import InvalidError as InvalidError
from ._status import MethodNotAllowedError as MethodNotAllowedError
from ._status import NotFoundError as NotFoundError
from ._status import NotInCacheError as NotInCacheError
from ._status import ServerError as ServerError
from ._status import ServerTimeoutError as ServerTimeoutError
from ._status import ServiceUnavailableError as ServiceUnavailableError
from ._status import StatusError as StatusError
from ._status import TooManyRequestsError as TooManyRequestsError
from ._status import UnauthorizedError as UnauthorizedError

__all__ = [
    "AlreadyExistsError",
    "ApplyConflictError",
    "BadRequestError",
    "CRDInstallError",
    "CacheNotSyncedError",
    "CacheSyncError",
    "CommandFailedError",
    "ConfigError",
    "ConflictError",
    "ConnectionFailedError",
    "CopyFailedError",
    "DecodeError",
    "ExecPluginError",
    "ExpiredError",
    "ForbiddenError",
    "HandlerOverflowError",
    "IndexerError",
    "InternalServerError",
    "InvalidError",
    "LeadershipLostError",
    "LimitExceededError",
    "ListenError",
    "ManifestError",
    "ManifestsFailedError",
    "MethodNotAllowedError",
    "NotFoundError",
    "NotInCacheError",
    "NotOwnedError",
    "PortForwardError",
    "ProxyError",
    "QuarantinedError",
    "RolloutFailedError",
    "SchemaError",
    "SelectorError",
    "ServerError",
    "ServerTimeoutError",
    "ServiceUnavailableError",
    "StatusError",
    "TooManyRequestsError",
    "TransformError",
    "TrioformerError",
    "UnauthorizedError",
    "UnexpectedResponseError",
]

for _error in list(globals().values()):  # so that tracebacks and pickles name the public module
    if isinstance(_error, type) and issubclass(_error, TrioformerError):
        _error.__module__ = __name__
