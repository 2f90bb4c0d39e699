"""Folds steps into the project's few numbers; nowhere else is a rate computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dfly_core.records.step import Step


@dataclass(frozen=True)
class Stats:
    """Counts over the steps of one answer, or of many; every rate is a property.

    Seconds are wall time. The prompt's step counts its time as prefill and its token as
    emitted, but is no cycle; plain steps, those without drafting, are counted apart from
    cycles. Time to first token runs from the request, template and tokenizer included.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    emitted: int = 0
    cycles: int = 0
    cycle_tokens: int = 0
    plain_steps: int = 0
    verified: int = 0
    accepted: int = 0
    positions: tuple[tuple[int, int], ...] = ()
    prefill_seconds: float = 0.0
    time_to_first_token: float | None = None
    decode_seconds: float = 0.0
    decode_tokens: int = 0
    timed_steps: int = 0
    timed_draft_seconds: float = 0.0
    timed_verify_seconds: float = 0.0
    timed_commit_seconds: float = 0.0

    def add(self, step: Step) -> Stats:
        """These counts with one more step."""
        if step.index == 0 and not step.is_cycle:
            return replace(
                self,
                emitted=self.emitted + step.kept,
                prefill_seconds=self.prefill_seconds + step.seconds.total,
            )
        common = replace(
            self,
            emitted=self.emitted + step.kept,
            decode_seconds=self.decode_seconds + step.seconds.total,
            decode_tokens=self.decode_tokens + step.kept,
        )
        if not step.is_cycle:
            # A closing step that only says "cancelled" or "context" did no decoding.
            return replace(common, plain_steps=self.plain_steps + (1 if step.chosen else 0))
        timed = step.seconds.sampled
        return replace(
            common,
            cycles=self.cycles + 1,
            cycle_tokens=self.cycle_tokens + step.kept,
            verified=self.verified + step.width,
            accepted=self.accepted + step.accepted,
            positions=_by_position(self.positions, step),
            timed_steps=self.timed_steps + (1 if timed else 0),
            timed_draft_seconds=self.timed_draft_seconds + (step.seconds.draft or 0.0),
            timed_verify_seconds=self.timed_verify_seconds + (step.seconds.verify or 0.0),
            timed_commit_seconds=self.timed_commit_seconds + (step.seconds.commit or 0.0),
        )

    def extend(self, steps: Iterable[Step]) -> Stats:
        """These counts with more steps."""
        stats = self
        for step in steps:
            stats = stats.add(step)
        return stats

    @property
    def mean_accepted_length(self) -> float | None:
        """Tokens a cycle emits, the target's own included; None without cycles."""
        return self.cycle_tokens / self.cycles if self.cycles else None

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted proposals over verified proposals; None when none was verified."""
        return self.accepted / self.verified if self.verified else None

    @property
    def tokens_per_second(self) -> float | None:
        """Decoding rate, prefill and its token excluded; None before the first decoded token."""
        if not self.decode_tokens or self.decode_seconds <= 0:
            return None
        return self.decode_tokens / self.decode_seconds

    @property
    def draft_seconds(self) -> float | None:
        """Time spent drafting, scaled from the timed sample; None when no step was timed."""
        return self._scaled(self.timed_draft_seconds)

    @property
    def verify_seconds(self) -> float | None:
        """Time spent verifying, scaled from the timed sample; None when no step was timed."""
        return self._scaled(self.timed_verify_seconds)

    def _scaled(self, seconds: float) -> float | None:
        return seconds / self.timed_steps * self.cycles if self.timed_steps else None


def _by_position(positions: tuple[tuple[int, int], ...], step: Step) -> tuple[tuple[int, int], ...]:
    """Per position 1..K-1: (accepted, verified)."""
    longer = positions + ((0, 0),) * (step.width - len(positions))
    return tuple(
        (ok + (slot < step.accepted), seen + (slot < step.width))
        for slot, (ok, seen) in enumerate(longer)
    )


def summary_words(stats: Stats, finish: str) -> str:
    """An answer's figures in one line; `-` where there is nothing to tell."""
    first, rate, mean, accepted = (
        stats.time_to_first_token,
        stats.tokens_per_second,
        stats.mean_accepted_length,
        stats.acceptance_rate,
    )
    plain = f" and {_count(stats.plain_steps, 'plain step')}" if stats.plain_steps else ""
    parts = [
        f"{_count(stats.emitted, 'token')} ({finish})",
        f"{rate:.1f} tokens/s" if rate else "- tokens/s",
        f"first after {first:.2f} s" if first is not None else "first after -",
        f"{_count(stats.cycles, 'cycle')}{plain}",
        f"mean accepted length {mean:.2f}" if mean else "mean accepted length -",
        f"acceptance {accepted:.0%}" if accepted is not None else "acceptance -",
    ]
    return " | ".join(parts)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
