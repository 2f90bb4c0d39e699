"""Progress in words: how much, how fast, how long still."""

from __future__ import annotations

from dfly_core.records.events import Progress
from dfly_core.records.sizes import size_words


def amount(count: float, unit: str) -> str:
    """A count with its unit, bytes in the scale people use."""
    return size_words(count) if unit == "bytes" else f"{count:,.0f} {unit}"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 60:
        return f"{max(round(seconds), 1)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def ago(seconds: float) -> str:
    """How long ago something was, as people say it."""
    if seconds < 60:
        return "just now"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min ago"
    hours = minutes // 60
    return f"{hours} h ago" if hours < 48 else f"{hours // 24} days ago"


def fraction(progress: Progress) -> float:
    """From 0 to 1; 0 when the total is unknown."""
    return min(progress.done / progress.total, 1.0) if progress.total > 0 else 0.0


def doing(progress: Progress) -> str:
    """A few words for the head of the chat: what goes on, and how far if that is worth telling."""
    if progress.unit == "bytes" and progress.total:
        return f"{progress.stage} {fraction(progress):.0%}, {words(progress)}"
    return f"{progress.stage}: {progress.item}" if progress.item else progress.stage


def words(progress: Progress) -> str:
    """One line: amount of total, rate, time left."""
    parts = [amount(progress.done, progress.unit)]
    if progress.total:
        whole = amount(progress.total, progress.unit)
        # `2 of 3 trials`: only bytes have a scale of their own each.
        done = parts[0] if progress.unit == "bytes" else f"{progress.done:,}"
        parts[0] = f"{done} of {whole}"
    if progress.rate:
        slow = progress.unit != "bytes" and progress.rate < 10
        rate = (
            f"{progress.rate:.1f} {progress.unit}" if slow else amount(progress.rate, progress.unit)
        )
        parts.append(f"{rate}/s")
        if progress.total > progress.done:
            parts.append(f"{duration((progress.total - progress.done) / progress.rate)} left")
    return " · ".join(parts)


def plural(count: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
