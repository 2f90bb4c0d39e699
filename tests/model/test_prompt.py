"""An answer that was stopped goes on exactly where it was."""

from __future__ import annotations

import pytest

from dfly_core.jobs import Program
from dfly_core.model.locate import EMBEDDED
from dfly_core.model.prompt import Tokenizer, load_tokenizer, prompt_ids
from dfly_core.records.commands import Generate, GenerateOptions, Load, Message
from dfly_core.records.events import Stepped

ASKED = (Message("system", "Be brief."), Message("user", "Write a function."))
BEGUN = "\n Here it is:\n\n```python\ndef f(x):\n    return x\n```\n\n漢 é 🙂.  \n"
# What published templates do with an answer in a history: they trim it, and drop its thinking.
TRIMS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content.split('</think>')[-1].strip() }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def with_template(template: str | None) -> Tokenizer:
    tokenizer = load_tokenizer(EMBEDDED / "target")
    tokenizer.chat_template = template or tokenizer.chat_template
    return tokenizer


@pytest.mark.parametrize("template", [None, TRIMS], ids=["embedded", "trims"])
def test_an_answer_goes_on_right_behind_its_last_character(template: str | None) -> None:
    tokenizer = with_template(template)
    prompt = prompt_ids(tokenizer, ASKED)
    for begun in (*(BEGUN[:size] for size in range(1, len(BEGUN) + 1)), "<think>so</think>\n"):
        ids = prompt_ids(tokenizer, [*ASKED, Message("assistant", begun)])
        assert ids[: len(prompt)] == prompt
        assert tokenizer.decode(ids[len(prompt) :], clean_up_tokenization_spaces=False) == begun


def test_an_answer_without_a_word_is_begun_anew() -> None:
    tokenizer = with_template(None)
    assert prompt_ids(tokenizer, [*ASKED, Message("assistant", "")]) == prompt_ids(tokenizer, ASKED)


def test_the_rest_of_a_stopped_answer_is_what_was_still_to_come() -> None:
    program = Program()
    list(program.run(Load(), lambda: False))

    def answer(messages: tuple[Message, ...], most: int) -> str:
        options = GenerateOptions(max_tokens=most, width=7)
        events = program.run(Generate(messages, options), lambda: False)
        return "".join(event.step.text for event in events if isinstance(event, Stepped))

    asked = (Message("user", "Tell me a story about a fox."),)
    whole = answer(asked, 200)
    assert len(whole) > 150
    for most in (5, 17, 40):
        begun = answer(asked, most)
        assert whole.startswith(begun)
        rest = answer((*asked, Message("assistant", begun)), 200)
        assert begun + rest == whole
