"""What is stored after a read, a change and a write is what a JSON client would have stored.

Hypothesis makes the classes, the stored objects and the edits; each example has its own server.
``--long`` runs 10,000 examples at random; ``tests/e2e/test_read_modify_write.py`` does the same with kube-apiserver.
"""

from __future__ import annotations

import hypothesis
import trio
import trio.testing
from hypothesis import strategies as st

from tests.support.read_modify_write import DEFINITION, read_modify_write
from trioformer.testing import APIServer

IS_LONG = hypothesis.settings.get_current_profile_name() == "long"


async def play(data: st.DataObject) -> None:
    server = APIServer()
    server.create(DEFINITION)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            await read_modify_write(client, "record", data.draw)
        nursery.cancel_scope.cancel()


@hypothesis.settings(max_examples=10_000 if IS_LONG else 100)
@hypothesis.given(st.data())
def test_a_change_of_a_model_stores_what_a_json_client_would_have_stored(data: st.DataObject) -> None:
    trio.run(play, data, clock=trio.testing.MockClock(autojump_threshold=0))
