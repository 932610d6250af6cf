"""A door for asyncio programs: trioformer's clients, caches and controllers, with trio as a guest of the loop.

::

    async with aio.open_cache(Pod, namespace="default") as pods:
        await pods.wait_until_synced()
        for pod in pods.list(label_selector="app=web"):
            ...

Trio runs in the loop's thread, and all doors of a loop share it.  It starts with the first door and ends with the last.

- ``_guest.py``: the guest run, and the calls between the two loops
- ``_client.py``: :func:`open_client`
- ``_proxies.py``: :class:`Client`, :class:`Api` and :class:`WatchStream`, with generated types
- ``_cache.py``: :func:`open_cache`, :func:`start_cache` and :class:`Cache`
- ``_controllers.py``: :func:`run_controllers` and :class:`ManagerContext`
"""

from __future__ import annotations

from ._cache import Cache as Cache
from ._cache import open_cache as open_cache
from ._cache import start_cache as start_cache
from ._client import open_client as open_client
from ._controllers import ManagerContext as ManagerContext
from ._controllers import run_controllers as run_controllers
from ._proxies import Api as Api
from ._proxies import Client as Client
from ._proxies import WatchStream as WatchStream

__all__ = [
    "Api",
    "Cache",
    "Client",
    "ManagerContext",
    "WatchStream",
    "open_cache",
    "open_client",
    "run_controllers",
    "start_cache",
]
