"""Read logs, execute commands, forward ports and copy files in pods, and evict pods.

Every function takes an :class:`~trioformer.client.Api`, usually the API of pods.

- ``_read_logs.py``: the functions :func:`read_logs` and :func:`follow_logs`, which read the log of one container
- ``_logs.py``: the lines of a followed log
- ``_log_lines.py``: the lines of logs
- ``_log_requests.py``: requests for logs
- ``_follow_logs_of.py``: the function :func:`follow_logs_of`, which follows the logs of all pods that match a selector
- ``_exec.py``: the functions :func:`exec_in_pod`, :func:`attach_to_pod` and :func:`run_in_pod`
- ``_processes.py``: the class :class:`PodProcess`
- ``_terminal.py``: the function :func:`interact`
- ``_websocket.py``: the connection to a process
- ``_ports.py``: the functions :func:`forward_port` and :func:`connect_port`
- ``_port_forward.py``: the local port of a forwarded port
- ``_port_streams.py``: one connection to a port
- ``_port_targets.py``: chooses the pod for a port
- ``_copy/``: the functions :func:`copy_to_pod` and :func:`copy_from_pod`
- ``_evict.py``: the function :func:`evict_pods`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._util import names_on_demand as _names_on_demand

if TYPE_CHECKING:
    from ._copy import copy_from_pod as copy_from_pod
    from ._copy import copy_to_pod as copy_to_pod
    from ._evict import evict_pods as evict_pods
    from ._exec import attach_to_pod as attach_to_pod
    from ._exec import exec_in_pod as exec_in_pod
    from ._exec import run_in_pod as run_in_pod
    from ._follow_logs_of import follow_logs_of as follow_logs_of
    from ._ports import connect_port as connect_port
    from ._ports import forward_port as forward_port
    from ._processes import PodProcess as PodProcess
    from ._read_logs import follow_logs as follow_logs
    from ._read_logs import read_logs as read_logs
    from ._terminal import interact as interact

_PLACES: Final = {
    "PodProcess": "_processes",
    "attach_to_pod": "_exec",
    "connect_port": "_ports",
    "copy_from_pod": "_copy",
    "copy_to_pod": "_copy",
    "evict_pods": "_evict",
    "exec_in_pod": "_exec",
    "follow_logs": "_read_logs",
    "follow_logs_of": "_follow_logs_of",
    "forward_port": "_ports",
    "interact": "_terminal",
    "read_logs": "_read_logs",
    "run_in_pod": "_exec",
}

__all__ = [
    "PodProcess",
    "attach_to_pod",
    "connect_port",
    "copy_from_pod",
    "copy_to_pod",
    "evict_pods",
    "exec_in_pod",
    "follow_logs",
    "follow_logs_of",
    "forward_port",
    "interact",
    "read_logs",
    "run_in_pod",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = _names_on_demand(globals(), _PLACES)
