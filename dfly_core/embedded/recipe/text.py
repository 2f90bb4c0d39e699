"""The tokenizer and the templated text, the same that apply_chat_template gives."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from .corpus.mix import conversation
from .corpus.words import Turn

VOCAB = 1024
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|mask|>"]
MARKS = ["<think>", "</think>"]  # ordinary added tokens, as in Qwen3: decoding shows them
# Qwen's published split: contractions, words, single digits, punctuation, line ends, spaces.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
END_OF_TEXT, IM_START, IM_END, MASK, THINK, THINK_END = range(6)
HEAD = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
TEMPLATE = Path(__file__).with_name("chat_template.jinja")


def prompt_text(system: str, turns: Sequence[Turn], question: str) -> str:
    """What the template gives with add_generation_prompt and without thinking."""
    parts = [f"<|im_start|>system\n{system}<|im_end|>\n"] if system else []
    for turn in turns:
        parts.append(f"<|im_start|>user\n{turn.user}<|im_end|>\n{HEAD}{turn.answer}<|im_end|>\n")
    return "".join([*parts, f"<|im_start|>user\n{question}<|im_end|>\n{HEAD}"])


def train_tokenizer(seed: int = 1, documents: int = 30000) -> Tokenizer:
    """Byte-level BPE with Qwen3's special tokens first and one mask row."""
    rng = random.Random(seed)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(t, special=True, normalized=False) for t in SPECIAL]
    marks = [AddedToken(t, special=False, normalized=False) for t in MARKS]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=special + marks, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    texts = []
    for _ in range(documents):
        system, turns = conversation(rng)
        texts.append(prompt_text(system, turns[:-1], turns[-1].user) + turns[-1].answer)
    tokenizer.train_from_iterator(texts, trainer)
    # The trainer makes every one of its specials "special"; the think marks must not be.
    saved = json.loads(tokenizer.to_str())
    for added in saved["added_tokens"]:
        added["special"] = added["content"] in SPECIAL
    return Tokenizer.from_str(json.dumps(saved))


def write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """tokenizer.json, tokenizer_config.json and the template, as transformers reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    template = TEMPLATE.read_text()
    (folder / "chat_template.jinja").write_text(template)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        "mask_token": "<|mask|>",
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
        "clean_up_tokenization_spaces": False,
        "model_max_length": 2048,
        "chat_template": template,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def encode(tokenizer: Tokenizer, system: str, turns: Sequence[Turn]) -> tuple[list[int], list[int]]:
    """Ids of a conversation and, per id, 1 where the model itself speaks."""
    ids: list[int] = []
    own: list[int] = []

    def put(text: str, mark: int) -> None:
        new = tokenizer.encode(text, add_special_tokens=False).ids
        ids.extend(new)
        own.extend([mark] * len(new))

    if system:
        put(f"<|im_start|>system\n{system}<|im_end|>\n", 0)
    for turn in turns:
        put(f"<|im_start|>user\n{turn.user}<|im_end|>\n<|im_start|>assistant\n", 0)
        put("<think>\n\n</think>\n\n" + turn.answer + "<|im_end|>", 1)
        put("\n", 0)
    return ids, own
