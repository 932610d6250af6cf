"""``attach``: what is said at the end of a session with a terminal."""

from __future__ import annotations

import pytest

from trioformer.cli.commands._attach import _reattach


@pytest.mark.parametrize(
    ("container", "text"),
    [
        ("main", "Session ended, resume using 'trioformer attach one -c main -n default -i -t' command"),
        (
            "debug",
            (
                "Session ended, the ephemeral container will not be restarted but may be reattached using 'trioformer "
                "attach one -c debug -n default -i -t' if it is still running"
            ),
        ),
    ],
)
def test_the_command_that_resumes_a_session_is_named(container: str, text: str) -> None:
    spec = {"containers": [{"name": "main"}], "ephemeralContainers": [{"name": "debug"}]}
    assert _reattach({"metadata": {"name": "one", "namespace": "default"}, "spec": spec}, container) == text
