"""A door for threads: trioformer's clients and caches for Flask, Django, scripts and other programs without a loop.

::

    with sync.open_cache(Pod, namespace="default") as pods:
        pods.wait_until_synced()
        for pod in pods.list(label_selector="app=web"):
            ...

Trio runs in one thread, the portal, which all doors of the process share.  It starts with the first door and ends with
the last.  Any thread may use a door.  Calls have no argument for a time limit, because
:class:`~trioformer.client.ClientOptions` limits each request; Ctrl-C, or another exception of a signal handler, cancels
the call that it interrupts.

After ``fork()``, the child has no portal: the doors of the parent raise RuntimeError, and new doors start a new portal.

- ``_portal.py``: the thread, and the calls from other threads
- ``_client.py``: :func:`open_client`
- ``_proxies.py``: :class:`Client`, :class:`Api` and :class:`WatchStream`, with generated types
- ``_cache.py``: :func:`open_cache`, :func:`start_cache` and :class:`Cache`
"""

from __future__ import annotations

from ._cache import Cache as Cache
from ._cache import open_cache as open_cache
from ._cache import start_cache as start_cache
from ._client import open_client as open_client
from ._proxies import Api as Api
from ._proxies import Client as Client
from ._proxies import WatchStream as WatchStream

__all__ = ["Api", "Cache", "Client", "WatchStream", "open_cache", "open_client", "start_cache"]
