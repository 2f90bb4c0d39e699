"""Messages -> token ids, by the tokenizer's own chat template; and the ids that end an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from dfly_core.model.config import read_object
from dfly_core.records.commands import Message
from dfly_core.records.errors import Refused, Usage


class Tokenizer(Protocol):
    """What the engine needs of a tokenizer (transformers' interface)."""

    chat_template: Any
    eos_token_id: int | None

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """Render a conversation."""

    def decode(self, token_ids: Sequence[int], **options: Any) -> Any:
        """Ids -> text."""

    def encode(self, text: Any, **options: Any) -> list[int]:
        """Text -> ids."""

    def get_vocab(self) -> dict[str, int]:
        """Token texts -> ids."""


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model folder; Refused when there is none that can be read, or used."""
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()  # its advice (on long prompts, say) is not for our users

    try:
        # Never code from a model folder, and no question on the terminal (or the wire) either.
        tokenizer: Tokenizer = AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:
        raise Refused(
            f"the tokenizer in {folder} can't be read ({type(error).__name__})",
            "download the model again",
        ) from error
    if not tokenizer.chat_template:
        raise Refused(
            f"the tokenizer in {folder} has no chat template", "take an instruction-tuned model"
        )
    return tokenizer


def prompt_ids(
    tokenizer: Tokenizer, messages: Sequence[Message], thinking: bool = False
) -> list[int]:
    """The ids of a conversation, ready for the answer or its rest; no-thinking unless asked."""
    for message in messages:
        try:
            message.content.encode("utf-8")
        except UnicodeEncodeError as error:
            article = "an" if message.role == "assistant" else "a"
            raise Usage(
                f"{article} {message.role} message is no valid text ({error.reason} at "
                f"character {error.start})",
                "write it again",
            ) from error
    # A conversation that ends with the assistant is an answer to be gone on with. Its text
    # follows the prompt as its tokens did: templates trim an answer, or drop its thinking.
    unfinished = bool(messages) and messages[-1].role == "assistant"
    begun, said = (messages[-1].content, messages[:-1]) if unfinished else ("", messages)
    try:
        ids = tokenizer.apply_chat_template(
            [{"role": m.role, "content": m.content} for m in said],
            add_generation_prompt=True,
            enable_thinking=thinking,
            tokenize=True,
            return_dict=False,
        )
    except Exception as error:
        raise Refused(f"the model's chat template refuses this conversation ({error})") from error
    rest = tokenizer.encode(begun, add_special_tokens=False) if begun else []
    return [int(i) for i in (*ids, *rest)]


def stop_ids(folder: Path, config: dict[str, Any], tokenizer: Tokenizer) -> frozenset[int]:
    """Ids that end an answer: those of generation_config, config and tokenizer together."""
    found: set[int] = set()
    sources = [config]
    path = folder / "generation_config.json"
    if path.is_file():
        sources.append(read_object(path))
    for source in sources:
        value = source.get("eos_token_id")
        ids = [] if value is None else value if isinstance(value, list) else [value]
        if not all(isinstance(i, int) for i in ids):
            raise Refused(
                f"eos_token_id of {folder} is {value!r}, no token id", "download the model again"
            )
        found.update(ids)
    if tokenizer.eos_token_id is not None:
        found.add(int(tokenizer.eos_token_id))
    return frozenset(found)


def byte_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """Ids that stand for single bytes and are decoded a run at a time (`<0x41>`); often none."""
    vocabulary = tokenizer.get_vocab()
    named = [vocabulary.get(f"<0x{byte:02X}>") for byte in range(256)]
    # Elsewhere such a word may be plain text.
    return frozenset(i for i in named if i is not None and "<0x" not in tokenizer.decode([i]))
