"""Requests that schemathesis derives from the OpenAPI documents of the embedded API server.

``nox -s schemathesis`` or ``python -m tests.fuzz.openapi`` sends, for each operation in the documents, twelve
requests that follow the document and twelve that do not.  This module is not one of the other fuzzers, because schemathesis is a
dependency of that session only, and takes a minute for a thousand requests.
"""

from __future__ import annotations

import argparse
import json
import random
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs
import hypothesis
import requests
import schemathesis
import trio
from schemathesis import Case, GenerationMode
from schemathesis.schemas import APIOperation

from tests.e2e.manifest_set import NAMESPACE
from trioformer.errors import StatusError
from trioformer.testing import APIServer

from .engine import Fuzzer, run
from .oracle import Oracle
from .server import JSON_TYPE, Request, ask, samples, send

REQUESTS = 12
"""The requests of one input."""
_SETTINGS = hypothesis.settings(
    max_examples=REQUESTS,
    phases=[hypothesis.Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)


@attrs.frozen
class Requests:
    """Requests of one operation, each with its path, and the object that they are for."""

    sample: dict[str, Any] | None
    following: tuple[tuple[str, Request], ...]


class OpenAPI(Fuzzer[Requests]):
    """Sends requests of one operation to a new server, where the object that they are for exists before each one."""

    name = "openapi"

    def __init__(self, prefix: str = "/openapi/v3") -> None:
        kinds = _new_server()._kinds
        self._samples: dict[str, dict[str, Any]] = {}
        for obj in samples()[1]:
            served = kinds.find_kind(obj["apiVersion"], obj["kind"])
            assert served is not None
            if served.info.namespaced:
                obj["metadata"]["namespace"] = NAMESPACE
            self._samples.setdefault(served.info.path(namespace=obj["metadata"].get("namespace")), obj)
        self.operations = trio.run(_operations, prefix)

    def generate(self, rng: random.Random) -> Requests:
        return self.draw(rng.choice(self.operations), rng.choice(list(GenerationMode)), rng.randrange(2**32))

    async def check(self, given: Requests, oracle: Oracle) -> None:
        server = _new_server()
        for path, request in given.following:
            if given.sample is not None:
                with suppress(StatusError):  # it is still there
                    server.create(given.sample)
            await send(server, path, request, oracle)

    def draw(self, operation: APIOperation, mode: GenerationMode, seed: int) -> Requests:
        """Draw requests of an operation."""
        collection = operation.path.partition("/{name}")[0].replace("/watch/", "/")
        sample = self._samples.get(collection.replace("{namespace}", NAMESPACE))
        values = {"namespace": NAMESPACE} | ({} if sample is None else {"name": sample["metadata"]["name"]})
        values = {name: value for name, value in values.items() if f"{{{name}}}" in operation.path}
        cases: list[Case] = []

        @_SETTINGS
        @hypothesis.seed(seed)
        @hypothesis.given(operation.as_strategy(mode, path_parameters=values or None))
        def draw(case: Case) -> None:
            cases.append(case)

        with suppress(hypothesis.errors.Unsatisfiable):  # every request without parameters follows the document
            draw()
        following = []
        for number, case in enumerate(cases):
            if number % 2 and sample is not None:
                case.body = _merged(sample, case.body)
            made = requests.Request(**case.as_transport_kwargs("http://server")).prepare()
            body = made.body.encode() if isinstance(made.body, str) else made.body or b""
            url = urlsplit(made.url)
            content_type = made.headers.get("content-type", JSON_TYPE)
            following.append((unquote(url.path), Request(made.method, "", url.query, content_type, body)))
        return Requests(sample, tuple(following))


def _new_server() -> APIServer:
    server = APIServer()
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for definition in samples()[0]:
        server.create(definition)
    return server


async def _operations(prefix: str) -> list[APIOperation]:
    """Return the operations in the documents whose path has a prefix."""
    server = _new_server()
    paths = json.loads((await ask(server, "GET", "/openapi/v3"))[2])["paths"]
    found = []
    for path in ("/openapi/v2", *(f"/openapi/v3/{each}" for each in paths)):
        if path.startswith(prefix):
            document = json.loads((await ask(server, "GET", path))[2])
            found += [each.ok() for each in schemathesis.openapi.from_dict(document).get_all_operations()]
    return found


def _merged(sample: Any, drawn: Any) -> Any:
    """Replace a part of a valid object, which keeps its kind and its name, by what is drawn."""
    if not (isinstance(sample, dict) and isinstance(drawn, dict)):
        return drawn
    kept = {"apiVersion", "kind", "name", "namespace"} & sample.keys()
    return sample | {key: _merged(sample.get(key), value) for key, value in drawn.items() if key not in kept}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.openapi", description=__doc__)
    parser.add_argument("--document", default="/openapi/v3", metavar="PREFIX", help="such as /openapi/v3/apis/apps")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    fuzzer = OpenAPI(given.document)
    drawn = ((each, mode) for each in fuzzer.operations for mode in GenerationMode)
    report = run(fuzzer, ((f"{each.label} {mode.value}", fuzzer.draw(each, mode, given.seed)) for each, mode in drawn))
    print(report)
    report.raise_findings()


if __name__ == "__main__":
    main()
