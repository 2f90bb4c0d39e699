"""What a job is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dfly_core.records.loaded import VerifyMode
from dfly_core.records.memory import CONTEXT

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True)
class GenerateOptions:
    """How to answer. `width` None lets the policy choose, 0 is the target alone."""

    max_tokens: int = 1024
    width: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    thinking: bool = False


@dataclass(frozen=True)
class Load:
    """Load a pair. `model` and `draft` None mean the embedded pair; `no_draft` the target alone."""

    model: str | None = None
    draft: str | None = None
    no_draft: bool = False
    verify: VerifyMode = "exact"
    draft_bits: int | None = None


@dataclass(frozen=True)
class Generate:
    """Answer the last message of a conversation."""

    messages: tuple[Message, ...]
    options: GenerateOptions = field(default_factory=GenerateOptions)


@dataclass(frozen=True)
class Diagnose:
    """Ask how near the target's choice was, after a prompt and the first `ids` of its answer.

    For a token at which two decodings differ: `ids` are those before it, on which both agree.
    """

    messages: tuple[Message, ...]
    ids: tuple[int, ...]
    thinking: bool = False


@dataclass(frozen=True)
class Convert:
    """Convert a drafter checkpoint. `source` is a hub id, a folder or a file.

    `check` only tells what would happen, at what speed with the model `target`; without one,
    with the first that the drafter fits of the loaded target and `targets`. Only a check can
    do without an `output`, and then says nothing about it.
    """

    output: str | None = None
    source: str | None = None
    revision: str | None = None
    quantize: int | None = None
    dtype: Literal["bf16", "f16", "f32"] | None = None
    force: bool = False
    check: bool = False
    target: str | None = None
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bench:
    """Measure parity and speed over a prompt set; `prompts` None means our own 24.

    `output` None means benchmark.json, or the next benchmark-N.json where that is taken.
    """

    output: str | None = None
    model: str | None = None
    draft: str | None = None
    prompts: str | None = None
    trials: int = 3
    max_tokens: int = 128
    verify: VerifyMode = "exact"
    components: bool = False
    check_baseline: bool = False
    draft_bits: int | None = None


@dataclass(frozen=True)
class Doctor:
    """Examine this machine and, where they are present, the models."""

    model: str | None = None
    draft: str | None = None
    context: int = CONTEXT


@dataclass(frozen=True)
class Cancel:
    """Stop the job with that number at its next safe moment."""

    target: int


@dataclass(frozen=True)
class Close:
    """End the worker."""


Job = Load | Generate | Diagnose | Convert | Bench | Doctor
Command = Job | Cancel | Close
