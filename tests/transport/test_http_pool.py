"""Every server is verified, and errors keep no request in their variables."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing

from trioformer.transport import _failures as failures
from trioformer.transport._errors import clear_locals


def test_no_module_turns_verification_off() -> None:
    package = Path(__file__).resolve().parents[2] / "trioformer"
    sources = {path.name: path.read_text() for path in package.rglob("*.py")}
    assert [name for name, text in sources.items() if "verify=False" in text] == []
    assert [name for name, text in sources.items() if "CERT_NONE" in text] == ["_tls.py"]
    # It reads SSLKEYLOGFILE.  The control plane of tests may.
    assert [name for name, text in sources.items() if "create_default_context(" in text] == ["_certificates.py"]


async def test_frames_that_still_run_or_are_not_of_the_network_keep_their_variables() -> None:
    async def suspended() -> None:
        mine = "kept"
        try:
            {}[mine]
        except KeyError as exc:
            errors.append(exc)
            await trio.sleep_forever()

    errors: list[Exception] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(suspended)
        await trio.testing.wait_all_tasks_blocked()
        error = failures.ReadError("")
        error.__context__ = errors[0]
        errors[0].__cause__ = error  # errors may refer to each other
        clear_locals(error)
        traceback = errors[0].__traceback__
        assert traceback is not None
        assert traceback.tb_frame.f_locals["mine"] == "kept"
        nursery.cancel_scope.cancel()
