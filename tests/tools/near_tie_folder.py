"""Writes a target folder on which every rounding error shows: the embedded one, its head twinned.

`python -m tests.tools.near_tie_folder OUT`. Every head row stands there twice, half of the
twins equal, half a hair apart. With OpenBLAS preloaded
`dfly-mlx bench --model OUT --draft dfly_core/embedded/drafter --verify fast` then withholds
rows, and `--verify exact` publishes them all.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import mlx.core as mx

from dfly_core.model.locate import EMBEDDED


def write_near_tie_folder(out: Path, source: Path = EMBEDDED / "target") -> None:
    """Copy `source`, give it a head of its own with every second row its neighbour's twin."""
    shutil.copytree(source, out)
    config = json.loads((out / "config.json").read_text())
    weights: dict[str, mx.array] = {}
    for path in sorted(out.glob("model*.safetensors")):
        weights |= mx.load(str(path))  # type: ignore[arg-type]
        path.unlink()
    embedding = weights["model.embed_tokens.weight"].astype(mx.float32)
    rows = embedding[0::2]
    hair = 1.0 + 1e-7 * mx.random.normal(rows.shape, key=mx.random.key(1))
    exact = (mx.arange(rows.shape[0]) % 2 == 0)[:, None]
    twins = mx.where(exact, rows, rows * hair)
    weights["lm_head.weight"] = mx.stack([rows, twins], axis=1).reshape(embedding.shape)
    mx.save_safetensors(str(out / "model.safetensors"), weights, metadata={"format": "mlx"})
    (out / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}, indent=1))


if __name__ == "__main__":
    write_near_tie_folder(Path(sys.argv[1]))
    print(sys.argv[1])
