"""The shipped pair: files, sizes, tokenizer and template."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from dfly_core import embedded

HOME = Path(embedded.__file__).parent
HEAD = "<|im_start|>assistant\n<think>\n\n</think>\n\n"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(HOME / "target/tokenizer.json"))


@pytest.mark.parametrize(
    "name",
    [
        "target/model.safetensors", "target/config.json", "target/tokenizer.json",
        "target/tokenizer_config.json", "target/generation_config.json", "target/README.md",
        "target/chat_template.jinja", "drafter/model.safetensors", "drafter/config.json",
        "drafter/README.md", "examples.json",
    ],
)  # fmt: skip
def test_file_is_there(name: str) -> None:
    assert (HOME / name).stat().st_size > 0


def test_all_in_all_at_most_12_mb() -> None:
    files = [p for p in HOME.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert sum(p.stat().st_size for p in files) <= 12_000_000


def test_the_two_configs_fit_each_other() -> None:
    target = json.loads((HOME / "target/config.json").read_text())
    drafter = json.loads((HOME / "drafter/config.json").read_text())
    assert drafter["target_hidden_size"] == target["hidden_size"] == drafter["hidden_size"]
    assert drafter["target_num_hidden_layers"] == target["num_hidden_layers"]
    assert drafter["vocab_size"] == target["vocab_size"]
    assert max(drafter["target_layer_ids"]) < target["num_hidden_layers"]
    assert drafter["num_target_layers"] == len(drafter["target_layer_ids"])
    assert drafter["mask_token_id"] < target["vocab_size"]
    assert drafter["block_size"] == 8
    for key in ("target_layer_ids", "mask_token_id", "enable_hidden_correction"):
        assert drafter["dflash_config"][key] == drafter[key]


def test_special_ids(tokenizer: Tokenizer) -> None:
    drafter = json.loads((HOME / "drafter/config.json").read_text())
    target = json.loads((HOME / "target/config.json").read_text())
    assert tokenizer.get_vocab_size() == target["vocab_size"]
    assert tokenizer.token_to_id("<|mask|>") == drafter["mask_token_id"]
    ids = [tokenizer.token_to_id(t) for t in ("<|im_end|>", "<|endoftext|>")]
    assert target["eos_token_id"] == ids
    generation = json.loads((HOME / "target/generation_config.json").read_text())
    assert generation["eos_token_id"] == ids


@pytest.mark.parametrize(
    "text",
    [
        "def add(a, b):\n    return a + b\n",
        "38 + 45 = 83",
        "  two  spaces ",
        "naïve café",
        "👩‍👩‍👧 한국어",
        "\t\n\n",
    ],
)
def test_round_trip(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_digits_are_single(tokenizer: Tokenizer) -> None:
    assert [tokenizer.decode([i]) for i in tokenizer.encode("1984").ids] == list("1984")


def render(messages: list[dict[str, str]], **more: object) -> str:
    jinja2 = pytest.importorskip("jinja2")
    template = jinja2.Template(
        (HOME / "target/chat_template.jinja").read_text(), trim_blocks=True, lstrip_blocks=True
    )
    return str(template.render(messages=messages, **more))


def test_template_is_what_training_saw() -> None:
    messages = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Q1"},
        {"role": "assistant", "content": "A1"},
        {"role": "user", "content": "Q2"},
    ]
    got = render(messages, add_generation_prompt=True, enable_thinking=False)
    assert got == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ1<|im_end|>\n"
        f"{HEAD}A1<|im_end|>\n<|im_start|>user\nQ2<|im_end|>\n{HEAD}"
    )


def test_second_turn_continues_the_first(tokenizer: Tokenizer) -> None:
    first = [{"role": "user", "content": "what is 2 + 3?"}]
    ids = tokenizer.encode(
        render(first, add_generation_prompt=True, enable_thinking=False) + "2 + 3 = 5.<|im_end|>"
    ).ids
    answer = {"role": "assistant", "content": "2 + 3 = 5."}
    more = [*first, answer, {"role": "user", "content": "x"}]
    again = tokenizer.encode(render(more, add_generation_prompt=True, enable_thinking=False)).ids
    assert again[: len(ids)] == ids


def test_template_with_thinking_leaves_the_answer_open() -> None:
    got = render([{"role": "user", "content": "Q"}], add_generation_prompt=True)
    assert got.endswith("<|im_start|>assistant\n")


def test_examples_are_varied() -> None:
    examples = json.loads((HOME / "examples.json").read_text())
    assert 5 <= len(examples) <= 8
    assert all(set(e) == {"title", "prompt"} for e in examples)
    assert len({e["title"] for e in examples}) == len(examples)
