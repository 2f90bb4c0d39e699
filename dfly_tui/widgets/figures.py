"""The panel's figures as styled text; each function one item."""

from __future__ import annotations

from textual.content import Content

from dfly_core.records.memory import need_of
from dfly_core.records.promise import short_words
from dfly_core.records.sizes import size_words
from dfly_tui.state.panel import PanelState
from dfly_tui.text import line
from dfly_tui.widgets.step_strip import LEGEND, STYLES, coloured, glyphs

_DIM = "$foreground 60%"
NO_LIMIT = 2**31 - 1  # tokens: what a model has whose config names none
_FILLED, _EMPTY = "━", "─"
# The engine's "proposals right lately" and the panel's "accepted" are two figures.
LATELY = "Lately: in earlier answers, too, and only up to a step's first wrong proposal."


def headline(state: PanelState) -> Content:
    """What the figures are of; mean accepted length, acceptance, rate, ceiling, first token."""
    stats = state.stats
    mean = _number(stats.mean_accepted_length, ".2f")
    rate = _number(stats.acceptance_rate, ".0%")
    pace = _number(stats.tokens_per_second, ".0f")
    rows = [
        Content(state.scope).stylize("bold"),
        _pair(mean, "mean accepted length", rate, "accepted"),
        _pair(pace, "tok/s", *_ceiling(state)),
        _pair(_seconds(state.first_token), "to first token", *_memory(state)),
    ]
    return Content("\n").join(rows)


def legend() -> Content:
    """What a row of the strip means, in two lines."""
    parts = [
        Content(mark).stylize(STYLES[mark]) + Content(f" {word}").stylize(_DIM)
        for mark, word in LEGEND
    ]
    gave = Content("N tokens it gave").stylize(_DIM)
    first, second = Content("  ").join(parts[:3]), Content("  ").join([*parts[3:], gave])
    return Content("\n").join([first, second])


def guide() -> Content:
    """What the panel will mean, shown until there is something to show."""
    dim = "$foreground 70%"
    rows = [
        Content("The live panel").stylize("bold"),
        Content("One row is one step of decoding.").stylize(dim),
        Content(""),
        coloured("●") + Content(" drafted, and the target agreed").stylize(dim),
        coloured("○") + Content(" drafted, and the target refused").stylize(dim),
        coloured("·") + Content(" drafted, past the end of the answer").stylize(dim),
        coloured("◆") + Content(" the target's own token, one a step").stylize(dim),
        Content(""),
        Content("The more solid dots, the faster. The answer is the same without them.").stylize(
            dim
        ),
    ]
    return Content("\n").join(rows)


def positions(state: PanelState, width: int) -> Content:
    """A bar per position with its counts: how often a proposal there was accepted."""
    rows = []
    bar = max(width - 20, 4)
    for slot, (accepted, verified) in enumerate(state.stats.positions):
        share = accepted / verified if verified else 0.0
        filled = round(share * bar)
        percent = f"{share:4.0%}" if verified else "   -"
        rows.append(
            Content(f"{slot + 1} ").stylize(_DIM)
            + Content(_FILLED * filled).stylize("$success")
            + Content(_EMPTY * (bar - filled)).stylize("$foreground 20%")
            + Content(f" {percent} ")
            + Content(f"{accepted:>4}/{verified}").stylize(_DIM)
        )
    return Content("\n").join(rows)


def standing(state: PanelState, width: int, tall: bool = True) -> Content:
    """Drafting-off reason, break-even, parity badge, context."""
    rows = []
    if state.why_off:
        rows.append(Content("Drafting off: ").stylize("$warning") + line(state.why_off))
        if "lately" in state.why_off and tall:
            rows.append(Content(LATELY).stylize(_DIM))
    elif state.was_off and tall:
        rows.append(line(state.was_off, limit=4 * width).stylize(_DIM))
    even = state.break_even
    if even is not None:
        rows.append(Content(even.words).stylize("" if even.pays else "$warning"))
    if state.kept_on and tall:
        rows.append(line(state.kept_on, limit=4 * width).stylize(_DIM))
    if state.gain and (tall or state.raced is not None):
        rows.append(Content(state.gain).stylize(_DIM if state.raced is None else ""))
    colour = {"matches": "$success", "differs": "$error"}.get(state.parity.state, _DIM)
    mark = {"matches": "=", "differs": "≠"}.get(state.parity.state, "?")
    rows.append(Content(f"{mark} ").stylize(colour) + Content(f"Parity: {state.parity.words}"))
    if state.verdict is not None and tall:
        words = f"Verify {short_words(state.verdict)}"
        rows.append(line(words, limit=5 * width // 2).stylize(_DIM))
    if state.pair is not None:
        rows.append(context(state, width))
        if tall and state.pair.context_limit < NO_LIMIT:
            full = need_of(state.pair).at(state.pair.context_limit)
            rows.append(Content(f"Full context: {size_words(full)} with the program").stylize(_DIM))
    return Content("\n").join(rows)


def context(state: PanelState, width: int) -> Content:
    """How much of the context is used, and what is left."""
    limit = state.pair.context_limit if state.pair else 0
    used = min(state.context_used, limit) if limit else state.context_used
    words = f" {used:,} of {limit:,} tokens"
    bar = max(width - len(words) - 8, 4)
    filled = round(bar * used / limit) if limit else 0
    colour = "$error" if limit and used > 0.9 * limit else "$primary"
    return (
        Content("Context ").stylize(_DIM)
        + Content(_FILLED * filled).stylize(colour)
        + Content(_EMPTY * (bar - filled)).stylize("$foreground 20%")
        + Content(words).stylize(_DIM)
    )


def one_line(state: PanelState, width: int) -> Content:
    """The whole panel in one line, for narrow terminals; the last step's glyphs if they fit."""
    stats = state.stats
    pace = f"{_number(stats.tokens_per_second, '.0f')} tok/s"
    if state.why_off:
        # Why takes the room that is left: nothing else is as much in question.
        return line(f"{pace} · drafting off: {state.why_off}", limit=width).stylize(_DIM)
    parts = [
        f"{_number(stats.mean_accepted_length, '.2f')} mean accepted length",
        pace,
        f"{_number(stats.acceptance_rate, '.0%')} accepted",
    ]
    if state.pair is not None:
        parts.append(f"context {state.context_used:,}/{state.pair.context_limit:,}")
    while len(parts) > 1 and len(" · ".join(parts)) > width:
        parts.pop()
    words = " · ".join(parts)
    shown = line(words).stylize(_DIM)
    last = next((step for step in reversed(state.steps) if step.is_cycle), None)
    if last is not None and len(words) + 2 + len(glyphs(last)) <= width:
        shown = shown + Content("  ") + coloured(glyphs(last))
    return shown


def _pair(a: str, a_words: str, b: str, b_words: str) -> Content:
    left = Content(a.rjust(5)).stylize("bold") + Content(f" {a_words}").stylize(_DIM)
    gap = Content(" " * max(26 - left.cell_length, 0))
    return left + gap + Content(b.rjust(6)).stylize("bold") + Content(f" {b_words}").stylize(_DIM)


def _ceiling(state: PanelState) -> tuple[str, str]:
    ceiling = state.ceiling
    about = "" if state.raced else "~"  # A/B measured it, all else estimates
    return ("", "") if ceiling is None else (f"{about}{ceiling:.0f}", "alone")


def _memory(state: PanelState) -> tuple[str, str]:
    if not state.peak_memory:
        return "", ""
    count, unit = size_words(state.peak_memory).split()
    return count, f"{unit} used"


def _number(value: float | None, form: str) -> str:
    """Nothing to average is "-", never zero."""
    return "-" if value is None else format(value, form)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}s"
