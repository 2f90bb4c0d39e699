"""The start-up self-test: every route against one row, all bits, timed; then the whole model."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Generator, Sequence

import mlx.core as mx
from mlx_lm.models.cache import KVCache

from dfly_core.exact.attention import AttentionSeen, probe_attention
from dfly_core.exact.bits import all_true, same_bits
from dfly_core.exact.findings import AttentionFinding, Findings, Level, LinearFinding, WholeFinding
from dfly_core.exact.probe import (
    attention_shape,
    linear_modules,
    probe_linear,
    probe_operations,
)
from dfly_core.model.kernels import LinearRoute
from dfly_core.model.routes import Routes
from dfly_core.model.target import Target
from dfly_core.records.events import Progress

# Context lengths of the whole-model check: short, across a growth of the cache, and across
# the key count where Max and Ultra change their attention kernel.
WHOLE_KEYS = (8, 253, 1018)
READ_ROWS = 24
LEVELS: tuple[Level, ...] = ("chosen", "attention by row", "all by row")


def self_test(
    target: Target,
    most: int,
    time_draft: Callable[[], tuple[float, ...]] = tuple,
    ahead: AttentionSeen | None = None,
) -> Generator[Progress, None, Findings]:
    """Check blocks of 2..most rows; yields Progress, returns what was seen.

    What was seen `ahead` of the same attention is not probed again.
    """
    begun = time.perf_counter()
    shapes = linear_modules(target)
    lengths = [n for n in WHOLE_KEYS if n + most <= target.context_limit]
    total, done = len(shapes) + 3 + most - 1, 0

    def progress(item: str) -> Progress:
        nonlocal done
        done += 1
        return Progress("self-test", item, done, total, "checks")

    linear: list[LinearFinding] = []
    for shape, modules in shapes.items():
        yield progress(f"linear {shape}")
        linear += probe_linear(modules, most, target.dtype)
    yield progress("attention")
    wanted = attention_shape(target, most)
    seen = ahead if ahead is not None and ahead.shape == wanted else probe_attention(wanted)
    attention = seen.findings
    yield progress("norms and positions")
    operations = probe_operations(target, most)
    yield progress("whole model, single rows")
    read = read_rows(target, random_ids(target, most))
    alone = [SingleRows(target, length, most, read) for length in lengths]
    whole = []
    for count in range(2, most + 1):
        yield progress(f"whole model, {count} rows")
        whole.append(check_whole(alone, count, linear, attention))
    steady = all(one.steady for one in alone)
    return Findings(
        linear=tuple(linear),
        attention=attention,
        operations=tuple(operations),
        whole=tuple(whole),
        keys=tuple(lengths),
        one_row_seconds=statistics.median(one.seconds for one in alone),
        # Where blocks are exact as they come there is no choice in which a draft's time matters.
        draft_seconds=() if steady and all(f.level == "native" for f in whole) else time_draft(),
        steady=steady,
        seconds=time.perf_counter() - begun,
    )


def build_routes(
    linear: Sequence[LinearFinding], attention: Sequence[AttentionFinding], level: Level = "chosen"
) -> Routes:
    """The cheapest exact route of everything; a higher level takes more of it row by row."""
    chosen: dict[tuple[str, int], LinearRoute] = {}
    sizes: dict[str, set[int]] = {}
    straight: dict[int, bool] = {}
    for finding in linear:
        if "native" in finding.exact:
            sizes.setdefault(finding.shape, set()).add(finding.rows)
        route = finding.route(level)
        chosen[finding.shape, finding.rows] = route
        straight[finding.rows] = straight.get(finding.rows, True) and route == "native"
    return Routes(
        linear=chosen,
        sizes={shape: frozenset(found) for shape, found in sizes.items()},
        attention={
            f.segment: frozenset(f.exact_rows) for f in attention if level in ("native", "chosen")
        },
        straight=frozenset(rows for rows, native in straight.items() if native),
    )


def random_ids(target: Target, most: int) -> mx.array:
    """Ids (1, READ_ROWS + most): those of a context, and of the rows after it."""
    vocabulary = int(target.head_module.weight.shape[0])
    return mx.random.randint(0, vocabulary, (READ_ROWS + most,), key=mx.random.key(11))[None]


def read_rows(target: Target, ids: mx.array) -> list[KVCache]:
    """A cache of the first `READ_ROWS` of the ids."""
    cache = target.make_cache()
    target.forward(ids[:, :READ_ROWS], cache)
    mx.eval([store.state[:2] for store in cache])
    return cache


class SingleRows:
    """The whole model after `length` tokens, one row at a time: what a block must equal.

    `read` is `read_rows`, where several lengths share it.
    """

    def __init__(
        self, target: Target, length: int, most: int, read: Sequence[KVCache] | None = None
    ) -> None:
        self._target, self.length = target, length
        ids = random_ids(target, most)
        self._ids = ids[:, READ_ROWS:]
        self._cache = self._filled(read or read_rows(target, ids))
        first = self._one(0)  # compiles, warms up, and must come out the same again
        self._trim()
        logits, seconds = [], []
        for index in range(most):
            start = time.perf_counter()
            logits.append(self._one(index))
            seconds.append(time.perf_counter() - start)
        self.seconds = statistics.median(seconds)
        self.steady = all_true([same_bits(first, logits[0])])
        self._logits = mx.concatenate(logits, axis=1)
        self._written = self._new_rows(most)
        mx.eval(self._logits, self._written)
        self._trim()

    def block(self, count: int, routes: Routes | None) -> tuple[str, float]:
        """Run `count` rows at once and take them back: the first difference ("" none), seconds."""
        start = time.perf_counter()
        hidden, _ = self._target.forward(self._ids[:, :count], self._cache, routes)
        logits = self._target.head(hidden, routes)
        mx.eval(logits)
        seconds = time.perf_counter() - start
        flags = {"logits": same_bits(logits, self._logits[:, :count])}
        for index, (mine, alone) in enumerate(
            zip(self._new_rows(count), self._written, strict=True)
        ):
            for name, a, b in zip(("keys", "values"), mine, alone, strict=True):
                flags[f"{name} of layer {index}"] = same_bits(a, b[:, :, :count])
        self._trim()
        equal = mx.stack(list(flags.values())).tolist()
        # Layers in order, the logits last: the first difference is where it began.
        names = [*list(flags)[1:], "logits"]
        results = dict(zip(flags, equal, strict=True))  # type: ignore[arg-type]
        return next((name for name in names if not results[name]), ""), seconds

    def _one(self, index: int) -> mx.array:
        hidden, _ = self._target.forward(self._ids[:, index : index + 1], self._cache)
        logits = self._target.head(hidden)
        mx.eval(logits)
        return logits

    def _new_rows(self, count: int) -> list[tuple[mx.array, mx.array]]:
        """K and V (1, h, count, d) of the rows after the context, by layer."""
        rows = slice(self.length, self.length + count)
        return [(s.keys[:, :, rows], s.values[:, :, rows]) for s in self._cache]

    def _trim(self) -> None:
        for store in self._cache:
            store.trim(store.offset - self.length)

    def _filled(self, read: Sequence[KVCache]) -> list[KVCache]:
        """A cache of `length` rows: real ones, repeated; their order is nothing to the bits."""
        cache, times = self._target.make_cache(), -(-self.length // READ_ROWS)
        for store, source in zip(cache, read, strict=True):
            read_rows = (..., slice(0, source.offset), slice(None))
            keys, values = source.keys[read_rows], source.values[read_rows]
            store.update_and_fetch(
                mx.tile(keys, (1, 1, times, 1))[:, :, : self.length],
                mx.tile(values, (1, 1, times, 1))[:, :, : self.length],
            )
        mx.eval([store.state[:2] for store in cache])
        return cache


def check_whole(
    alone: Sequence[SingleRows],
    count: int,
    linear: Sequence[LinearFinding],
    attention: Sequence[AttentionFinding],
) -> WholeFinding:
    """A block of `count` rows at every context length: as it comes, then by routes.

    When the chosen routes differ somewhere that no probe saw, more is taken row by row.
    """
    natives = [one.block(count, None) for one in alone]
    native_seconds = statistics.median(seconds for _, seconds in natives)
    where = next((where for where, _ in natives if where), "")
    native = not where
    parts: list[bool] = ["native" in f.exact for f in linear if f.rows == count]
    parts += [count in f.exact_rows for f in attention]
    if native and all(parts):
        return WholeFinding(count, True, True, "native", "", native_seconds, native_seconds)
    level, seconds, exact = LEVELS[0], native_seconds, False
    for level in LEVELS:
        runs = [one.block(count, build_routes(linear, attention, level)) for one in alone]
        seconds = statistics.median(seconds for _, seconds in runs)
        there = next((there for there, _ in runs if there), "")
        exact = not there
        where = there or where
        if exact:
            break
    return WholeFinding(count, native, exact, level, where, native_seconds, seconds)
