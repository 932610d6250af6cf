"""Prometheus metrics of requests, queues, controllers and informers, named as in client-go and controller-runtime.

::

    Controller, WorkQueue, Client ──call──▶ observers ───────────┐
    Controller, WorkQueue, factory, elector ◀──read── collector ─┴─▶ registry ─▶ render() ─▶ /metrics

:class:`Metrics` creates the observers, which count events when they happen.  The collector reads the current state of
the registered objects at each scrape.  This package requires prometheus-client, which the extra ``trioformer[metrics]``
installs.

- ``_metrics.py``: :class:`Metrics`
- ``_observers.py``: the metrics that observers update
- ``_collector.py``: the metrics that are read at each scrape
"""

from __future__ import annotations

try:
    import prometheus_client as _  # noqa: F401  # for the error below
except ModuleNotFoundError as _missing:
    if _missing.name != "prometheus_client":
        raise
    raise ModuleNotFoundError(
        "trioformer.metrics needs prometheus-client; install it with `pip install 'trioformer[metrics]'`",
        name=_missing.name,
    ) from _missing

from ._metrics import Metrics as Metrics

__all__ = ["Metrics"]
