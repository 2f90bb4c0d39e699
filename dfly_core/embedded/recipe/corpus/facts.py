# ruff: noqa: E501, SIM905  (word lists: splitting their lines would hide what belongs together)
"""Small facts that a model this size can hold: about four hundred of them."""

from __future__ import annotations

import random

from .words import Turn, an, cap, held_out, pick, typed


def _pairs(text: str) -> list[tuple[str, str]]:
    out = []
    for item in text.split(";"):
        left, right = item.split("=")
        out.append((left.strip(), right.strip()))
    return out


CAPITALS = _pairs(
    "France=Paris; Germany=Berlin; Italy=Rome; Spain=Madrid; Portugal=Lisbon; Poland=Warsaw; "
    "Austria=Vienna; Greece=Athens; Norway=Oslo; Sweden=Stockholm; Finland=Helsinki; "
    "Denmark=Copenhagen; Ireland=Dublin; England=London; Hungary=Budapest; Belgium=Brussels; "
    "Japan=Tokyo; China=Beijing; India=New Delhi; Russia=Moscow; Egypt=Cairo; Kenya=Nairobi; "
    "Canada=Ottawa; Mexico=Mexico City; Cuba=Havana; Peru=Lima; Chile=Santiago; "
    "Argentina=Buenos Aires; Brazil=Brasilia; Australia=Canberra; Turkey=Ankara; Iran=Tehran; "
    "Iraq=Baghdad; Thailand=Bangkok; Vietnam=Hanoi; South Korea=Seoul; Ukraine=Kyiv; "
    "Romania=Bucharest; Switzerland=Bern; Netherlands=Amsterdam; Scotland=Edinburgh; "
    "Iceland=Reykjavik; Nepal=Kathmandu; Morocco=Rabat; Indonesia=Jakarta; the USA=Washington"
)
COLOURS = _pairs(
    "grass=green; the sky=blue; snow=white; blood=red; the sun=yellow; a banana=yellow; "
    "a lemon=yellow; coal=black; a carrot=orange; milk=white; a tomato=red; a strawberry=red; "
    "chocolate=brown; an orange=orange; a frog=green; the sea=blue; a crow=black; a pumpkin=orange; "
    "a flamingo=pink; a swan=white; a cherry=red; wood=brown; an elephant=gray; a leaf=green; "
    "night=black; a polar bear=white; a plum=purple; a pig=pink; a fire truck=red; a cloud=white"
)
OPPOSITES = _pairs(
    "hot=cold; big=small; up=down; left=right; good=bad; day=night; fast=slow; happy=sad; "
    "old=young; high=low; open=closed; hard=soft; light=dark; wet=dry; rich=poor; full=empty; "
    "long=short; strong=weak; early=late; black=white; true=false; in=out; on=off; yes=no; "
    "loud=quiet; near=far; first=last; thick=thin; clean=dirty; heavy=light; easy=difficult; "
    "wide=narrow; love=hate; war=peace; win=lose; push=pull; start=end; buy=sell; give=take; "
    "asleep=awake; sweet=sour; inside=outside; above=below; more=less; brave=afraid; deep=shallow"
)
SOUNDS = _pairs(
    "cow=moo; dog=woof; cat=meow; duck=quack; sheep=baa; pig=oink; horse=neigh; lion=roar; "
    "frog=ribbit; bee=buzz; owl=hoot; mouse=squeak; snake=hiss; rooster=cock-a-doodle-doo; "
    "hen=cluck; wolf=howl; crow=caw; donkey=hee-haw; bird=tweet; goat=baa"
)
YOUNG = _pairs(
    "dog=puppy; cat=kitten; cow=calf; horse=foal; sheep=lamb; pig=piglet; duck=duckling; "
    "hen=chick; goat=kid; lion=cub; bear=cub; fox=cub; deer=fawn; frog=tadpole; swan=cygnet; "
    "kangaroo=joey; goose=gosling; elephant=calf; owl=owlet; wolf=cub"
)
LEGS = _pairs(
    "dog=4; cat=4; spider=8; ant=6; bee=6; bird=2; duck=2; horse=4; cow=4; snake=0; fish=0; "
    "human=2; crab=10; fly=6; octopus=8; frog=4; chicken=2; table=4; penguin=2; lion=4; beetle=6"
)
KIND = _pairs(
    "dog=mammal; cat=mammal; whale=mammal; dolphin=mammal; bat=mammal; horse=mammal; eagle=bird; "
    "penguin=bird; owl=bird; duck=bird; snake=reptile; lizard=reptile; turtle=reptile; "
    "crocodile=reptile; frog=amphibian; salmon=fish; shark=fish; tuna=fish; ant=insect; bee=insect; "
    "beetle=insect; butterfly=insect; rose=flower; tulip=flower; oak=tree; pine=tree; "
    "apple=fruit; pear=fruit; banana=fruit; carrot=vegetable; potato=vegetable; iron=metal; "
    "gold=metal; piano=musical instrument; violin=musical instrument; hammer=tool"
)
HOME = _pairs(
    "fish=water; bear=forest; camel=desert; whale=sea; monkey=jungle; bee=hive; bird=nest; "
    "cow=farm; penguin=cold south; lion=savanna; spider=web; fox=den; dog=house; frog=pond; "
    "shark=sea; rabbit=burrow; horse=stable; ant=anthill; owl=forest; crab=sea"
)
MAKER = _pairs(
    "honey=bees; milk=cows; eggs=hens; wool=sheep; bread=flour; cheese=milk; wine=grapes; "
    "paper=wood; glass=sand; butter=milk; silk=silkworms; ice=water; chocolate=cocoa; juice=fruit"
)
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
NTH = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
LISTS = [
    (["days of the week", "weekdays", "seven days", "days in a week"],
     "The days of the week are Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday."),
    (["months of the year", "months", "twelve months", "months in a year"],
     "The months are January, February, March, April, May, June, July, August, September, "
     "October, November and December."),
    (["seasons", "four seasons", "seasons of the year"],
     "The seasons are spring, summer, autumn and winter."),
    (["colors of the rainbow", "rainbow colours", "colours in a rainbow"],
     "The colors of the rainbow are red, orange, yellow, green, blue, indigo and violet."),
    (["planets", "eight planets", "planets of the solar system"],
     "The planets are Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus and Neptune."),
    (["vowels", "five vowels", "vowels in English"], "The vowels are a, e, i, o and u."),
    (["primary colors", "three primary colours"], "The primary colors are red, yellow and blue."),
    (["continents", "seven continents"],
     "The continents are Africa, Antarctica, Asia, Australia, Europe, North America and "
     "South America."),
    (["letters of the alphabet", "alphabet", "ABC"],
     "The alphabet is a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z."),
    (["five senses", "senses"], "The five senses are sight, hearing, smell, taste and touch."),
    (["oceans", "big oceans"],
     "The oceans are the Pacific, the Atlantic, the Indian, the Southern and the Arctic Ocean."),
]  # fmt: skip

# kind: (pairs, ways to ask, the answer); {k} the key, {v} the value, {a} the key with its article.
KINDS: dict[str, tuple[list[tuple[str, str]], list[str], str]] = {
    "capital": (CAPITALS, [
        "What is the capital of {k}?", "capital of {k}", "capital of {k}?", "{k} capital",
        "Which city is the capital of {k}?", "Name the capital of {k}.", "what's {k}'s capital?",
        "tell me the capital of {k}", "What is the capital city of {k}?", "the capital of {k} is",
        "I forgot the capital of {k}", "what city is {k}'s capital", "{k}'s capital city",
        "do you know the capital of {k}?", "What's the name of the capital of {k}?",
        "say the capital of {k}", "whats the main city of {k}", "{k}: what is the capital?",
        "what is the capitol of {k}", "give me {k}'s capital",
    ], "The capital of {k} is {v}."),
    "colour": (COLOURS, [
        "What color is {k}?", "What colour is {k}?", "color of {k}", "what is the color of {k}?",
        "Which color does {k} have?", "tell me the colour of {k}", "{k}: what color?",
        "what colour does {k} have", "which colour is {k}", "{k} has what color?",
        "is {k} red or blue or what", "describe the color of {k}", "the colour of {k} is",
        "what color would you paint {k}?",
    ], "{K} is {v}."),
    "opposite": (OPPOSITES, [
        "What is the opposite of {k}?", "opposite of {k}", "opposite of {k}?", "antonym of {k}",
        "what's the opposite of {k}", "Tell me the opposite of {k}.", "{k} and its opposite",
        "which word is the opposite of {k}?", "not {k} but", "what is the contrary of {k}?",
        "give the opposite of {k}", "{k} is the opposite of what?", "the reverse of {k}?",
        "the opposite of the word {k}", "an antonym for {k}?", "what word means the opposite of {k}",
    ], "The opposite of {k} is {v}."),
    "sound": (SOUNDS, [
        "What sound does {a} make?", "what does {a} say?", "sound of {a}", "what does the {k} say",
        "how does {a} sound?", "which noise does {a} make?", "what noise do {k}s make",
        "{k} sound?", "tell me the sound of {a}", "how do {k}s go?", "what does {a} go like",
    ], "{A} says {v}."),
    "young": (YOUNG, [
        "What is a young {k} called?", "what is a baby {k} called?", "baby {k} name",
        "what do you call a young {k}?", "name for a baby {k}", "how do you call a baby {k}",
        "what's the baby of {a} called?", "the young of {a} is called", "word for a little {k}",
    ], "A young {k} is called {w}."),
    "legs": (LEGS, [
        "How many legs does {a} have?", "how many legs has {a}?", "legs of {a}", "{k} legs",
        "number of legs of {a}", "how many legs do {k}s have?", "count the legs of {a}",
        "on how many legs does {a} walk or stand?", "how many legs are on {a}",
    ], "{A} has {v} legs."),
    "kind": (KIND, [
        "What is {a}?", "what kind of thing is {a}?", "what is {a}", "is {a} a {v}?",
        "which group does {a} belong to?", "what type of thing is {a}", "{k} is a what?",
        "what sort of thing is {a}?", "classify {a}", "tell me what {a} is", "define {k}",
    ], "{A} is {w}."),
    "home": (HOME, [
        "Where does {a} live?", "where do {k}s live?", "home of {a}", "where can I find {a}",
        "where is the home of {a}?", "in what place does {a} live", "{k} lives where?",
        "what is the home of {a}", "where would {a} sleep?",
    ], "{A} lives in a {v}."),
    "made": (MAKER, [
        "Where does {k} come from?", "what is {k} made from?", "{k} comes from", "who makes {k}?",
        "what do you need to make {k}", "where do we get {k} from?", "source of {k}",
        "how do we get {k}?", "what gives us {k}",
    ], "{K} comes from {v}."),
}  # fmt: skip
PLAIN_HOME = {"water", "cold south", "sea", "forest", "desert", "jungle", "savanna"}


def answer(kind: str, key: str, value: str) -> str:
    """The one sentence that answers; the same for every wording."""
    form = KINDS[kind][2]
    if kind == "home" and value in PLAIN_HOME:
        form = "{A} lives in {v}." if value == "water" else "{A} lives in the {v}."
    return form.format(
        k=key, v=value, K=cap(key), A=cap(an(key)), w=value if kind == "x" else an(value)
    )


WEIGHTS = {"capital": 5, "colour": 3, "opposite": 5, "sound": 2, "young": 2, "legs": 2, "kind": 2,
           "home": 2, "made": 1}  # fmt: skip
BAG = [kind for kind, weight in WEIGHTS.items() for _ in range(weight)]


def lookup(rng: random.Random, kind: str = "", test: bool = False) -> Turn:
    """One stored fact. The fact must be seen, so what is held out is its pair with a wording."""
    kind = kind or pick(rng, BAG)
    pairs, asks, _ = KINDS[kind]
    key, value = rng.choice(pairs)
    shown = key
    if kind == "colour" and rng.random() < 0.3:
        shown = key.split(" ", 1)[-1] if key[0] in "at" and " " in key else key
    if kind == "opposite" and rng.random() < 0.4 and (value, key) not in pairs:
        back = [pair for pair in pairs if pair[1] == value]
        if len(back) == 1 and value not in dict(pairs):
            key, value = value, key
            shown = key
    ask = pick(rng, asks)
    if held_out("fact", kind, shown, ask) != test:
        return lookup(rng, kind, test)
    text = ask.format(k=shown, v=value, a=an(key))
    return Turn(typed(rng, cap(text), keep=(key, value)), answer(kind, key, value))


def calendar(rng: random.Random) -> Turn:
    """Days and months: after, before, how long, which number."""
    days = rng.random() < 0.5
    names, unit = (DAYS, "day") if days else (MONTHS, "month")
    at = rng.randrange(len(names))
    here = names[at]
    kind = rng.randrange(4 if not days else 3)
    if kind == 0:
        ask = pick(rng, [f"What {unit} comes after {here}?", f"Which {unit} follows {here}?",
                         f"{unit} after {here}", f"what comes after {here}", f"after {here} comes",
                         f"what is the next {unit} after {here}?", f"{here} is followed by",
                         f"if it is {here} now, what {unit} is next?"])  # fmt: skip
        answer = f"The {unit} after {here} is {names[(at + 1) % len(names)]}."
    elif kind == 1:
        ask = pick(rng, [f"What {unit} comes before {here}?", f"Which {unit} is before {here}?",
                         f"{unit} before {here}", f"what was before {here}", f"before {here} is",
                         f"if it is {here} now, what {unit} was before?"])  # fmt: skip
        answer = f"The {unit} before {here} is {names[at - 1]}."
    elif kind == 2:
        whole = "week" if days else "year"
        ask = pick(
            rng,
            [
                f"What is the {NTH[at]} {unit} of the {whole}?",
                f"{NTH[at]} {unit}",
                f"which {unit} is the {NTH[at]} one",
                f"the {NTH[at]} {unit} is called?",
            ],
        )
        answer = f"The {NTH[at]} {unit} of the {whole} is {here}."
    else:
        ask = pick(
            rng,
            [
                f"How many days does {here} have?",
                f"how many days are in {here}",
                f"days in {here}",
                f"how long is {here}?",
                f"number of days in {here}",
            ],
        )
        answer = f"{here} has {LENGTHS[at]} days."
    return Turn(typed(rng, cap(ask), keep=(here,)), answer)


def listing(rng: random.Random) -> Turn:
    """Well-known lists, and counting up or down."""
    if rng.random() < 0.45:
        low, high = rng.randrange(1, 12), rng.randrange(4, 21)
        if rng.random() < 0.5:
            low = 1
        if high - low < 3:
            high = low + 4
        if rng.random() < 0.65:
            asks = [
                "Count from {a} to {b}.",
                "count {a} to {b}",
                "numbers from {a} to {b}",
                "say the numbers {a} to {b}",
                "list the numbers between {a} and {b}",
            ]
            if low == 1:
                asks += ["Count to {b}.", "count up to {b}", "can you count to {b}?"] * 2
            said = [str(i) for i in range(low, high + 1)]
        else:
            asks = [
                "Count down from {b} to {a}.",
                "count backwards from {b} to {a}",
                "count from {b} down to {a}",
            ]
            if low == 1:
                asks += ["Count down from {b}.", "count backwards from {b}", "countdown from {b}"]
            said = [str(i) for i in range(high, low - 1, -1)]
        text = pick(rng, asks).format(a=low, b=high)
        return Turn(typed(rng, cap(text), order=True), ", ".join(said) + ".")
    names, answer = rng.choice(LISTS)
    ask = pick(rng, ["What are the {x}?", "list the {x}", "name the {x}", "Name all {x}.",
                     "tell me the {x}", "give me a list of the {x}", "the {x}?", "say the {x}",
                     "which are the {x}", "write down the {x}", "what {x} are there?"])  # fmt: skip
    return Turn(typed(rng, cap(ask.format(x=pick(rng, names)))), answer)


def follow(rng: random.Random) -> list[Turn]:
    """A fact, then the same kind for another key with hardly a word."""
    kind = pick(rng, ["capital", "capital", "opposite", "colour", "sound", "legs", "young"])
    turns = [lookup(rng, kind)]
    for _ in range(rng.randrange(1, 3)):
        key, value = rng.choice(KINDS[kind][0])
        shown = an(key) if kind in ("sound", "legs") and rng.random() < 0.7 else key
        text = pick(rng, ["and {k}?", "What about {k}?", "how about {k}", "and of {k}?", "{k}?",
                          "and for {k}", "same for {k}", "what about {k}"])  # fmt: skip
        text = typed(rng, cap(text.format(k=shown)), keep=(key,))
        turns.append(Turn(text, answer(kind, key, value)))
    return turns
