# ruff: noqa: E501, SIM905  (word lists: splitting their lines would hide what belongs together)
"""Little stories. What happens depends on who and where, so that the answer is learnable."""

from __future__ import annotations

import random

from .words import Turn, an, cap, held_out, name, pick, typed

WHO = (
    "fox bear cat dog mouse rabbit owl hedgehog frog turtle lion dragon robot duck squirrel "
    "penguin elephant monkey horse wolf pirate princess wizard knight unicorn whale dolphin bee "
    "snail goat pig cow sheep parrot tiger giraffe crab octopus ghost snowman giant fairy"
).split()
WHERE = [
    "forest", "garden", "village", "castle", "city", "desert", "sea", "mountain", "farm", "cave",
    "school", "library", "island", "jungle", "lake", "river", "kitchen", "market", "meadow", "moon",
]  # fmt: skip
THING = [
    "golden key", "red balloon", "old map", "shiny crown", "warm scarf", "silver shell",
    "tiny lamp", "blue stone", "sweet pear", "magic lantern", "little book", "big bell",
    "green feather", "wooden boat", "glass marble", "round pebble", "silver spoon", "red apple",
    "yellow flower", "star",
]  # fmt: skip
HELPER = (
    "owl mouse frog hedgehog turtle squirrel bee duck rabbit snail bird cat dog deer goat fish"
).split()
MOOD = "brave shy clever lazy happy curious hungry kind lonely tiny".split()

PLOTS = [
    "{N} lived {i}. One day {N} found a {t} under a tree. {N} wanted to keep it, but {a} "
    "{h} was looking for it and cried. So {N} gave the {t} back. The {h} was so happy that they "
    "became best friends.",
    "{N} loved the {p} very much. One morning the wind took the {t} of {N} away. {N} ran and ran, "
    "but the wind was faster. Then {a} {h} came and caught it. {N} said thank you, and they "
    "had cake together.",
    "{N} was alone {i}. Every night {N} looked at the sky and made a wish. Then {a} {h} "
    'knocked at the door with a {t}. "Let us play," said the {h}. From that day {N} was never '
    "alone again.",
    "{N} wanted to see the whole world, so {N} left the {p} with a {t}. The way was long and it "
    "rained. {A} {h} showed {N} a dry place to sleep. In the morning the sun was back, and {N} "
    "went home with a new friend.",
    "{N} heard a strange noise {i}. It was {a} {h} that was stuck in a hole. {N} took a "
    "{t} and pulled as hard as possible. At last the {h} was free. Everybody {i} was "
    "proud of {N}.",
    "{N} had a plan: to build a house {i}. {N} worked all day, but the roof fell down. "
    "{A} {h} brought a {t} and helped. Together they finished the house before night. They "
    "laughed and ate soup.",
    '{N} had lost a {t} {i}. {N} looked behind every stone and could not find it. "It is '
    'on your head!" said {a} {h}. {N} laughed out loud. After that {N} always looked in the '
    "mirror first.",
]
AT = {"farm": "on", "island": "on", "sea": "by", "mountain": "on", "moon": "on", "lake": "by",
      "river": "by", "market": "at", "school": "at"}  # fmt: skip


def inside(place: str) -> str:
    """'in the cave', 'by the sea'."""
    return f"{AT.get(place, 'in')} the {place}"


ASK = [
    "Tell me a story about {x}.", "Tell a short story about {x}.", "Write a story about {x}.",
    "a story about {x}", "story about {x}", "Write a little story about {x}.",
    "I want a story about {x}", "make up a story about {x}", "give me a short story about {x}",
    "Once upon a time, {x}", "tell me about {x} in a story", "short story: {x}",
    "i want to hear a tale about {x}", "tell me a bedtime story about {x}",
    "invent a tale about {x}", "write me a fairy tale about {x}", "story please, about {x}",
    "a tale of {x}", "do you know a story about {x}?", "got a story about {x}?",
    "let me hear a story about {x}", "create a tiny story with {x}", "a story with {x} in it",
    "write something about {x}", "tell me something nice about {x}", "my kid wants a story about {x}",
]  # fmt: skip
VERB = ["tell me", "write", "make up", "invent", "give me", "I want", "I need", "can I have", "let us have",
        "do you have", "read me", "we would like", "please do", "compose", "I'd love", "how about"]  # fmt: skip
SIZE = [
    "a",
    "a",
    "a short",
    "a little",
    "a nice",
    "a sweet",
    "a funny",
    "one",
    "some",
    "a new",
    "a quick",
]
SORT = [
    "story",
    "story",
    "tale",
    "fairy tale",
    "bedtime story",
    "fable",
    "little tale",
    "narrative",
]
ON = ["about", "about", "with", "on", "featuring", "starring", "of", "where the hero is", "around",
      "in which we meet", "that has"]  # fmt: skip
OTHER = ["{x}: tell the story", "{x}, as a story", "there was {x}. Go on!", "what did {x} do one day?",
         "start with: once there was {x}", "the hero is {x}. Tell the story.", "here comes {x}, tell me more",
         "what happened to {x}?", "I am thinking of {x}. Make it a story.", "say something about {x}", "imagine {x}", "a day with {x}",
         "what does {x} do all day?", "describe {x} in a story", "let us meet {x}"]  # fmt: skip


def frame(rng: random.Random) -> str:
    """A way to ask for a story, from the list or put together."""
    draw = rng.random()
    if draw < 0.5:
        return pick(rng, ASK)
    if draw < 0.65:
        return pick(rng, OTHER)
    return f"{pick(rng, VERB)} {pick(rng, SIZE)} {pick(rng, SORT)} {pick(rng, ON)} {{x}}"


NAMED = ["{x} named {N}", "{x} called {N}", "{N} the {w}", "{N}, {x}", "{x} whose name is {N}",
         "{x} with the name {N}", "{x} that is called {N}"]  # fmt: skip
IN = ["in the {p}", "in a {p}", "who lives in the {p}", "from the {p}", "at the {p}",
      "living in a {p}", "and the {p}", "on the {p}", "by the {p}", "that lives in a {p}", ", set in the {p}"]  # fmt: skip
NO_SUBJECT = [
    "Tell me a story.", "tell a story", "Write a short story.", "a story please",
    "I am bored, tell me a story", "story time!", "can you tell stories?", "know any stories?",
    "tell me a tale", "I want to hear a story", "another story", "make up something for my kids",
]  # fmt: skip


def tell(who: str, where: str, called: str, mood: str = "") -> str:
    """The story of these slots; the same slots always give the same story."""
    at = WHO.index(who)
    place = where or WHERE[(at * 3) % len(WHERE)]
    spot = WHERE.index(place)
    helper = HELPER[spot % len(HELPER)]
    if helper == who:
        helper = "deer"
    plot = PLOTS[spot % len(PLOTS)]
    thing = THING[spot]
    subject = f"{mood} {who}" if mood else who
    text = f"Once upon a time there was {an(subject)} named {called}. " + plot
    article = an(helper).split(" ")[0]
    return text.format(
        N=called, p=place, i=inside(place), t=thing, h=helper, a=article, A=cap(article)
    )


def usual_name(who: str) -> str:
    """The name a character has when nobody gave one."""
    return ["Pip", "Momo", "Luna", "Milo", "Bruno", "Daisy", "Otto"][WHO.index(who) % 7]


def _request(rng: random.Random, test: bool) -> tuple[str, tuple[str, str, str, str]]:
    while True:
        who, where, called, mood = pick(rng, WHO), "", "", ""
        subject = who
        if rng.random() < 0.3:
            mood = pick(rng, MOOD)
            subject = f"{mood} {who}"
        draw = rng.random()
        if draw < 0.75:
            called = name(rng)
        if rng.random() < 0.5:
            where = pick(rng, WHERE)
        if test and not (called and where):
            continue
        if held_out("story", called or who, who, where) == test:
            break
    said = an(subject) if rng.random() < 0.9 else "the " + subject
    if called:
        said = pick(rng, NAMED).format(x=said, N=called, w=subject)
    if where:
        said = f"{said} {pick(rng, IN).format(p=where)}".replace(" ,", ",")
    text = frame(rng).format(x=said)
    if where and rng.random() < 0.05:
        text = f"In the {where}: " + text
    return typed(rng, cap(text), keep=(who, where, called, mood), order=True), (
        who, where, called or usual_name(who), mood)  # fmt: skip


def story(rng: random.Random, test: bool = False) -> Turn:
    """A story about somebody, named or not, somewhere or not."""
    if not test and rng.random() < 0.06:
        text = typed(rng, pick(rng, NO_SUBJECT), order=True)
        return Turn(text, tell("fox", "", "Pip"))
    text, slots = _request(rng, test)
    return Turn(text, tell(*slots))


POEM_ON = {
    "the rain": ("falls", "roof"), "the moon": ("shines", "night"), "a cat": ("sleeps", "mat"),
    "the sea": ("sings", "shore"), "the snow": ("falls", "hill"), "the sun": ("smiles", "day"),
    "a tree": ("grows", "hill"), "a bird": ("sings", "tree"), "the wind": ("blows", "door"),
    "a star": ("shines", "night"), "a flower": ("blooms", "park"), "spring": ("comes", "land"),
    "winter": ("comes", "land"), "a dog": ("runs", "park"), "the river": ("flows", "town"),
}  # fmt: skip


def poem_text(subject: str) -> str:
    """Four short lines."""
    verb, place = POEM_ON[subject]
    it = cap(subject)
    return (
        f"{it} {verb} beside the {place},\nso soft and calm and slow.\n"
        f"I look at {subject} and smile,\nthe best friend that I know."
    )


def poem(rng: random.Random) -> Turn:
    """A four-line poem about one of a few things."""
    subject = rng.choice(list(POEM_ON))
    bare = subject.split(" ")[-1] if rng.random() < 0.3 else subject
    ask = pick(rng, ["Write a poem about {x}.", "poem about {x}", "a short poem about {x}",
                     "make a poem about {x}", "some verses on {x}", "Can you rhyme about {x}?",
                     "give me a little poem on {x}", "I want a poem about {x}"])  # fmt: skip
    return Turn(typed(rng, ask.format(x=bare), keep=(subject,), order=True), poem_text(subject))


def follow(rng: random.Random) -> list[Turn]:
    """A story, then a question about it or a change."""
    text, (who, where, called, mood) = _request(rng, False)
    first = Turn(text, tell(who, where, called, mood))
    place = where or WHERE[(WHO.index(who) * 3) % len(WHERE)]
    kind = rng.randrange(4)
    if kind == 0:
        ask = pick(
            rng,
            [
                f"What was the name of the {who}?",
                "what was the name again",
                f"how was the {who} called?",
                "who was it about?",
                "what's its name?",
            ],
        )
        return [first, Turn(typed(rng, cap(ask)), f"The {who} was named {called}.")]
    if kind == 1:
        ask = pick(rng, ["Where did it happen?", "where was that?", f"where does {called} live?",
                         "in which place was the story"])  # fmt: skip
        return [first, Turn(typed(rng, cap(ask)), f"It happened {inside(place)}.")]
    if kind == 2:
        other = pick(rng, WHO)
        ask = pick(rng, ["now about {x}", "And one about {x}?", "now with {x}", "another one with {x}",
                         "the same with {x}", "what about {x}"])  # fmt: skip
        answer = tell(other, "", usual_name(other))
        return [first, Turn(typed(rng, cap(ask.format(x=an(other))), keep=(other,)), answer)]
    at = (WHERE.index(place) + 1) % len(WHERE)
    ask = pick(rng, ["another one", "Tell me another one.", "one more", "more please", "again!",
                     f"another story about {called}"])  # fmt: skip
    return [first, Turn(typed(rng, ask, keep=(called,)), tell(who, WHERE[at], called, mood))]
