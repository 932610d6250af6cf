"""The manager, which runs several controllers in one process and serves their health over HTTP.

::

    HTTP ─▶ caches ─▶ event recorders ─▶ leadership ─▶ controllers   starts from left to right, stops from right to left

The entry point is :func:`run_controllers`.  The argument ``metrics=`` and the function :func:`follow_file` require the
extra ``trioformer[manager]``.

- ``_run_controllers.py``: :func:`run_controllers`
- ``_initializers.py``: :class:`ManagerContext`, :class:`LeaderElection`
- ``_enabled.py``: the selection of controllers by a list such as ``"*,-foo"``
- ``_follow_file.py``: :func:`follow_file`, :class:`FollowedFile`
- ``_run.py``: one run of the manager, with its order and its health checks
- ``_managed.py``: one controller of a run, and its phase
- ``_http_options.py``: :class:`HTTPOptions`; ``_http.py``: the HTTP endpoints
- ``_token_checks.py``: checks of the tokens that may read the metrics
- ``_health.py``: the responses of health checks
"""

from __future__ import annotations

from ._follow_file import FollowedFile as FollowedFile
from ._follow_file import follow_file as follow_file
from ._http_options import HTTPOptions as HTTPOptions
from ._initializers import LeaderElection as LeaderElection
from ._initializers import ManagerContext as ManagerContext
from ._run_controllers import run_controllers as run_controllers

__all__ = [
    "FollowedFile",
    "HTTPOptions",
    "LeaderElection",
    "ManagerContext",
    "follow_file",
    "run_controllers",
]
