"""Choosing a token from logits, greedily or at random, so that speculation changes nothing.

At random, the token at a position is argmax(log p + g): g is Gumbel noise that depends on the
seed and the position alone, which draws exactly from p. Proposals are accepted where they
equal that token, and it is what is emitted elsewhere: so the answer is the one the target
alone would draw with the same seed, whatever was proposed and however wide the blocks were.

For a greedy draft this is the usual rule for speculative sampling: proposal d is accepted with
probability p(d) = min(1, p(d)/q(d)) for a one-hot q, and what is emitted otherwise is
distributed as p without d, the normalised positive part of p - q. A draft that is sampled
itself, from whatever q, leaves the answer as it is too.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import mlx.core as mx

from dfly_core.records.commands import GenerateOptions
from dfly_core.records.errors import Usage

SEEDS = 1 << 32


@dataclass(frozen=True)
class Chooser:
    """Temperature first, then the `top_k` best (ties stay in), then the smallest set of them
    whose probability reaches `top_p`; temperature 0 takes the best.

    `vocabulary` is the number of ids the noise is drawn for.
    """

    vocabulary: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0

    def choose(self, logits: mx.array, position: int, ids: mx.array | None = None) -> mx.array:
        """Logits (R, V) of the tokens at `position`, `position` + 1, ... -> indices (R,) uint32.

        `ids` (V,) names the columns where they are not the whole vocabulary. Lazy.
        """
        if self.temperature == 0:
            return mx.argmax(logits, axis=-1)
        noise = mx.stack([self.noise(position + row) for row in range(logits.shape[0])])
        return mx.argmax(self.scores(logits) + (noise if ids is None else noise[:, ids]), axis=-1)

    def scores(self, logits: mx.array) -> mx.array:
        """log p but for a constant, in float32; -inf where top_k or top_p leaves a token out."""
        scores = logits.astype(mx.float32) / self.temperature
        if 0 < self.top_k < scores.shape[-1]:
            least = mx.min(mx.topk(scores, self.top_k, axis=-1), axis=-1, keepdims=True)
            scores = mx.where(scores < least, -mx.inf, scores)
        if self.top_p < 1:
            order = mx.argsort(-scores, axis=-1)
            best_first = mx.take_along_axis(mx.softmax(scores, axis=-1), order, axis=-1)
            before = mx.cumsum(best_first, axis=-1) - best_first
            kept = mx.put_along_axis(mx.zeros_like(scores), order, before, axis=-1) < self.top_p
            scores = mx.where(kept, scores, -mx.inf)
        return scores

    def noise(self, position: int) -> mx.array:
        """Gumbel noise (V,) of one position."""
        key = mx.random.key((self.seed % SEEDS) * SEEDS + position)
        return mx.random.gumbel((self.vocabulary,), key=key)


GREEDY = Chooser()


def chooser(options: GenerateOptions, vocabulary: int) -> Chooser:
    """The chooser that options ask for; a seed is drawn where none is given. Raises Usage."""
    if not 0 <= options.temperature <= 100:
        raise Usage(f"temperature {options.temperature} was asked for", "give 0 to 100")
    if not 0 < options.top_p <= 1:
        raise Usage(f"top-p {options.top_p} was asked for", "give more than 0 and at most 1")
    if options.top_k < 0:
        raise Usage(f"top-k {options.top_k} was asked for", "give 0 (all) or more")
    if options.temperature == 0:
        return GREEDY
    seed = secrets.randbelow(SEEDS) if options.seed is None else options.seed
    return Chooser(vocabulary, options.temperature, options.top_p, options.top_k, seed)
