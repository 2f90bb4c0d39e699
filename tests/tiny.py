"""Tiny random models that behave like real ones, and drafters that propose to order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm.models import llama, qwen2, qwen3

from dfly_core.engine.context import Context
from dfly_core.engine.generate import generate
from dfly_core.engine.propose import Draft
from dfly_core.engine.propose import propose as own_draft
from dfly_core.model.config import drafter_config
from dfly_core.model.drafter import Drafter
from dfly_core.model.pair import Pair, describe
from dfly_core.model.target import Target
from dfly_core.records.commands import GenerateOptions, Load
from dfly_core.records.loaded import Costs
from dfly_core.records.step import Step

VOCAB, HIDDEN, LAYERS, LIMIT, BLOCK = 96, 32, 4, 160, 6
TAPS = (0, 1, 3)
NEVER = 95  # an id that no test uses otherwise; the mask


def target_config(**changes: Any) -> dict[str, Any]:
    """A config.json of a tiny target."""
    return {
        "model_type": "qwen3",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "intermediate_size": 48,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-6,
        "vocab_size": VOCAB,
        "max_position_embeddings": LIMIT,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
    } | changes


def draft_config(**changes: Any) -> dict[str, Any]:
    """A config.json of a drafter that fits it, with uneven sizes."""
    return {
        "architectures": ["DFlyDraftModel"],
        "hidden_size": HIDDEN,
        "intermediate_size": 40,
        "head_dim": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": VOCAB,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "max_position_embeddings": LIMIT,
        "num_target_layers": len(TAPS),
        "target_hidden_size": HIDDEN,
        "target_num_hidden_layers": LAYERS,
        "target_layer_ids": list(TAPS),
        "mask_token_id": NEVER,
        "block_size": BLOCK,
        "enable_hidden_correction": True,
        "hidden_correction_intermediate_size": 24,
    } | changes


def randomize(module: Any, seed: int, scale: float = 0.6) -> None:
    """Random weights, large enough that outputs vary; norms stay near one."""
    key = mx.random.key(seed)

    def draw(array: mx.array) -> mx.array:
        nonlocal key
        key, mine = mx.random.split(key)
        noise = mx.random.normal(array.shape, key=mine)
        if array.ndim == 1:
            return 1.0 + 0.1 * noise
        return noise * scale / array.shape[-1] ** 0.5 * 2.0

    module.update(tree_map(draw, module.parameters()))
    mx.eval(module.parameters())


def make_target(seed: int = 1, **changes: Any) -> Target:
    """A tiny Qwen or Llama with random weights."""
    config = target_config(**changes)
    family = {"qwen3": qwen3, "qwen2": qwen2, "llama": llama}[config["model_type"]]
    model = family.Model(family.ModelArgs.from_dict(config))
    randomize(model, seed)
    return Target(model, config, TAPS)


class TinyTokenizer:
    """Every id has a one-letter text; the template joins the contents' characters."""

    chat_template = "tiny"
    eos_token_id: int | None = None

    def apply_chat_template(self, conversation: Any, **options: Any) -> list[int]:
        return [ord(c) % 90 for turn in conversation for c in turn["content"] + "\n"]

    def decode(self, token_ids: Sequence[int], **options: Any) -> str:
        return "".join(chr(0x100 + i) for i in token_ids)

    def encode(self, text: str, **options: Any) -> list[int]:
        return [ord(c) % 90 for c in text]

    def get_vocab(self) -> dict[str, int]:
        return {chr(0x100 + i): i for i in range(VOCAB)}


def make_pair(seed: int = 1, stop_ids: Sequence[int] = (), **changes: Any) -> Pair:
    """A tiny target with a random drafter."""
    target = make_target(seed, **changes)
    drafter = Drafter(drafter_config(draft_config()))
    randomize(drafter, seed + 1)
    return Pair(
        target=target,
        drafter=drafter,
        tokenizer=TinyTokenizer(),
        stop_ids=frozenset(stop_ids),
        info=describe(Load("tiny", "tiny"), target, drafter),
        target_folder=Path("tiny"),
        draft_folder=Path("tiny"),
    )


def alone(pair: Pair, prompt: Sequence[int], count: int) -> list[int]:
    """The reference: mlx-lm's own model, one row at a time, a fresh cache, argmax, no stop."""
    model, cache = pair.target.model, pair.target.make_cache()
    if len(prompt) > 1:
        model(mx.array([list(prompt[:-1])]), cache=cache)
    out, last = [], prompt[-1]
    for _ in range(count):
        logits = model(mx.array([[last]]), cache=cache)[0, -1]
        last = int(mx.argmax(logits).item())  # type: ignore[arg-type]
        out.append(last)
    return out


Propose = Callable[[Context, int], Draft]


def scripted(truth: Sequence[int], start: int, right: Callable[[int], bool]) -> Propose:
    """A drafter that knows the answer `truth` beginning at position `start`.

    At each position where `right(position)` is false it proposes another token.
    """

    def propose(context: Context, width: int) -> Draft:
        context.read_pending()
        position, ids = context.length, []
        for j in range(1, width + 1):
            at = position + j - start
            known = truth[at] if 0 <= at < len(truth) else 0
            ids.append(known if right(position + j) else (known + 1) % NEVER)
        return Draft(mx.array(ids, dtype=mx.int32))

    return propose


def oracle(truth: Sequence[int], start: int) -> Propose:
    """Always right."""
    return scripted(truth, start, lambda _: True)


def wrong(truth: Sequence[int], start: int) -> Propose:
    """Never right."""
    return scripted(truth, start, lambda _: False)


def half(truth: Sequence[int], start: int, seed: int = 0, share: float = 0.5) -> Propose:
    """Right at a random half of the positions."""
    random = Random(seed)
    coins = [random.random() < share for _ in range(4096)]
    return scripted(truth, start, lambda position: coins[position % 4096])


@dataclass
class Answer:
    """The steps of an answer and what they add up to."""

    steps: list[Step]

    @property
    def ids(self) -> list[int]:
        return [token.id for step in self.steps for token in step.emitted]

    @property
    def text(self) -> str:
        return "".join(step.text for step in self.steps)

    @property
    def finish(self) -> str | None:
        return self.steps[-1].finish


def answer(
    context: Context,
    prompt: Sequence[int],
    options: GenerateOptions,
    propose: Propose | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    costs: Costs | None = None,
) -> Answer:
    """Run one answer; checks at every step that the context is whole."""
    steps = []
    for event in generate(context, prompt, options, cancelled, propose or own_draft, costs):
        if isinstance(event, Step):
            steps.append(event)
            if event.is_cycle or event.finish is not None:
                context.check()
    context.check()
    return Answer(steps)


def cached_rows(store: Any) -> tuple[mx.array, mx.array]:
    """K and V rows (1, kv_heads, S, head_dim) of a KVCache; mlx-lm's versions differ in naming."""
    return store.keys[..., : store.offset, :], store.values[..., : store.offset, :]
