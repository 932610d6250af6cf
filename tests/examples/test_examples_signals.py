"""Examples that get a signal before their first list has a response."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import trio

from tests.support.processes import KUBECONFIG, running


@pytest.mark.parametrize("patience", [30.0, pytest.param(5.0, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("program", "how"),
    [
        ("examples/workqueue_controller.py", signal.SIGINT),
        ("examples/events.py", signal.SIGTERM),
        ("examples/replica_counter.py", signal.SIGTERM),
    ],
)
async def test_a_signal_ends_an_example_while_the_server_does_not_respond(
    program: str, how: signal.Signals, patience: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else ends it within ``patience``: it waits for a response, and retries when the connection breaks."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG.format(url=f"http://127.0.0.1:{port}"))
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    async with listener, running(program) as started:
        with trio.fail_after(30):
            connection = await listener.accept()  # for its first list, which gets no response
        async with connection:
            started.process.send_signal(how)
            with trio.fail_after(patience):
                assert await started.wait_until_over() == 0
