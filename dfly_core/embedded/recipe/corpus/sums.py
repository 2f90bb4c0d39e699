# ruff: noqa: E501, SIM905  (word lists: splitting their lines would hide what belongs together)
"""Sums, differences, products and quotients, always reached in small steps."""

from __future__ import annotations

import random

from .words import Turn, cap, held_out, name, pick, typed

THINGS = (
    "apples books coins pens marbles cookies stones eggs cards shells balloons stamps oranges "
    "pencils toys flowers stickers candies cups keys nuts buttons pears plums cars ducks "
    "points dollars trees fish birds roses letters photos songs chairs hats shoes rings"
).split()


def add(a: int, b: int) -> str:
    """The steps of a + b, tens first: one step alone is not learnt by a model this small."""
    ones = b % 10
    if b < 10 or ones == 0:
        return f"{a} + {b} = {a + b}."
    part = a + b - ones
    return f"{a} + {b - ones} = {part}, {part} + {ones} = {a + b}. So {a} + {b} = {a + b}."


def subtract(a: int, b: int) -> str:
    """The steps of a - b, tens first; a smaller a is turned round."""
    if a < b:
        return f"{subtract(b, a)[:-1]}, and {a} - {b} = {a - b}."
    ones = b % 10
    if b < 10 or ones == 0:
        return f"{a} - {b} = {a - b}."
    part = a - b + ones
    return f"{a} - {b - ones} = {part}, {part} - {ones} = {a - b}. So {a} - {b} = {a - b}."


def multiply(a: int, b: int) -> str:
    """Table entries at once, larger numbers split into tens and ones."""
    if (a <= 12 and b <= 12) or a % 10 == 0 or b % 10 == 0:
        return f"{a} * {b} = {a * b}."
    if b > a:
        a, b = b, a
    tens, ones = a - a % 10, a % 10
    x, y = tens * b, ones * b
    return f"{tens} * {b} = {x}, {ones} * {b} = {y}, {x} + {y} = {a * b}. So {a} * {b} = {a * b}."


def divide(a: int, b: int) -> str:
    """From the table: the product is said first."""
    return f"{b} * {a // b} = {a}. So {a} / {b} = {a // b}."


ASK = [
    "What is {e}?", "what's {e}?", "{e}", "{e}?", "{e} = ?", "{e} =", "{e}=", "Calculate {e}.",
    "How much is {e}?", "compute {e}", "Tell me what {e} is.", "what does {e} make?", "Solve {e}.",
    "Give me the result of {e}.", "work out {e}", "What do you get for {e}?", "whats {e}",
    "What does {e} equal?", "the answer to {e}?", "result of {e}", "Is it true that you know {e}?",
    "do the math: {e}", "figure out {e}", "i need {e}", "how many is {e}", "evaluate {e}",
    "find {e}", "what would {e} be?", "What is the value of {e}?", "{e} makes what?",
    "{e} is how much?", "{e} equals?", "{e} gives?",
]  # fmt: skip
WRITTEN = {
    "+": ["{a} + {b}", "{a}+{b}", "{a} plus {b}", "{a} and {b} together", "{a} added to {b}",
          "the sum of {a} and {b}", "{a} +{b}", "the total of {a} and {b}"],
    "-": ["{a} - {b}", "{a}-{b}", "{a} minus {b}", "{a} take away {b}", "{a} less {b}",
          "the difference of {a} and {b}", "the difference between {a} and {b}",
          "{a} without {b}"],
    "*": ["{a} * {b}", "{a}*{b}", "{a} times {b}", "{a} x {b}", "{a}x{b}", "{a} multiplied by {b}",
          "the product of {a} and {b}", "{a} by {b} multiplied"],
    "/": ["{a} / {b}", "{a}/{b}", "{a} divided by {b}", "{a} over {b}", "{a} split by {b}",
          "the quotient of {a} and {b}", "{a} : {b}"],
}  # fmt: skip
ORDER = {
    "+": ["Add {a} and {b}.", "Add {b} to {a}.", "sum {a} and {b}", "Put {a} and {b} together.",
          "add {a} with {b}", "Sum up {a} and {b}.", "add up {a} and {b}", "Increase {a} by {b}.",
          "if I add {b} to {a}, what do I get?", "{a} and then {b} more, what is it?", "take {a}, add {b}",
          "what is {b} more than {a}?", "{a} with {b} added",
          "start at {a} and go up by {b}", "combine {a} and {b}", "count {b} up from {a}"],
    "-": ["Subtract {b} from {a}.", "Take {b} away from {a}.", "take {b} from {a}",
          "Remove {b} from {a}.", "Decrease {a} by {b}.", "start at {a} and go down by {b}",
          "if I take {b} from {a}, what is left?", "what remains of {a} without {b}?", "take {a}, minus {b}",
          "what is {b} less than {a}?", "how far is it from {b} up to {a}?", "{a} with {b} removed",
          "deduct {b} from {a}", "count {b} down from {a}", "reduce {a} by {b}"],
    "*": ["Multiply {a} by {b}.", "Multiply {a} and {b}.", "multiply {a} with {b}",
          "Take {a} times {b}.", "{a} groups of {b}", "if I multiply {a} and {b}, what is it?", "{a} sets of {b}, how many?", "give me the product {a} times {b}"],
    "/": ["Divide {a} by {b}.", "Split {a} by {b}.", "Share {a} among {b}.", "divide {a} with {b}",
          "split {a} into {b} equal parts", "how often does {b} go into {a}"],
}  # fmt: skip
GAIN = [
    "{n} has {a} {t} and gets {b} more. How many {t} does {n} have?",
    "{n} has {a} {t}. {n} buys {b} more. How many now?",
    "If {n} has {a} {t} and finds {b} more, how many {t} are there?",
    "There are {a} {t} in a box and {b} more are put in. How many {t}?",
    "I have {a} {t} and get {b} more, how many do I have?",
    "{n} had {a} {t}, then a friend gave {b} more. How many in all?",
    "I own {a} {t} and my friend owns {b}. How many together?",
    "{a} {t} in one bag, {b} in another: how many in total?",
    "If you have {a} {t} and I bring {b}, what is the total?",
    "There were {a} {t}, and {b} came along. How many are there?",
    "{n} picks {a} {t} and then {b} more {t}. How many {t} altogether?",
]
LOSE = [
    "{n} has {a} {t} and gives away {b}. How many {t} are left?",
    "{n} has {a} {t}. {n} loses {b}. How many now?",
    "If {n} has {a} {t} and sells {b}, how many {t} remain?",
    "There are {a} {t} in a box and {b} are taken out. How many {t} are left?",
    "I have {a} {t} and lose {b}, how many do I have left?",
    "{n} had {a} {t} but dropped {b}. How many remain?",
    "I own {a} {t} and give my friend {b}. How many do I keep?",
    "{a} {t} on the table, {b} fall down: how many stay?",
    "There were {a} {t}, and {b} were eaten. How many are left over?",
    "{n} bought {a} {t} and used {b} of them. How many {t} does {n} still have?",
]
EACH = [
    "{n} has {a} boxes with {b} {t} each. How many {t} in all?",
    "There are {a} bags and {b} {t} in every bag. How many {t}?",
    "If one box holds {b} {t}, how many {t} do {a} boxes hold?",
    "I have {a} rows of {b} {t}. How many {t}?",
]
SHARE = [
    "{n} shares {a} {t} equally among {b} friends. How many does each get?",
    "Split {a} {t} between {b} people. How many each?",
    "{a} {t} are put into {b} boxes evenly. How many in every box?",
    "If {b} kids share {a} {t}, how many does each kid get?",
]

PEOPLE = ["my mother", "the farmer", "my friend", "our teacher", "a girl", "a boy", "my father",
          "the shop", "the king", "my sister", "our class", "a man", "she", "he"]  # fmt: skip
HAVE = ["has", "had", "owns", "starts with", "began with", "saved", "holds", "counted", "keeps"]
UP = ["gets", "finds", "buys", "receives", "wins", "picks up", "earns", "adds", "borrows", "makes",
      "is given", "was sent", "bought", "found", "got"]  # fmt: skip
DOWN = ["loses", "sells", "eats", "gives away", "drops", "uses up", "breaks", "throws away",
        "lends out", "lost", "sold", "gave away", "hides", "spends", "returns"]  # fmt: skip
UP_BY = ["{b} more", "another {b}", "{b}", "{b} new {t}", "{b} more {t}", "{b} extra", "{b} others"]
DOWN_BY = ["{b}", "{b} of them", "{b} {t}", "{b} of the {t}"]
LINK = [". Then {s} ", " and ", ", then ", ". Later {s} ", " and then ", ". Today {s} ", ", but ",
        ". After that {s} ", ", and "]  # fmt: skip
UP_ASK = ["How many {t} are there now?", "How many in all?", "What is the total?", "how many now",
          "How many {t} is that?", "how many {t} together", "So how many {t}?", "total?",
          "How many does that make?", "how many are there in the end?"]  # fmt: skip
DOWN_ASK = ["How many {t} are left?", "How many remain?", "what is left?", "how many now",
            "How many {t} stay?", "So how many {t} are left over?", "how many {t} are still there?",
            "how many are there in the end?", "What remains?"]  # fmt: skip

GIVER = ["my aunt", "a friend", "the teacher", "my uncle", "the neighbor", "somebody", "her brother",
         "the baker", "his father"]  # fmt: skip
GIVES = ["gives", "gave", "brings", "hands", "sends", "lends", "offers", "has given", "throws"]
TO = ["me", "him", "her", "us", "them", "{s}"]


def given(rng: random.Random, op: str, who: str) -> str:
    """Who gives to whom decides between more and less."""
    other = pick(rng, GIVER)
    by = pick(
        rng, ["{b}", "{b} more", "another {b}", "{b} {t}"] if op == "+" else ["{b}", "{b} {t}"]
    )
    if op == "+":
        move = f"{other} {pick(rng, GIVES)} {pick(rng, TO).format(s=who)} {by}"
    else:
        move = f"{who} {pick(rng, GIVES)} {other} {by}"
    link = pick(rng, [". ", " and ", ", ", ". Then ", ", then ", " but ", ". Now "])
    end = pick(rng, [". ", ". ", ", ", ": "]) + pick(rng, UP_ASK if op == "+" else DOWN_ASK)
    return f"{who} {pick(rng, HAVE)} {{a}} {{t}}{link}{move}{end}"


def tale(rng: random.Random, op: str, who: str) -> str:
    """A word problem put together from parts: thousands of wordings."""
    subject = who if rng.random() < 0.5 else pick(rng, PEOPLE)
    link, by = pick(rng, LINK), pick(rng, UP_BY if op == "+" else DOWN_BY)
    text = (f"{subject} {pick(rng, HAVE)} {{a}} {{t}}{link.format(s=subject)}"
            f"{pick(rng, UP if op == '+' else DOWN)} {by}")  # fmt: skip
    text = ("If " if rng.random() < 0.15 else "") + text
    end = ", " if text.startswith("If ") else pick(rng, [". ", ". ", ", ", ": ", "; "])
    return cap(text + end + pick(rng, UP_ASK if op == "+" else DOWN_ASK))


def numbers(rng: random.Random, op: str) -> tuple[int, int]:
    """Two numbers that suit the operation."""
    if op in "+-":
        a, b = rng.randrange(1, 100), rng.randrange(1, 100)
        if rng.random() < 0.25:
            b = rng.randrange(1, 10)
        elif rng.random() < 0.12:
            a = rng.choice((100, 200, 150, 120, 250, 300, 500, 110))
        if op == "-" and a < b and rng.random() < 0.9:
            a, b = b, a
        return a, b
    a, b = rng.randrange(1, 13), rng.randrange(1, 13)
    if op == "*":
        if rng.random() < 0.4:
            a, b = rng.randrange(13, 51), rng.randrange(2, 10)
        elif rng.random() < 0.08:
            b = rng.choice((10, 20, 100))
        return (b, a) if rng.random() < 0.5 else (a, b)
    return a * b, b


STEPS = {"+": add, "-": subtract, "*": multiply, "/": divide}


def drawn(rng: random.Random, test: bool) -> tuple[str, int, int]:
    """An operation and its numbers; held-out pairs go to the evaluation only."""
    while True:
        op = "+++---****/"[rng.randrange(11)]
        a, b = numbers(rng, op)
        # Tables are memorised, so only what can be worked out is held out.
        worked = op in "+-" or (op == "*" and max(a, b) > 12)
        if (worked and held_out("sum", op, a, b)) == test:
            return op, a, b


def plain(rng: random.Random, test: bool = False) -> Turn:
    """A bare calculation."""
    op, a, b = drawn(rng, test)
    if rng.random() < 0.3:
        text = typed(rng, pick(rng, ORDER[op]).format(a=a, b=b), order=True)
    else:
        shape = WRITTEN[op][0] if rng.random() < 0.3 else pick(rng, WRITTEN[op])
        text = typed(rng, cap(pick(rng, ASK).format(e=shape.format(a=a, b=b))))
    return Turn(text, STEPS[op](a, b))


def problem(rng: random.Random, test: bool = False) -> Turn:
    """A tiny word problem; the answer names the thing counted."""
    op, a, b = drawn(rng, test)
    if a < b and op == "-":
        a, b = b, a
    who, thing = name(rng), pick(rng, THINGS)
    frames = {"+": GAIN, "-": LOSE, "*": EACH, "/": SHARE}[op]
    form = pick(rng, frames)
    draw = rng.random()
    if op in "+-" and draw < 0.65:
        form = tale(rng, op, who) if draw < 0.4 else given(rng, op, rng.choice((who, "I")))
    text = form.format(n=who, a=a, b=b, t=thing)
    total = {"+": a + b, "-": a - b, "*": a * b, "/": a // b}[op]
    end = f" The answer is {total} {thing}."
    return Turn(typed(rng, text, keep=(who, thing)), STEPS[op](a, b) + end)


def small(rng: random.Random, test: bool = False) -> Turn:
    """Doubles, halves, squares, comparisons, neighbours, even or odd, three terms."""
    kind = rng.randrange(7)
    n = rng.randrange(1, 100)
    if kind == 0:
        n = rng.randrange(1, 51)
        ask = pick(rng, ["What is double {n}?", "double {n}", "twice {n}?", "{n} doubled",
                         "what is two times {n}"])  # fmt: skip
        answer = f"Double {n} is {n} + {n}. {add(n, n)}"
    elif kind == 1:
        n = rng.randrange(1, 51) * 2
        ask = pick(rng, ["What is half of {n}?", "half of {n}", "Halve {n}.", "{n} cut in half",
                         "what's one half of {n}?"])  # fmt: skip
        answer = f"Half of {n} is {n // 2}."
    elif kind == 2:
        n = rng.randrange(1, 13)
        ask = pick(rng, ["What is {n} squared?", "the square of {n}", "square {n}", "{n} squared"])
        answer = f"{n} squared is {n} * {n} = {n * n}."
    elif kind == 3:
        a, b = rng.randrange(1, 100), rng.randrange(1, 100)
        if a == b or held_out("bigger", a, b) != test:
            return small(rng, test)
        big = rng.random() < 0.6
        ask = pick(rng, ["Which is {w}, {a} or {b}?", "which number is {w}: {a} or {b}",
                         "{a} or {b}, which one is {w}?", "is {a} or {b} {w}?"])  # fmt: skip
        word = pick(rng, ["bigger", "larger", "greater", "more"] if big else ["smaller", "less"])
        ask = ask.format(w=word, a=a, b=b)
        high, low = max(a, b), min(a, b)
        answer = f"{high} is bigger than {low}." if big else f"{low} is smaller than {high}."
    elif kind == 4:
        up = rng.random() < 0.5
        ask = pick(
            rng,
            ["What number comes after {n}?", "what comes after {n}", "next after {n}?"]
            if up
            else ["What number comes before {n}?", "the number before {n}"],
        )
        answer = f"The number {'after' if up else 'before'} {n} is {n + 1 if up else n - 1}."
    elif kind == 5:
        ask = pick(rng, ["Is {n} even or odd?", "is {n} an even number?", "is {n} odd",
                         "{n}: even or odd?", "check if {n} is even"])  # fmt: skip
        answer = f"{n} is {'odd' if n % 2 else 'even'}."
    else:
        a, b, c = (rng.randrange(1, 21) for _ in range(3))
        if held_out("three", a, b, c) != test:
            return small(rng, test)
        ask = pick(rng, ["What is {a} + {b} + {c}?", "{a}+{b}+{c}", "add {a}, {b} and {c}",
                         "{a} plus {b} plus {c}", "sum of {a}, {b} and {c}"])  # fmt: skip
        ask = ask.format(a=a, b=b, c=c)
        answer = f"{a} + {b} = {a + b}, {a + b} + {c} = {a + b + c}."
    return Turn(typed(rng, cap(ask.format(n=n))), answer)


FOLLOW = {
    "+": ["now add {b}", "Add {b} to that.", "and plus {b}?", "plus {b}", "add another {b}",
          "what if I add {b} more?", "+ {b}", "then add {b}", "and {b} more?"],
    "-": ["now subtract {b}", "Take {b} away from that.", "and minus {b}?", "minus {b}", "- {b}",
          "what if I take away {b}?", "then subtract {b}", "and {b} less?"],
    "*": ["now double it", "times two", "and doubled?", "Double that.", "twice that?"],
}  # fmt: skip


def chain(rng: random.Random) -> list[Turn]:
    """A calculation, then changes to its result."""
    op, a, b = drawn(rng, False)
    while op not in "+-" or (op == "-" and a < b):
        op, a, b = drawn(rng, False)
    first = plain(rng)
    shape = pick(rng, WRITTEN[op]).format(a=a, b=b)
    first = Turn(typed(rng, cap(pick(rng, ASK).format(e=shape))), STEPS[op](a, b))
    value = a + b if op == "+" else a - b
    turns = [first]
    for _ in range(rng.randrange(1, 4)):
        op = "++--*"[rng.randrange(5)]
        b = rng.randrange(1, 10) if rng.random() < 0.6 else rng.randrange(10, 60)
        if (op == "-" and b > value) or value < 0:
            op = "+"
        if op == "*" and not 0 < value < 60:
            op = "+"
        if op == "*":
            b = value
        text = typed(rng, cap(pick(rng, FOLLOW[op]).format(b=b)))
        turns.append(Turn(text, STEPS["+" if op == "*" else op](value, b)))
        value = value - b if op == "-" else value + b
    return turns
