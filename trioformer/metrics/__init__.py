"""Prometheus metrics: those of client-go and controller-runtime by their names, and an informer's own.

::

    Controller, WorkQueue, Client ──tell──▶ observers ──count──┐
    Controller, WorkQueue, factory, elector ◀──ask── scrape ───┴─▶ registry ─▶ render() ─▶ /metrics

What happens is counted as it happens, by the observers that :class:`Metrics` makes; what is, is read when somebody
scrapes.  Needs prometheus-client, the extra ``trioformer[metrics]``.

- ``_metrics.py``: :class:`Metrics`
- ``_observers.py``: what is counted
- ``_scrape.py``: what is read
"""

from __future__ import annotations

try:
    import prometheus_client as _  # noqa: F401  # only to say what to install
except ModuleNotFoundError as _missing:
    if _missing.name != "prometheus_client":
        raise
    raise ModuleNotFoundError(
        "trioformer.metrics needs prometheus-client; install it with `pip install 'trioformer[metrics]'`",
        name=_missing.name,
    ) from _missing

from ._metrics import Metrics as Metrics
