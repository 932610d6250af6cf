"""The ASGI application that calls the functions of webhooks."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, final

import attrs
import trio

from .._asgi import Message, Receive, Send, until_disconnect
from .._suggestions import describe
from .._text import suppressed_lines
from .._util import LogLimit, Slices, first_leaf
from ..errors import DecodeError
from ..models import resource_of
from ..models._internal import Raw
from ..models.apiextensions_v1 import CustomResourceConversion
from . import _configurations, _reviews
from ._admission import Denied
from ._declarations import Converters, Kind, Mutate, Route, Validate, Webhook, check_converters, path_of, routes_of
from ._reviews import Admission, ResultError, ReviewError

logger: Final = logging.getLogger("trioformer.webhooks")

_LIBRARY: Final = Path(__file__).parents[1]

MAX_ADMISSION: Final = 7 * 1024 * 1024
"""The maximum size of an AdmissionReview: two objects of at most 3 MiB, as in controller-runtime."""
MAX_CONVERSION: Final = 64 * 1024 * 1024
"""The maximum size of a ConversionReview, which contains all objects of a list."""


@final
@attrs.frozen
class Response:
    """An HTTP response."""

    code: int
    body: bytes
    content_type: bytes = b"text/plain; charset=utf-8"
    headers: tuple[tuple[bytes, bytes], ...] = ()


@final
@attrs.define(eq=False, kw_only=True, repr=False)
class Webhooks:
    """Admission and conversion webhooks, which are also the ASGI application that serves them.

    ::

        async def check(request: AdmissionRequest[Website]) -> list[str]:
            if request.object.spec.replicas > 10:
                raise Denied("too many replicas", {"spec.replicas": "must be at most 10"})
            return []

        webhooks = Webhooks(validate={Website: check})

    Serve the application with :class:`WebhookServer`, or mount it in an application that a server runs with trio.  Its
    paths are ``/validate/<group>/<plural>``, ``/mutate/<group>/<plural>`` and ``/convert/<group>/<plural>``.  The core
    group has the name ``core``.

    If a function raises any other exception than `Denied`, or is not done half a second before the timeout, the
    response has the HTTP status 500, and kube-apiserver applies the ``failure_policy``.  The log contains the class
    and the place of the exception, but neither its text nor the object, because both may contain secrets.

    Raises:
        ValueError: A declaration contradicts itself, for example because two classes are versions of the same kind.
        TypeError: An argument is not a mapping, a key is not a kind, or a value is not a function.
    """

    validate: Mapping[Kind, Validate | Webhook] = attrs.field(factory=dict, on_setattr=attrs.setters.frozen)
    """For each kind, an async function that raises `Denied`, or returns warnings for the user or None."""
    mutate: Mapping[Kind, Mutate | Webhook] = attrs.field(factory=dict, on_setattr=attrs.setters.frozen)
    """For each kind, an async function that returns the changed object or None.  Members that the class does not have
    are kept."""
    convert: Mapping[Kind, Converters] = attrs.field(factory=dict, on_setattr=attrs.setters.frozen)
    """For each kind, the hub, a mapping of its other versions to a pair of functions: to the hub, and back.  The
    functions are synchronous, and must not lose what another version cannot express."""
    _routes: dict[str, Route] = attrs.field(init=False)
    """The admission webhooks by path."""
    _hubs: dict[str, Kind] = attrs.field(init=False)
    """The hubs of conversions by path."""
    _log_limit: LogLimit = attrs.field(factory=lambda: LogLimit(60.0), init=False)

    def __attrs_post_init__(self) -> None:
        for name in ("validate", "mutate", "convert"):
            if not isinstance(given := getattr(self, name), Mapping):
                raise TypeError(f"{name} must be a mapping of kinds, such as {{Website: check}}, not {describe(given)}")
        self._routes = routes_of("validate", self.validate) | routes_of("mutate", self.mutate)
        for hub, converters in self.convert.items():
            check_converters(hub, converters)
        self._hubs = {path_of("convert", resource_of(hub)): hub for hub in self.convert}

    def __repr__(self) -> str:
        return f"<Webhooks {' '.join([*self._routes, *self._hubs])}>"

    # --- the objects in the cluster -----------------------------------------------------------------------------------

    def configurations(
        self, *, service: str, namespace: str, port: int = 443, url: str | None = None, ca: str | bytes | None = None
    ) -> tuple[_configurations.Configuration, ...]:
        """Return the objects that tell kube-apiserver to call the admission webhooks.

        The result contains a ``ValidatingWebhookConfiguration`` and a ``MutatingWebhookConfiguration``, or only one of
        them.  Their name is ``<service>.<namespace>``.

        Args:
            service: The name of the Service of the webhooks.
            namespace: The namespace of the Service, in which the operator runs.
            port: The port of the Service.
            url: The base URL that kube-apiserver uses instead of the Service, for example to reach a program outside
                of the cluster.
            ca: The certificates in PEM format that kube-apiserver trusts.  The default, None, is for a program that
                adds them later, such as cert-manager, or for a certificate that the system trusts.

        Raises:
            ValueError: ``service`` or ``namespace`` is not a DNS label, ``url`` is not an ``https`` URL without a
                query, or ``ca`` does not contain certificates.
        """
        place = _configurations.Place(service=service, namespace=namespace, port=port, url=url, ca=ca)
        return tuple(_configurations.configurations(self._routes.values(), place))

    def conversion(
        self,
        hub: Kind,
        *,
        service: str,
        namespace: str,
        port: int = 443,
        url: str | None = None,
        ca: str | bytes | None = None,
    ) -> CustomResourceConversion:
        """Return the argument ``conversion`` of :func:`~trioformer.crds.crd_of` for a kind in ``convert``.

        The other arguments are those of :meth:`configurations`.

        Raises:
            KeyError: ``convert`` does not contain the class.
            ValueError: Another argument is not valid.
        """
        if hub not in self.convert:
            raise KeyError(f"{hub.__name__} is not a hub in convert=")
        place = _configurations.Place(service=service, namespace=namespace, port=port, url=url, ca=ca)
        return _configurations.conversion(hub, place)

    # --- the ASGI application -----------------------------------------------------------------------------------------

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Respond to an HTTP request."""
        if scope["type"] != "http":
            raise ValueError(f"webhooks are served only over HTTP, not for the ASGI scope {scope['type']!r}")
        response = await self._respond(scope, receive)
        length = b"content-length", str(len(response.body)).encode()
        headers = [(b"content-type", response.content_type), length, *response.headers]
        await send({"type": "http.response.start", "status": response.code, "headers": headers})
        await send({"type": "http.response.body", "body": response.body, "more_body": False})

    async def _respond(self, scope: Message, receive: Receive) -> Response:
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        route, hub = self._routes.get(path), self._hubs.get(path)
        if route is None and hub is None:
            return Response(404, b"there is no webhook with this path\n")
        if scope["method"] != "POST":
            return Response(405, b"a webhook is called with POST\n", headers=((b"allow", b"POST"),))
        types = [value for name, value in scope["headers"] if name.lower() == b"content-type"]
        if [each.partition(b";")[0].strip().lower() for each in types] != [b"application/json"]:
            return Response(415, b"the content type must be application/json\n")
        body = await _read_body(receive, MAX_CONVERSION if route is None else MAX_ADMISSION)
        if body is None:
            return Response(413, b"the body is too large\n")
        try:
            if route is not None:
                return await self._admit(route, body, receive)
            assert hub is not None  # otherwise, the path is unknown
            return await self._convert(path, hub, body)
        except ReviewError as error:
            return Response(400, f"{error}\n".encode())

    async def _admit(self, route: Route, body: bytes, receive: Receive) -> Response:
        admission = _reviews.read_admission(route.kind, body)
        deadline = trio.current_time() + route.period
        try:
            response = await until_disconnect(receive, partial(_review, route, admission), deadline=deadline)
        except Exception as error:  # noqa: BLE001  # the documented boundary to the program's functions
            refusal = _refusal_in(error)
            denied = refusal and _json(_reviews.denied(admission, refusal))
            return denied or _failed(self._log(route.path, error))
        if response is not None:
            return response
        if trio.current_time() < deadline:
            return _failed("the client has disconnected")
        problem = f"{route.path}: the function was cancelled after {route.period:g} s"
        logger.error("%s", problem)
        return _failed(problem)

    async def _convert(self, path: str, hub: Kind, body: bytes) -> Response:
        conversion = _reviews.read_conversion(body)
        slices, objects = Slices(), list[bytes | Raw]()
        for raw in conversion.objects:
            try:
                objects.append(_reviews.convert(hub, self.convert[hub], raw, conversion.desired))
            except Exception as error:  # noqa: BLE001  # as above
                return _json(_reviews.converted(conversion, problem=self._log(path, error)))
            if slices.is_over():
                await slices.checkpoint()
        return _json(_reviews.converted(conversion, objects))

    def _log(self, path: str, error: Exception) -> str:
        """Log an exception without its text, and return its description, which does not contain the text either."""
        problem = f"{path}: {_describe(error)}"
        if count := self._log_limit.count(problem):
            stack = "".join(traceback.format_tb(error.__traceback__)).rstrip()
            logger.error("%s%s\n%s", problem, suppressed_lines(count - 1), stack)
        return problem


async def _read_body(receive: Receive, limit: int) -> bytes | None:
    """Return the body of a request, or None if it is larger than the limit."""
    body = bytearray()
    more_body = True
    while more_body:
        message = await receive()
        body += message.get("body", b"")  # a client that disconnects leaves a body that is cut off
        if len(body) > limit:
            return None
        more_body = message.get("more_body", False)
    return bytes(body)


async def _review(route: Route, admission: Admission) -> Response:
    calling = route.webhook.function(admission.request)
    if not hasattr(calling, "__await__"):  # the error of await does not name the function
        raise ResultError("the function must be an async function")
    return _json(_allowed(route, admission, await calling))


def _allowed(route: Route, admission: Admission, found: object) -> bytes:
    """Return the response for the result of a function.  A result of another type is a ResultError."""
    if route.verb == "mutate":
        return _reviews.allowed(admission, changed=found)
    warnings = () if found is None else found
    if not isinstance(warnings, list | tuple) or not all(isinstance(each, str) for each in warnings):
        raise ResultError("the function must return a list of warnings or None, and raise Denied to refuse")
    return _reviews.allowed(admission, warnings)


def _refusal_in(error: Exception) -> Denied | None:
    """Return the `Denied` that a function has raised, perhaps in a nursery and therefore in a group."""
    if isinstance(error, ExceptionGroup):
        denied, others = error.split(Denied)
        error = error if denied is None or others is not None else first_leaf(denied) or error
    return error if isinstance(error, Denied) else None


def _describe(error: Exception) -> str:
    """Return the class and the place of an exception, because its text may quote the object."""
    if isinstance(error, DecodeError | ResultError):
        return str(error)  # it names only the field or the class
    leaf = first_leaf(error) or error
    frames = traceback.extract_tb(leaf.__traceback__)
    # An object of the library raises errors too, for example if a field is misspelt.
    frame = ([each for each in frames if not Path(each.filename).is_relative_to(_LIBRARY)] or frames)[-1]
    return f"{type(leaf).__name__} in {frame.name}, {Path(frame.filename).name}:{frame.lineno}"


def _json(body: bytes) -> Response:
    return Response(200, body, b"application/json")


def _failed(text: str) -> Response:
    return Response(500, f"{text}\n".encode())
