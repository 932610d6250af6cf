"""Many controllers in one process: which of them run, in what order they begin and end, and how they are asked.

::

    HTTP ─▶ caches ─▶ leadership ─▶ controllers        begins from left to right, ends from right to left

:func:`run_controllers` is all of it, and needs no extra; its ``http=`` and :func:`follow_file` need
``trioformer[manager]``.

- ``_run_controllers.py``: the function; ``_enabled.py``: the list; ``_starters.py``: what it is given
- ``_run.py``: the order; ``_members.py``: what becomes of each controller
- ``_health.py``, ``_http.py``: how it is asked
- ``_follow_file.py``: a configuration file that is read again
"""

from __future__ import annotations

from ._enabled import enabled_controllers as enabled_controllers
from ._follow_file import FollowedFile as FollowedFile
from ._follow_file import follow_file as follow_file
from ._initializers import ControllerInitializer as ControllerInitializer
from ._initializers import LeaderElection as LeaderElection
from ._initializers import ManagerContext as ManagerContext
from ._initializers import Runnable as Runnable
from ._run_controllers import run_controllers as run_controllers
