"""What the log and users see of objects whose names and errors a tenant has written."""

from __future__ import annotations

import logging

import pytest
import trio.testing

from trioformer.cache._bad_objects import BadObject, QuarantineReason, UndecodableLog
from trioformer.cache.store._quarantine import Quarantine
from trioformer.models import from_json
from trioformer.models.core_v1 import Pod

KEY = "default/a\x1b[31m\nforged\u2028line\u202e"


async def test_the_log_and_the_error_of_a_key_are_one_printable_line(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    quarantine = Quarantine("Pod")
    quarantine.add(BadObject(KEY, QuarantineReason.INDEX_FAILED, ValueError(KEY)), is_stored=False)
    pod = from_json(Pod, '{"metadata": {"namespace": "x", "name": "b\\u001b\\u2028"}, "spec": {"nodeName": "n"}}')
    UndecodableLog("a listener").warn(pod, ValueError(KEY))
    shown = [
        *caplog.messages,
        str(quarantine.error_for(KEY)),
        str(quarantine.entries[KEY]),
        quarantine.entries[KEY].error,
    ]
    assert len(shown) == 5
    for text in shown:
        assert text.isprintable(), text
    assert "default/a\\x1b[31m forged line\\u202e is in quarantine" in caplog.text
