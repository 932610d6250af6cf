"""API servers for tests: an embedded server in the test's process, and a real control plane.

::

    async def test_my_controller(autojump_clock, api_server, k8s_client, nursery):  # fixtures of the pytest plugin
        api_server.create(Pod(metadata=ObjectMeta(name="web-0")))                   # takes effect immediately
        await nursery.start(factory.run)                                            # your code, with k8s_client
        api_server.compact()
        api_server.disconnect_watches()                                             # the next watch gets 410
        await trio.sleep(60)                                                        # virtual time, no sockets

:class:`APIServer` is an embedded API server with etcd's semantics.  Clients in the same process reach the server in
memory.
The function :func:`serve_http` and the command ``python -m trioformer.testing serve`` make the server available on a
socket.
:class:`ControlPlane` runs a real etcd and kube-apiserver, and optionally kube-controller-manager and nodes.

- ``_server.py``: :class:`APIServer`
- ``_direct_api.py``: the direct API of :class:`APIServer`
- ``_state.py``: :class:`APIServerStatistics`, :class:`APIServerSnapshot`, and the loading of objects from files
- ``_scripted_pods.py``: :class:`ScriptedPod`, a pod whose containers a test scripts
- ``_controllers/``: the controllers of ``APIServer(controllers=True)``
- ``_convert.py``: conversions between objects, dicts and stored states
- ``_in_memory.py``: the httpx transport without sockets
- ``_serve_http.py``: :func:`serve_http`
- ``_simulation.py``: :func:`open_simulated_cluster`, a cluster with activity for demos
- ``_plugin.py``: the fixtures of the pytest plugin
- ``_role_check.py``: the comparison of an operator's role with what its tests use
- ``_recording.py``: the permissions that operators use in tests
- ``_role_files.py``: the files with roles
- ``__main__.py``: the command ``python -m trioformer.testing serve``
- ``_serving/``: the embedded server's HTTP side
- ``_storage/``: the embedded server's objects, revisions and rules
- ``control_plane/``: :class:`ControlPlane`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util import names_on_demand as _names_on_demand

if TYPE_CHECKING:
    from ._scripted_pods import ScriptedPod as ScriptedPod
    from ._scripted_pods import run_pod as run_pod
    from ._serve_http import serve_http as serve_http
    from ._server import APIServer as APIServer
    from ._serving._scripted_connections import ScriptedConnection as ScriptedConnection
    from ._serving._scripted_processes import ScriptedProcess as ScriptedProcess
    from ._simulation import open_simulated_cluster as open_simulated_cluster
    from .control_plane import ControlPlane as ControlPlane

__all__ = [
    "APIServer",
    "ControlPlane",
    "ScriptedConnection",
    "ScriptedPod",
    "ScriptedProcess",
    "open_simulated_cluster",
    "run_pod",
    "serve_http",
]

# Imported on first access: pytest imports this package with the plugin in every environment with trioformer, and
# ControlPlane requires trustme, which is in the extra `testing`.
_MODULES = {
    "APIServer": "_server",
    "ControlPlane": "control_plane",
    "ScriptedConnection": "_serving._scripted_connections",
    "ScriptedPod": "_scripted_pods",
    "ScriptedProcess": "_serving._scripted_processes",
    "open_simulated_cluster": "_simulation",
    "run_pod": "_scripted_pods",
    "serve_http": "_serve_http",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = _names_on_demand(globals(), _MODULES)
