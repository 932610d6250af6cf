"""The API server, in your process; a product, not the library's own test helper.

::

    async def test_my_controller(autojump_clock, api_server, client, nursery):     # fixtures of the pytest plugin
        api_server.create(Pod(metadata=ObjectMeta(name="web-0")))                   # the test's own hand, at once
        await nursery.start(factory.run)                                            # your code, over the client
        api_server.compact()
        api_server.disconnect_watches()                                             # the next watch gets 410
        await trio.sleep(60)                                                        # virtual time, no sockets

:class:`APIServer` is an ASGI application over a storage with etcd's manners, reached in memory;
:func:`serve_http` puts it on a socket, as does ``python -m trioformer.testing serve``.
:class:`ControlPlane` starts a real etcd and kube-apiserver, and if asked for what makes them a living cluster.

The rooms:

- ``_server.py``: :class:`APIServer`, what a test sees; ``_flavours.py``: classes or dicts in, the same out
- ``_storage.py``: revisions, history, compaction
- ``_registry.py``, ``_metadata.py``, ``_deletion.py``, ``_custom.py``: the life of objects
- ``_app.py``: ASGI; ``_requests.py`` → ``_resources.py``, ``_subresources.py``, ``_discovery.py`` → ``_answers.py``
- ``_listing.py``, ``_selection.py``, ``_watching.py``, ``_patching.py``: what the verbs do
- ``_rendering.py``, ``_tables.py``, ``_status.py``: how it is said
- ``_in_memory.py``, ``_serve.py``, ``__main__.py``: how it is reached; ``_faults.py``: how it fails when told to
- ``_kinds.py``, ``_clock.py``, ``_statistics.py``, ``_living.py``, ``_plugin.py``
- ``_control_plane.py``, ``_cluster.py``, ``_process.py``, ``_guard.py``, ``_certificates.py``: the real thing
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._serve_http import serve_http as serve_http
    from ._server import APIServer as APIServer
    from ._serving._requests import RequestRecord as RequestRecord
    from ._simulation import live as live
    from ._statistics import APIServerStatistics as APIServerStatistics
    from .control_plane import ControlPlane as ControlPlane
    from .control_plane import ControlPlaneError as ControlPlaneError

__all__ = [
    "APIServer",
    "APIServerStatistics",
    "ControlPlane",
    "ControlPlaneError",
    "RequestRecord",
    "live",
    "serve_http",
]

# Imported when first asked for: pytest imports this package with the plugin, in every project that has trioformer
# installed; and ControlPlane needs cryptography, serve_http hypercorn, which only some have.
_MODULES = {
    "APIServer": "_server",
    "APIServerStatistics": "_statistics",
    "ControlPlane": "control_plane",
    "ControlPlaneError": "control_plane",
    "RequestRecord": "_serving._requests",
    "serve_http": "_serve_http",
    "live": "_simulation",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
