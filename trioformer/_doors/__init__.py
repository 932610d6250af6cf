"""What the doors of :mod:`trioformer.aio` and :mod:`trioformer.sync` share: jobs, proxies and the reads of a cache.

A door lets a program that does not run on trio use clients and caches.  Its tasks or threads start jobs, which
run in trio.

- ``_jobs.py``: calls of trio functions, and the task that starts them
- ``_proxies.py``: objects that run the methods of clients and APIs as jobs
- ``_caches.py``: caches, whose informers are jobs
"""

from __future__ import annotations

from ._caches import DoorCache as DoorCache
from ._caches import client_of_cache as client_of_cache
from ._jobs import Job as Job
from ._jobs import Jobs as Jobs
from ._proxies import Proxy as Proxy
from ._proxies import Stream as Stream
from ._proxies import proxy_of as proxy_of
from ._proxies import with_parameters_of as with_parameters_of
