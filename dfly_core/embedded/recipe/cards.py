# ruff: noqa: E501  (Markdown tables have long lines)
"""The two README.md cards, written from the figures that were measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TARGET = """# The embedded target

A Qwen3-architecture language model with {target_params:,} parameters, made for this package so that
DFly can be watched on any machine without a download. Apache-2.0, like the package.

| | |
|---|---|
| shape | width 192, 5 layers, 4 query and 2 key/value heads of 48, feed-forward 512, tied head |
| vocabulary | 1024 ids: byte-level BPE, Qwen's split pattern, one digit a token, Qwen3's special tokens, `<|mask|>` |
| weights | bfloat16, {target_mb:.1f} MB; on a CPU widen them to float32 |
| context | 2048 positions; conversations up to 1000 tokens were trained |
| data | {documents:,} conversations, about {millions:.0f} million tokens, all drawn by the generators in `../recipe/corpus`; no text by anybody else |
| training | {target_minutes:.0f} minutes on two shared CPU cores, Muon and AdamW, `../recipe` |

## What it does well
- one small Python function of about eighty kinds (numbers, lists, text), with a name of your choice
- sums and differences up to two digits, small tables, and little word problems, in steps
- whole-number conversions of lengths, weights, volumes, times and money
- capitals, colours, opposites, animals, days, months, counting and other short lists
- a story of five or six sentences about an animal or figure, with a name and a place; a short poem
- hello, thanks, jokes, your name; follow-ups such as "now add 4", "call it total", "and France?"

It knows nothing else. Its stories are variations of seven plots, its facts are about four hundred,
and a wording far from what the generators draw can confuse it.

## Measured on 90 prompts that training never saw
Greedy, at most 200 tokens, judged by `../recipe/check.py` (code is run). "By hand" are the prompts
written by hand in wordings no generator has.

{right}

## Template
The answer always begins with an empty think block, in history too, so that the ids of a
conversation are a prefix of the ids of its continuation and caches can be kept. Qwen3's own
template drops the block from history. Without `enable_thinking=False` the prompt stops after
`assistant`, and the model writes the empty block itself.
"""

DRAFTER = """# The embedded drafter

A DFly drafter for the target beside it, with {drafter_params:,} parameters, in the MLX layout.
Apache-2.0, like the package.

| | |
|---|---|
| shape | block of 8, 2 layers, taps after target layers 0, 2, 3 and 4, fusion per layer, hidden correction of width 192 |
| weights | bfloat16, {drafter_mb:.1f} MB; embedding and head are the target's |
| data | {answers:,} greedy answers of the final target to generated conversations |
| training | {drafter_minutes:.0f} minutes on one CPU core; teacher-forced previous token; row weights exp(-(j-1)/4); eight anchors a sequence; loss on corrected logits plus 0.3 of the same loss on uncorrected ones; final norm begun from the target's |

## Measured on the 90 prompts of `../recipe/eval_prompts.jsonl`
Mean accepted length: emitted tokens per cycle, the target's own token included; greedy, at most 200
tokens, torch in float32. The ablation was trained alike, without the hidden correction.

{lengths}

Acceptance given that the row was reached, rows 1 to 7: {rows}.
Speculative ids equal plain greedy ids on {equal} of 90 prompts.
"""


ENGINE = """
## The same through this package's MLX engine
`python -m tests.tools.ninety --plain`, width 7, CPU without OpenBLAS; the engine does not count the
stop token, torch above does. Mean accepted length {all}: code {code}, arithmetic, units and facts
{math}, stories and chat {story}, by hand {handwritten}. Right {right} of 90, ids equal to the
target alone on {equal} of 90, the target alone at {speed} tokens/s.
"""


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def write(out: Path, figures: dict[str, Any], facts: dict[str, Any]) -> None:
    """Both cards; `facts` are the counts and sizes of this run."""
    facts = {**facts, "millions": facts["tokens"] / 1e6}
    good = figures["right"]
    rows = []
    for key, label in (("code", "code"), ("math", "arithmetic, units, facts"),
                       ("story", "stories and chat")):  # fmt: skip
        hand = good[f"{key} handwritten"]
        rows.append([label, f"{good[key][0]} of {good[key][1]}", f"{hand[0]} of {hand[1]}"])
    rows.append(["together", f"{good['all'][0]} of 90", f"{good['handwritten'][0]} of 30"])
    right = _table(["", "right", "of these, by hand"], rows)
    ours, plain = figures["drafter"], figures["without correction"]
    labels = {"all": "all 90", "code": "code", "math": "arithmetic, units, facts",
              "story": "stories and chat", "handwritten": "the 30 by hand"}  # fmt: skip
    lengths = _table(
        ["", "this drafter", "without correction"],
        [[label, *(f"{f['mean_accepted_length'][key]:.2f}" for f in (ours, plain))]
         for key, label in labels.items()],
    )  # fmt: skip
    (out / "target" / "README.md").write_text(TARGET.format(right=right, **facts))
    card = DRAFTER.format(
        lengths=lengths,
        equal=ours["equal_to_plain_greedy"],
        rows=", ".join(f"{x:.3f}" for x in ours["acceptance_given_reached"]),
        **facts,
    )
    if engine := figures.get("engine"):  # measured afterwards, where MLX is installed
        card += ENGINE.format(
            right=engine["right"]["all"][0],
            equal=engine["equal_ids"],
            speed=engine["plain_tokens_per_second"],
            **{k: f"{v:.2f}" for k, v in engine["mean_accepted_length"].items()},
        )
    (out / "drafter" / "README.md").write_text(card)
