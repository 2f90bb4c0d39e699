"""The kernels a block may meet: names of a product's routes, and where attention's change.

Needs MLX alone, so that attention can be probed before mlx-lm is there.
"""

from __future__ import annotations

from typing import Literal

import mlx.core as mx

LinearRoute = Literal["native", "chunk", "tile", "rows"]

# Key counts at which attention's kernels change hands: one sum over the keys or two (OpenBLAS
# for AVX2), one pass or two (1024 on Max and Ultra, 4096 elsewhere) and the block counts of the
# second form (MLX 0.32, Metal).
BOUNDS = (321, 1024, 1025, 4096, 8192, 8193, 16384, 32769, 65536, 65537)


def segment(keys: int) -> int:
    """Which stretch between bounds a key count lies in."""
    return sum(keys >= bound for bound in BOUNDS)


def attend(queries: mx.array, keys: mx.array, values: mx.array, scale: float) -> mx.array:
    """MLX's attention as mlx-lm calls it: causal, for one row without a mask.

    (1, H, M, d) over keys and values (1, h, S, d), of which the last row sees all.
    """
    return mx.fast.scaled_dot_product_attention(
        queries, keys, values, scale=scale, mask="causal" if queries.shape[2] > 1 else None
    )
