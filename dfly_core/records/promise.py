"""What verification promises, in words that everybody can follow: long, and for narrow places."""

from __future__ import annotations

from dfly_core.records.loaded import Verdict


def same_bits(width: int, how: str = "") -> str:
    """What was checked of passes over up to `width` proposed tokens, made in the way `how`."""
    return (
        f"checking up to {width} proposed tokens in one pass{how} gives bit for bit the same "
        "numbers as one at a time"
    )


def short_words(verdict: Verdict) -> str:
    """The verdict in about sixty characters; one that was withdrawn since is told as it stands."""
    name = f"{verdict.taken} (auto)" if verdict.mode == "auto" else verdict.taken
    if verdict.words.startswith("withdrawn"):
        return verdict.words
    if verdict.taken == "fast":
        return f"{name}: nearly tied tokens may differ from the target's own"
    if not verdict.exact_width:
        return f"{name}: one token at a time, no larger pass has the same bits"
    return f"{name}: {verdict.exact_width} tokens in one pass, same bits as one at a time"
