"""Admission and conversion webhooks: async functions of typed objects, and the ASGI application that calls them.

A function receives an :class:`AdmissionRequest`.  To refuse the request, it raises :class:`Denied`::

    webhooks = Webhooks(validate={Website: check}, mutate={Website: complete})
    await run_controllers(client, initializers, webhooks=WebhookServer(webhooks, certificate="tls.crt", key="tls.key"))

- ``_admission.py``: :class:`AdmissionRequest`, :class:`Denied`
- ``_declarations.py``: :class:`Webhook`, and the checks of a declaration
- ``_webhooks.py``: :class:`Webhooks`, the ASGI application
- ``_reviews.py``: reads AdmissionReviews and ConversionReviews, and writes their responses
- ``_json_patch.py``: computes the JSON patch of a mutation
- ``_configurations.py``: the objects that tell kube-apiserver to call webhooks
- ``_server.py``: :class:`WebhookServer`, which serves the application over TLS
"""

from __future__ import annotations

from ._admission import AdmissionRequest as AdmissionRequest
from ._admission import Denied as Denied
from ._declarations import Webhook as Webhook
from ._server import WebhookServer as WebhookServer
from ._webhooks import Webhooks as Webhooks

__all__ = ["AdmissionRequest", "Denied", "Webhook", "WebhookServer", "Webhooks"]
