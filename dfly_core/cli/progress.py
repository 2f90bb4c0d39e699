"""Progress events as bars on stderr, where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from dfly_core.records.events import Event, Progress
from dfly_core.records.sizes import size_words
from dfly_core.records.visible import one_line


def shown(events: Iterator[Event]) -> Iterator[Event]:
    """Pass the events on, with progress bars on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        yield from events
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:9}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[amount]}", markup=False),
        TextColumn("{task.fields[item]}", markup=False),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        tasks = {}
        for event in events:
            if isinstance(event, Progress):
                told, item = _amount(event), one_line(event.item, 60)
                if event.stage not in tasks:
                    tasks[event.stage] = bars.add_task(event.stage, amount="", item="")
                bars.update(
                    tasks[event.stage],
                    completed=event.done,
                    total=event.total,
                    amount=told,
                    item=item,
                )
            yield event


def _amount(event: Progress) -> str:
    if event.unit != "bytes":
        return f"{event.done} of {event.total} {event.unit}"
    rate = f", {size_words(event.rate)}/s" if event.rate else ""
    return f"{size_words(event.done)} of {size_words(event.total)}{rate}"
