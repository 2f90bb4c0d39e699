"""Attention, a block of rows against single rows, all bits; needs no weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import mlx.core as mx

from dfly_core.exact.bits import KINDS, activations, same_bits
from dfly_core.exact.findings import AttentionFinding
from dfly_core.model.kernels import BOUNDS, attend, segment

PROBED_LIMIT = 41_000  # beyond, attention goes row by row: exact without having been seen
REPEATED = 4096  # rows of noise

# Context rows before a probed block of attention, within one segment: both its ends, places
# between, and a stretch of `REMAINDERS`. A kernel that takes keys in fours may treat a block
# otherwise at one key count in four only, as OpenBLAS's for AVX-512 does.
REMAINDERS = 16
BASES = (0, 2, 7, 15, 32, 63, 100, 181, 248, 330, 511, 700, 903, 1015, 1500, 2040, 3001, 4087)
BEYOND = (4500, 6001, 9000, 12000, 20000, 30001, 45000, 70000)


@dataclass(frozen=True)
class AttentionShape:
    """What decides attention's kernels: heads, their size, `most` rows a block, key counts."""

    heads: int
    kv_heads: int
    size: int
    scale: float
    dtype: mx.Dtype
    most: int
    limit: int


@dataclass(frozen=True)
class AttentionSeen:
    """What was found of a shape."""

    shape: AttentionShape
    findings: tuple[AttentionFinding, ...]


def stretches(limit: int, most: int) -> Iterator[tuple[int, list[int]]]:
    """(segment, numbers of context rows that follow on) to probe attention at.

    Blocks of `most` rows after any of them lie in one segment.
    """
    edges = [e for b in BOUNDS for e in (b - 1, b - most - 1)]
    starts = (REMAINDERS, *(b - 1 for b in BOUNDS))
    every = {start + r for start in starts for r in range(REMAINDERS)}
    run: list[int] = []
    for before in sorted({*BASES, *BEYOND, *edges, *every, limit - most}):
        where = segment(before + 1)
        if before < 0 or before > limit - most or where != segment(before + most):
            continue
        if run and (before != run[-1] + 1 or where != segment(run[0] + 1)):
            yield segment(run[0] + 1), run
            run = []
        run.append(before)
    if run:
        yield segment(run[0] + 1), run


def probe_attention(shape: AttentionShape) -> AttentionSeen:
    """Native blocks of 2..most rows against single rows, segment by segment."""
    most, dtype = shape.most, shape.dtype
    found: dict[int, set[int]] = {}
    seen: dict[int, list[int]] = {}
    for index, (where, befores) in enumerate(stretches(min(shape.limit, PROBED_LIMIT), most)):
        exact = found.setdefault(where, set(range(2, most + 1)))
        seen.setdefault(where, []).extend(before + 1 for before in befores)
        first, rows = befores[0], befores[-1] - befores[0] + most
        # Even keys all weigh something in the sum, so that an order of summing shows in any.
        kind = KINDS[index % len(KINDS)] if len(befores) == 1 else "even"
        queries = activations(kind, (1, shape.heads, rows, shape.size), dtype, 3 * index)
        keys, values = (
            _repeated(kind, (1, shape.kv_heads, first + rows, shape.size), dtype, 3 * index + i)
            for i in (1, 2)
        )

        def rows_of(
            at: int,
            count: int,
            first: int = first,
            queries: mx.array = queries,
            keys: mx.array = keys,
            values: mx.array = values,
        ) -> mx.array:
            upto = first + at + count
            block = queries[:, :, at : at + count]
            return attend(block, keys[:, :, :upto], values[:, :, :upto], shape.scale)

        # A row is alone once, whatever blocks it is in.
        alone = mx.concatenate([rows_of(at, 1) for at in range(rows)], axis=2)
        for at in range(len(befores)):
            counts = sorted(exact)
            same = [same_bits(rows_of(at, n), alone[:, :, at : at + n]) for n in counts]
            mx.eval(same)
            exact.difference_update(n for n, ok in zip(counts, same, strict=True) if not ok.item())
    return AttentionSeen(
        shape,
        tuple(
            AttentionFinding(where, tuple(sorted(rows)), tuple(seen[where]))
            for where, rows in found.items()
        ),
    )


def _repeated(kind: str, shape: tuple[int, ...], dtype: mx.Dtype, seed: int) -> mx.array:
    """Activations whose rows begin again after a while: at 40,000 keys noise takes memory."""
    rows = min(shape[2], REPEATED)
    block = activations(kind, (*shape[:2], rows, shape[3]), dtype, seed)
    return mx.tile(block, (1, 1, -(-shape[2] // rows), 1))[:, :, : shape[2]]
