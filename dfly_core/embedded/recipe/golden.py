"""Checks this drafter's arithmetic against golden vectors: python -m ...recipe.golden FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from .drafter import Drafter, DrafterConfig


def check(folder: Path) -> float:
    """Largest absolute difference over contexts, hidden, corrected and logits."""
    about = json.loads((folder / "golden.json").read_text())
    data = load_file(folder / "golden.safetensors")
    known = {k: v for k, v in about["config"].items() if k in DrafterConfig.__dataclass_fields__}
    known["target_layer_ids"] = tuple(known["target_layer_ids"])
    model = Drafter(DrafterConfig(**known))
    weights = {k[8:]: v.float() for k, v in data.items() if k.startswith("weights.")}
    embed, head = weights.pop("embed_tokens.weight"), weights.pop("lm_head.weight")
    model.load_state_dict(weights)
    worst = 0.0

    def compare(name: str, value: torch.Tensor) -> None:
        nonlocal worst
        worst = max(worst, float((value - data[name].float()).abs().max()))

    with torch.no_grad():
        compare("torch.contexts", torch.cat(model.contexts(data["in.features"])))
        for cycle, end in enumerate(about["context_end_per_cycle"]):
            ids = data["in.block_ids"][cycle].long()
            hidden = model(data["in.features"][:, :end], embed[ids][None], torch.tensor([[end]]))[0]
            compare(f"torch.cycle{cycle}.hidden", hidden)
            token, corrected, drafted = int(ids[0]), [], []
            for row in hidden[1:]:
                assert model.hidden_correction is not None
                corrected.append(model.hidden_correction(row, embed[token]))
                token = int(F.linear(corrected[-1], head).argmax())
                drafted.append(token)
            compare(f"torch.cycle{cycle}.corrected", torch.stack(corrected))
            compare(f"torch.cycle{cycle}.logits", F.linear(torch.stack(corrected), head))
            if drafted != about["drafted"][f"cycle{cycle}"]:
                raise SystemExit(f"cycle {cycle}: drafted {drafted}")
        # Side by side, as in training: every block whose anchor lies inside the sequence.
        anchors = data["torch.train.anchor_positions"].long()
        inside = [i for i, a in enumerate(anchors) if a < data["in.features"].shape[1]]
        blocks = embed[data["in.block_ids"].long()[inside]].flatten(0, 1)[None]
        hidden = model(data["in.features"], blocks, anchors[inside][None])
        compare("torch.train.hidden", data["torch.train.hidden"].float())
        got = hidden.unflatten(1, (len(inside), -1))[0]
        worst = max(worst, float((got - data["torch.train.hidden"].float()[inside]).abs().max()))
    return worst


if __name__ == "__main__":
    print(f"largest difference {check(Path(sys.argv[1])):.2e}")
