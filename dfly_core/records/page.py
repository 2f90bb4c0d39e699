"""The doctor's page as lines of text, fit for a bug report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dfly_core.records.memory import WORKING_BYTES
from dfly_core.records.sizes import memory_words, size_words

UNKNOWN = "unknown"


def page_lines(page: Mapping[str, Any]) -> list[str]:
    """Everything on the page, plain text, at most about 100 columns."""
    return [
        f"dfly-tui {page['version']}: {'all well' if page['healthy'] else 'chat would not work'}",
        *_machine(page["machine"]),
        *_models(page["models"]),
        *_memory(page["memory"]),
        *(_verdict(page["verdict"]) if page.get("verdict") else ()),
        *_costs(page),
        *_expected(page),
        *_problems(page["problems"]),
    ]


def _machine(facts: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield "Machine"
    power = f", power {facts['power_mode']}" if facts["power_mode"] else ""
    sold = facts["memory_gb"]
    memory = memory_words(float(sold) * 2**30) if sold else f"{UNKNOWN} memory"
    yield f"  {facts['chip']} ({facts['architecture']}), {facts['cores']} cores, {memory}{power}"
    yield f"  {facts['os']} ({facts['os_build']})"
    yield (
        f"  Python {facts['python']}, mlx {facts['mlx']}, mlx-lm {facts['mlx_lm']}, "
        f"{facts['backend']} backend, BLAS {facts['blas']}"
    )


def _models(models: list[Mapping[str, Any]]) -> Iterator[str]:
    yield ""
    yield "Models"
    for row in models:
        if row["found"]:
            yield f"  {row['role']} {row['name']}: {_size(row['bytes'])}, {row['fingerprint']}"
        else:
            note = "" if row["needed"] else " (not needed for this page)"
            yield f"  {row['role']} {row['name']}: not on this machine{note}"


def _memory(memory: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"Memory: {_size(memory['usable_bytes'])} can be used"
    fits = {"this pair": memory["pair"], **{
        f"Qwen3-8B 4 bit, {name}": fit for name, fit in memory["official"].items()
    }}  # fmt: skip
    for name, fit in fits.items():
        if fit is None:
            continue
        verdict = {True: "fits", False: "does NOT fit", None: UNKNOWN}[fit["fits"]]
        yield (
            f"  {name}: {_size(fit['needed_bytes'])} with {fit['context']:,} tokens of "
            f"context, {verdict}"
        )
        now = f"; loaded, the models take {_size(fit['now_bytes'])}" if "now_bytes" in fit else ""
        yield f"    {fit['words']}{now}"
    yield f"  {size_words(WORKING_BYTES)} of each is for the program itself"


def _verdict(verdict: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield "Self-test"
    yield from _wrapped(verdict["words"])
    width, mode, route = (verdict[name] for name in ("exact_width", "mode", "route"))
    yield f"  exact width {width}, mode {mode}, route {route}"
    for work, route in verdict["routes"]:
        yield f"    {work}: {route}"
    yield "  checked, all bits against single rows:"
    for line in verdict["checked"]:
        yield from _wrapped(line, "    ")


def _costs(page: Mapping[str, Any]) -> Iterator[str]:
    costs = page.get("route_seconds")
    if not costs:
        return
    yield ""
    yield "Milliseconds of a verification, and of a draft, by width (0 is one plain step)"
    widths = range(len(next(iter(costs.values()))))
    yield "  width   " + "".join(f"{width:>9}" for width in widths)
    for name, seconds in costs.items():
        yield f"  {name:<8}" + "".join(f"{1000 * value:>9.2f}" for value in seconds)
    drafts = page["verdict"]["cost_draft"]
    if drafts:
        yield "  draft   " + " " * 9 + "".join(f"{1000 * value:>9.2f}" for value in drafts[1:])


def _expected(page: Mapping[str, Any]) -> Iterator[str]:
    if "bandwidth_bytes_per_second" not in page:
        return
    yield ""
    yield "Expected"
    cached = page["pass_bytes"] < 5e7
    yield from _wrapped(
        f"memory reads {size_words(page['bandwidth_bytes_per_second'])}/s (summing an array); a "
        f"plain step reads {_size(page['pass_bytes'])}: {'about' if cached else 'at most'} "
        f"{page['plain_ceiling_tps']:.0f} tokens/s without drafting"
        + (", more where so small a model stays in the cache" if cached else "")
    )
    for row in page.get("predicted") or ():
        gain = f"width {row['width']} gives {row['speedup']:.2f} times plain decoding"
        yield from _wrapped(
            f"with {row['assumption']}: {gain if row['width'] else 'drafting does not pay'}"
        )


def _problems(problems: list[Mapping[str, Any]]) -> Iterator[str]:
    yield ""
    yield "Problems" if problems else "No problems found"
    for problem in problems:
        mark = "!" if problem["fatal"] else "-"
        yield from _wrapped(f"{problem['what']}: {problem['remedy']}", f"  {mark} ", "    ")


def _wrapped(
    text: str, first: str = "  ", rest: str | None = None, width: int = 98
) -> Iterator[str]:
    lead, line = first, ""
    for word in text.split():
        if line and len(lead) + len(line) + 1 + len(word) > width:
            yield lead + line
            lead, line = first if rest is None else rest, word
        else:
            line = f"{line} {word}" if line else word
    yield lead + line


def _size(size: int | None) -> str:
    if size is None:
        return UNKNOWN
    return size_words(size)
