"""A database's pool, a token, a client for reviews, and the program's configuration."""

from __future__ import annotations

from types import SimpleNamespace

import attrs
import trio
import yaml

from trioformer import Client
from trioformer.testing import APIServer

pool = SimpleNamespace(is_connected=True)
token = "from-a-secret"
FILES = {"config/my-controllers.yaml": "log_level: INFO\n"}


@attrs.frozen
class Settings:
    log_level: str

    @classmethod
    def parse(cls, text: str) -> Settings:
        return cls(**yaml.safe_load(text))


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    return {"review_client": client}
