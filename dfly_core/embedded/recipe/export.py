"""Writes target and drafter as folders that mlx-lm and dfly-mlx read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from .drafter import Drafter, DrafterConfig
from .target import Target
from .text import END_OF_TEXT, IM_END, write_tokenizer

MLX_NAMES = {"context_proj.": "fc.", "context_norm.": "hidden_norm.", "final_norm.": "norm."}


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Indented, with a newline at the end."""
    path.write_text(json.dumps(value, indent=2) + "\n")


def half(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rounded to bfloat16."""
    return {key: t.detach().to(torch.bfloat16).contiguous() for key, t in state.items()}


def write_target(model: Target, tokenizer: Tokenizer, folder: Path) -> None:
    """A Qwen3 folder in bfloat16."""
    write_tokenizer(tokenizer, folder)
    c = model.config
    eos = [IM_END, END_OF_TEXT]
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": c.vocab_size,
        "hidden_size": c.hidden_size,
        "intermediate_size": c.intermediate_size,
        "num_hidden_layers": c.num_hidden_layers,
        "num_attention_heads": c.num_attention_heads,
        "num_key_value_heads": c.num_key_value_heads,
        "head_dim": c.head_dim,
        "rms_norm_eps": c.rms_norm_eps,
        "rope_theta": c.rope_theta,
        "rope_scaling": None,
        "max_position_embeddings": c.max_position_embeddings,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "hidden_act": "silu",
        "use_sliding_window": False,
        "bos_token_id": None,
        "eos_token_id": eos,
        "pad_token_id": END_OF_TEXT,
        "torch_dtype": "bfloat16",
    }
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json",
               {"do_sample": False, "eos_token_id": eos, "pad_token_id": END_OF_TEXT})  # fmt: skip
    state = {f"model.{key}": t for key, t in half(model.state_dict()).items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def read_target(folder: Path, model: Target) -> Target:
    """The shipped weights, widened: everything after training starts from these."""
    state = load_file(folder / "model.safetensors")
    model.load_state_dict({key.removeprefix("model."): t.float() for key, t in state.items()})
    return model.eval()


def write_drafter(model: Drafter, folder: Path) -> None:
    """Upstream form."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", model.config.upstream())
    save_file(half(model.state_dict()), folder / "model.safetensors", {"format": "pt"})


def read_drafter(folder: Path) -> Drafter:
    """Upstream form, widened."""
    saved = json.loads((folder / "config.json").read_text())
    fields = {key: saved[key] for key in DrafterConfig.__dataclass_fields__}
    fields["target_layer_ids"] = tuple(fields["target_layer_ids"])
    model = Drafter(DrafterConfig(**fields))
    state = load_file(folder / "model.safetensors")
    model.load_state_dict({key: t.float() for key, t in state.items()})
    return model.eval()


def write_mlx(upstream: Path, folder: Path) -> None:
    """The shipped form: names and config of the MLX layout; the numbers stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((upstream / "config.json").read_text())
    config["architectures"] = ["DFlyDraftModel"]
    config["torch_dtype"] = "bfloat16"
    config["hidden_correction_intermediate_size"] = (
        config["hidden_correction_intermediate_size"] or config["hidden_size"]
    )
    config["dflash_config"] = {
        key: config[key]
        for key in ("target_layer_ids", "mask_token_id", "enable_hidden_correction",
                    "hidden_correction_intermediate_size")
    }  # fmt: skip
    write_json(folder / "config.json", config)
    state = {}
    for key, tensor in load_file(upstream / "model.safetensors").items():
        for old, new in MLX_NAMES.items():
            key = new + key.removeprefix(old) if key.startswith(old) else key
        state[key] = tensor
    save_file(state, folder / "model.safetensors", {"format": "mlx"})
