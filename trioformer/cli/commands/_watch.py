"""The command ``watch``, which shows a live table of an informer's cache and its health."""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING, Any, Final, cast, final

import attrs
import trio

from ..._text import for_terminal
from ...cache import ReflectorOptions, SharedInformer
from ...models import KubernetesObject, key_of, to_dict
from .._arguments import Parser
from .._failures import CommandError, UsageError
from .._resources import TABLES, add_selector_flags, select
from .._session import Session
from ._watching import RowListWatch

if TYPE_CHECKING:
    from rich.console import Group

    from .._streams import Output

__all__ = ["add_flags", "run"]

_PERIOD: Final = 0.25
"""The time between two updates of the table, in seconds."""
_RATE_OVER: Final = 10.0
"""The period over which the event rate is measured, in seconds."""


def add_flags(parser: Parser) -> None:
    """Add the flags of ``watch``."""
    add_selector_flags(parser)
    parser.add_argument("-o", "--output", default="", help="Output format: wide")
    parser.add_argument("--rows", default="", help="The number of shown objects; by default the height of the terminal")


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``watch``."""
    if len(flags.arguments) != 1 or "/" in flags.arguments[0] or "," in flags.arguments[0]:
        raise UsageError("one kind is required, such as `trioformer watch pods`")
    if flags.output not in ("", "wide"):
        raise CommandError(
            f'unable to match a printer suitable for the output format "{flags.output}", allowed formats are: wide'
        )
    if flags.rows and not re.fullmatch("[0-9]{1,9}", flags.rows):
        raise UsageError(f'invalid argument "{flags.rows}" for "--rows" flag: must be a number')
    try:
        from rich.console import Console  # noqa: PLC0415  # of the extra cli
        from rich.live import Live  # noqa: PLC0415
    except ImportError as exc:
        raise CommandError("`trioformer watch` requires rich; run pip install 'trioformer[cli]'") from exc
    async with session.open_client() as client:
        namespace = None if flags.all_namespaces else session.namespace
        selection = await select(client, flags.arguments, namespace=namespace)
        if len(selection.targets) != 1:
            raise UsageError("one kind is required, such as `trioformer watch pods`")
        target = selection.targets[0]
        source = RowListWatch(client, target, flags.selector, flags.field_selector)
        # Report errors of the server immediately, because an informer would retry.
        await client.request("GET", target.path(), params={"limit": "1"}, accept=TABLES)
        informer = SharedInformer(source, options=ReflectorOptions(retry_forever=True))
        cast("Output", session.out).escapes_controls = False  # rich uses control characters
        console = Console(file=session.out, highlight=False)
        picture = _Picture(informer, source, flags, str(target.resource), namespace)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(informer.run)
            try:
                with Live(console=console, auto_refresh=False) as live:
                    while True:
                        live.update(picture.draw(_height(flags, console)), refresh=True)
                        await trio.sleep(_PERIOD)
            finally:
                if not console.is_terminal:  # the table is printed once, at the end
                    session.print()


def _height(flags: argparse.Namespace, console: Any) -> int:
    return int(flags.rows) if flags.rows else max(int(console.size.height) - 5, 1)


@final
@attrs.define(eq=False)
class _Picture:
    """Draws the table of the cache."""

    _informer: SharedInformer[KubernetesObject]
    _source: RowListWatch
    _flags: argparse.Namespace
    _name: str
    _namespace: str | None
    _events: list[tuple[float, int]] = attrs.field(factory=list, init=False)

    def draw(self, height: int) -> Group:
        """Return the line with the informer's health, and a table with at most ``height`` objects."""
        from rich.console import Group  # noqa: PLC0415  # of the extra cli
        from rich.markup import escape  # noqa: PLC0415  # of the extra cli
        from rich.table import Table  # noqa: PLC0415

        def cell(value: object) -> str:
            return escape(for_terminal(str(value)))

        columns = [
            (index, str(each.get("name", "")).upper())
            for index, each in enumerate(self._source.columns)
            if self._flags.output == "wide" or not each.get("priority")
        ]
        has_namespace = self._namespace is None and bool(columns)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in [*(["NAMESPACE"] if has_namespace else []), *(name for _, name in columns)]:
            table.add_column(cell(name), no_wrap=True)
        objects = sorted(self._informer.lister.list(), key=key_of) if self._informer.has_synced else []
        for obj in objects[:height]:
            cells = to_dict(obj)["cells"]
            shown = [cell(cells[index]) if index < len(cells) else "" for index, _ in columns]
            table.add_row(*([cell(obj.metadata.namespace or "")] if has_namespace else []), *shown)
        more = [f"and {len(objects) - height} more"] if len(objects) > height else []
        return Group(cell(self.title()), table, *more)

    def title(self) -> str:
        """Return a line that describes the informer's health."""
        statistics, state = self._informer.statistics(), self._informer.state
        now = trio.current_time()
        events = statistics.reflector.events
        self._events = [one for one in self._events if one[0] > now - _RATE_OVER] + [(now, events)]
        first_at, first = self._events[0]
        rate = (events - first) / (now - first_at) if now > first_at else 0.0
        where = f"in {self._namespace}" if self._namespace else "in all namespaces"
        age = "no data yet" if math.isinf(state.age) else f"{state.age:.0f} s old"
        parts = [f"{statistics.objects} {self._name} {where}", str(state), age, f"{rate:.1f} events/s"]
        if state.quarantined:
            parts.append(f"{state.quarantined} in quarantine")
        return " · ".join(parts)
