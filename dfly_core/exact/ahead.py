"""What of the self-test can be done before mlx-lm is there: attention, which needs no weights."""

from __future__ import annotations

import os

import mlx.core as mx

from dfly_core.exact.attention import AttentionSeen, AttentionShape, probe_attention
from dfly_core.exact.kept import findings_path
from dfly_core.model.config import drafter_config, read_config
from dfly_core.model.layout import on_cpu
from dfly_core.model.locate import EMBEDDED
from dfly_core.model.machine import cache_folder, machine_fingerprint, model_fingerprint
from dfly_core.records.commands import Load
from dfly_core.records.errors import DflyError


def attention_ahead(load: Load) -> AttentionSeen | None:
    """Probe the attention of a load's target if it is the embedded one and was not tested here.

    Of another pair nothing is known yet, not even whether it fits.
    """
    if load.model is not None or load.draft is not None or load.no_draft:
        return None
    target = EMBEDDED / "target"
    try:
        config = read_config(target)
        most = drafter_config(read_config(EMBEDDED / "drafter")).block_size
        kept = findings_path(cache_folder(), machine_fingerprint(), model_fingerprint(target), most)
    except (DflyError, OSError):
        return None  # the load meets it too, and tells it
    if os.path.exists(kept):  # noqa: PTH110  False too where the cache can't be looked into
        return None
    size = config["head_dim"]
    return probe_attention(
        AttentionShape(
            heads=config["num_attention_heads"],
            kv_heads=config["num_key_value_heads"],
            size=size,
            scale=size**-0.5,
            dtype=mx.float32 if on_cpu() else mx.bfloat16,
            most=most,
            limit=config["max_position_embeddings"],
        )
    )
