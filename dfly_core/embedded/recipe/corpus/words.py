# ruff: noqa: E501, SIM905  (word lists: splitting their lines would hide what belongs together)
"""What all generators share: turns, held-out slots, and the noise that people type."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

ENDS = ".?!"


@dataclass(frozen=True)
class Turn:
    """One question and its answer."""

    user: str
    answer: str


def held_out(*slots: object) -> bool:
    """True for about one slot combination in twenty: evaluation only, never trained on."""
    key = "|".join(str(slot) for slot in slots).lower()
    return zlib.crc32(key.encode()) % 20 == 0


def same(text: str) -> str:
    """A prompt without case, punctuation and double spaces: equal means the same wording."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def pick(rng: random.Random, items: Sequence[str]) -> str:
    """One item, evenly."""
    return items[rng.randrange(len(items))]


NAMES = (
    "Mia Leo Anna Ben Lily Tom Zoe Max Ella Sam Nora Finn Ruby Jack Clara Hugo Ivy Oscar Rosa "
    "Theo Lena Paul Emma Noah Maya Luca Sara Adam Kira Felix Tina Omar Nina Eric Lucy Ravi Mila "
    "Jonas Amy Peter Sofia David Julia Mark Laura Daniel Alice Bob Carla Dan Eva Frank Grace "
    "Harry Iris James Kate Liam Molly Nick Olga Pia Quinn Rita Simon Tara Uma Victor Wendy Yara "
    "Pip Momo Coco Bella Rocky Luna Milo Daisy Teddy Biscuit Poppy Bruno Hazel Otto Juno Nico"
).split()

_START = (
    "B D F G J K L M N P R S T V Z H W C Y Br Tr Kl Sh Th Fl Gr Cr Pr Dr St Ch Qu Kr Gl Sw A E O I U"
).split()
_MIDDLE = "a e i o u a e i o ai ee ia ou".split()
_JOIN = "l n r m b d k t v s g p z nn ll rr tt ss nd rt lm st x h th ck nt ld mb rg sh".split()
_LAST = "a o i y e us in an el is ik on ek or ert en ar a o ie u um ette elle ra ta da ka".split()


def name(rng: random.Random) -> str:
    """A known first name, or more often an invented one, so that copying is learnt."""
    if rng.random() < 0.35:
        return pick(rng, NAMES)
    start = pick(rng, _START)
    parts = start if start in "AEIOU" else start + pick(rng, _MIDDLE)
    parts += pick(rng, _JOIN)
    if rng.random() < 0.3:
        parts += pick(rng, _MIDDLE) + pick(rng, _JOIN)
    return parts + pick(rng, _LAST)


BEFORE_ORDER = [
    "please ", "Please ", "can you ", "Can you ", "could you ", "Could you please ",
    "can you please ", "hey, ", "Hey, can you ", "Hi, ", "hi! ", "I want you to ",
    "I need you to ", "would you ", "Would you mind to ", "I'd like you to ", "ok, ", "now ",
    "so, ", "um ", "hello, could you ", "quick one: ", "help me: ", "Let's see if you can ",
    "will you ", "can u ", "pls ", "you should ", "try to ", "go ahead and ",
]  # fmt: skip
BEFORE_QUESTION = [
    "hey, ", "Hi, ", "hi! ", "please tell me: ", "tell me, ", "Tell me: ", "do you know: ",
    "quick question: ", "so ", "um, ", "ok, ", "now, ", "question: ", "I wonder, ", "hello, ",
    "and ", "help me: ", "I need to know: ", "my teacher asks: ", "can you tell me: ",
]  # fmt: skip
AFTER = [
    " please", ", please", " thanks", ", thanks", " for me", " now", " pls", ", thank you",
    " if you can", " quickly", ", ok", " then", " for my homework", " real quick", " today",
]  # fmt: skip


def _typo(rng: random.Random, word: str) -> str:
    at = rng.randrange(1, len(word) - 1)
    kind = rng.randrange(4)
    if kind == 0:
        return word[:at] + word[at + 1 :]
    if kind == 1:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if kind == 2:
        return word[:at] + word[at] + word[at:]
    return word[:at] + pick(rng, "aeioustrn") + word[at + 1 :]


def _misspell(rng: random.Random, text: str, keep: frozenset[str]) -> str:
    words = text.split(" ")
    able = [i for i, w in enumerate(words) if len(w) > 3 and w.isalpha() and w.lower() not in keep]
    for at in rng.sample(able, min(len(able), rng.choice((1, 1, 2)))):
        words[at] = _typo(rng, words[at])
    return " ".join(words)


FILLERS = "just really maybe like well kindly actually simply perhaps basically also ehm".split()
LEADS = [
    "I am stuck. ", "Homework again. ", "One more thing. ", "This is for school. ", "I am new here. ",
    "My brother asked me this. ", "Quick test. ", "I forgot how. ", "We are curious. ", "Sorry to ask. ",
    "I have a question. ", "Let us try this. ", "It is late. ", "My friend says you are good. ",
    "For a project: ", "Here is a task. ", "Next one. ", "My kids are here. ", "I hope you can do it. ",
    "Something easy first. ", "You may know this. ", "I want to learn. ", "Listen. ", "My turn. ",
]  # fmt: skip
# Words that may stand for each other in most requests; each group is one meaning.
SAME = [
    "write make create build draft craft produce prepare", "function method procedure snippet",
    "number value integer", "numbers values integers", "list array", "string text", "short little brief",
    "check test verify determine", "return give output", "compute calculate determine",
    "biggest largest highest greatest", "smallest lowest", "remove delete drop eliminate discard",
    "count tally", "story tale fable", "gets receives gains collects", "has owns holds keeps",
    "more extra additional", "letters characters", "item element entry", "items elements entries",
    "called named", "left remaining", "convert change turn transform", "tell give show", "get obtain",
    "find get determine", "split cut break", "join merge combine", "sort order arrange", "want need",
    "buys purchases gets", "loses misses", "sells trades", "box crate basket", "bag sack", "bad wrong",
    "takes grabs", "city town", "young baby little", "sentence phrase text", "great super cool",
    "repeated duplicate", "average mean", "keep pick select filter", "reverse invert", "double twice",
    "color colour", "sound noise", "start begin", "friend buddy pal", "people persons",
    "funny amusing", "everything all", "every each", "sum total", "together combined",
]  # fmt: skip
_GROUPS = [group.split() for group in SAME]
_SYNONYMS = {word: [o for o in group if o != word] for group in reversed(_GROUPS) for word in group}


def _reword(rng: random.Random, text: str, keep: frozenset[str]) -> str:
    words = text.split(" ")
    for at, word in enumerate(words):
        bare = word.rstrip(ENDS + ",")
        if bare in _SYNONYMS and bare not in keep and rng.random() < 0.35:
            words[at] = pick(rng, _SYNONYMS[bare]) + word[len(bare) :]
    return " ".join(words)


def _fill(rng: random.Random, text: str) -> str:
    words = text.split(" ")
    for _ in range(rng.choice((1, 1, 2))):
        words.insert(rng.randrange(len(words) + 1), pick(rng, FILLERS))
    return " ".join(words)


_SMALL = {"a", "an", "the", "of", "is", "me", "that", "to"}


def typed(rng: random.Random, text: str, keep: Sequence[str] = (), order: bool = False) -> str:
    """The text as somebody might type it; words in `keep` (slots) are never misspelt."""
    kept = frozenset(part.lower() for slot in keep for part in slot.split())
    text = text.rstrip(".") if rng.random() < 0.5 else text
    if rng.random() < 0.4:
        text = _reword(rng, text, kept)
    if rng.random() < 0.35:
        before = pick(rng, BEFORE_ORDER if order else BEFORE_QUESTION)
        first = text.split(" ")[0]
        text = before + (text if first in ("I", "I'm") or first.lower() in kept
                         else text[0].lower() + text[1:])  # fmt: skip
        if rng.random() < 0.5:
            text = text[0].upper() + text[1:]
    if rng.random() < 0.18:
        end = text[-1] if text[-1] in ENDS else ""
        text = text.rstrip(ENDS) + pick(rng, AFTER) + end
    if rng.random() < 0.07:
        text = _fill(rng, text)
    if rng.random() < 0.08:
        text = pick(rng, LEADS) + text
    if rng.random() < 0.08:
        words = text.split(" ")
        small = [i for i, w in enumerate(words) if w in _SMALL and w not in kept]
        if small:
            del words[rng.choice(small)]
        text = " ".join(words)
    if rng.random() < 0.14:
        text = _misspell(rng, text, kept)
    draw = rng.random()
    if draw < 0.4:
        text = text.lower()
    elif draw < 0.42:
        text = text.upper() if not kept else text
    if rng.random() < 0.35:
        text = text.rstrip(ENDS)
    elif rng.random() < 0.1:
        text = text.rstrip(ENDS) + pick(rng, ("!", "??", "...", " ?", "."))
    if rng.random() < 0.03:
        text = text.replace(" ", "  ", 1)
    return text


def an(noun: str) -> str:
    """The noun with its article."""
    return ("an " if noun[0].lower() in "aeiou" else "a ") + noun


def cap(text: str) -> str:
    """First letter large, the rest untouched."""
    return text[:1].upper() + text[1:]
