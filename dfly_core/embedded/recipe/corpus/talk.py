# ruff: noqa: E501, SIM905  (word lists: splitting their lines would hide what belongs together)
"""Small talk: hello, thanks, names, moods, jokes, and an honest answer to what it cannot do."""

from __future__ import annotations

import random

from .words import Turn, cap, name, pick, typed

CAN = "I can write small Python functions, do sums, convert units, answer simple facts and tell stories."
# (ways to say it, the answer)
SMALL: list[tuple[list[str], str]] = [
    (["hi", "hi there", "hey", "heya", "hi!", "hey you", "yo", "hiya", "hey there", "hi bot", "hii"],
     "Hi! How can I help you?"),
    (["hello", "hello there", "Hello!", "hello you", "good day", "greetings", "hello again",
      "hello computer", "hello my friend", "helo"], "Hello! What can I do for you?"),
    (["good morning", "morning", "good morning to you", "gm", "morning!"],
     "Good morning! I hope you have a nice day."),
    (["good evening", "evening", "good evening to you"], "Good evening! How can I help you?"),
    (["good night", "night night", "good night then", "sleep well", "I go to bed now"],
     "Good night! Sleep well."),
    (["how are you?", "how are you doing?", "how is it going?", "how do you do", "are you ok?",
      "how are you today?", "what's up?", "how do you feel?", "how's life", "you good?",
      "everything fine?", "hi, how are you?", "hello, how are you", "sup"],
     "I am fine, thank you! How can I help you?"),
    (["who are you?", "what are you?", "what is your name?", "your name?", "are you a robot?",
      "introduce yourself", "are you human?", "what should I call you", "tell me about yourself",
      "are you an AI?", "who am I talking to", "what model are you?", "do you have a name?",
      "who r u", "are you real?"],
     "I am a very small language model that runs on your computer."),
    (["what can you do?", "help", "how can you help me?", "what do you know?", "your skills?",
      "what are you good at?", "what can I ask you?", "show me what you can do", "what else can you do",
      "can you help me?", "I need help", "what should I ask?", "give me some ideas", "how do you work"],
     CAN),
    (["thanks", "thank you", "thx", "thanks a lot", "thank you very much", "great, thanks", "ty",
      "cool, thank you", "many thanks", "thanks for your help", "that helped, thanks", "cheers"],
     "You are welcome!"),
    (["bye", "goodbye", "see you", "bye bye", "see you later", "I have to go", "ciao", "good bye",
      "talk to you later", "I'm leaving now", "see ya", "until tomorrow", "farewell"],
     "Goodbye! See you soon."),
    (["well done", "good job", "nice", "great", "you are great", "awesome", "cool", "perfect",
      "that was good", "I like you", "you are smart", "good answer", "wow", "very nice"],
     "Thank you! I am glad you like it."),
    (["that is wrong", "wrong", "no, that's wrong", "you are wrong", "not correct", "bad answer",
      "you made a mistake", "that's not right"], "I am sorry. I am small and I make mistakes."),
    (["ok", "okay", "I see", "alright", "fine", "got it", "sure", "yes", "yep", "understood"],
     "Good! What shall we do next?"),
    (["no", "nope", "nothing", "not now", "never mind"],
     "All right. Just ask when you need something."),
    (["I am sad", "I feel sad", "I'm unhappy", "I feel bad", "I'm so sad today", "I feel down",
      "I want to cry", "I had a bad day", "today was awful", "i feel lonely"],
     "I am sorry to hear that. Shall I tell you a story?"),
    (["I am happy", "I feel great", "I'm so happy", "I feel good", "today is a good day",
      "I had a great day", "what a nice day", "i'm in a good mood"],
     "That is great! I am happy for you."),
    (["I am tired", "I'm sleepy", "I feel tired", "so tired", "I need sleep", "i'm exhausted"],
     "Then take a little rest. Sleep well!"),
    (["I am bored", "I'm bored", "so bored", "I have nothing to do", "this is boring",
      "what should I do now?"], "Let us have some fun! Ask me for a story or a joke."),
    (["I am hungry", "I'm hungry", "I need food", "i want to eat", "so hungry"],
     "Then have something good to eat. Maybe an apple?"),
    (["do you like me?", "are you my friend?", "will you be my friend?", "can we be friends?",
      "do you love me"], "Of course! I like to talk with you."),
    (["how old are you?", "when were you born?", "your age?", "what's your age"],
     "I am brand new. I was trained a short time ago."),
    (["where are you?", "where do you live?", "where are you from?", "where is your home"],
     "I live inside your computer."),
    (["what is your favorite color?", "your favourite colour?", "which color do you like?",
      "what colour do you like best"], "I like blue, the color of the sky."),
    (["what is your favorite animal?", "your favourite animal?", "which animal do you like?",
      "what animal do you like best"], "I like dragonflies, because they are fast."),
    (["what is your favorite food?", "do you eat?", "what do you like to eat?"],
     "I do not eat, but I like the word pancake."),
    (["I love you", "you are the best", "love you", "you're my best friend"],
     "That is very kind of you!"),
    (["how is the weather?", "will it rain today?", "what's the weather like", "is it cold outside"],
     "I can not see the weather. Please look out of the window!"),
    (["what time is it?", "what is the time", "what day is today?", "which date is it today"],
     "I have no clock, so I do not know."),
    (["are you fast?", "why are you so fast?", "how fast are you", "what is dfly?",
      "what is speculative decoding?", "how does speculative decoding work"],
     "A small drafter guesses the next words and I check them all at once, so I am fast."),
]  # fmt: skip
JOKES = [
    ("cat", "Why did the cat sit on the computer? It wanted to catch the mouse."),
    ("dog", "Why did the dog sit in the shade? It did not want to be a hot dog."),
    ("computer", "Why was the computer cold? It left its windows open."),
    ("math", "Why was the math book sad? It had too many problems."),
    ("fish", "Why are fish so smart? They live in schools."),
    ("cow", "What do you call a cow that can play music? A moosician."),
    ("tree", "How do trees use the computer? They log in."),
    ("teacher", "Why did the teacher wear sunglasses? The class was so bright."),
]
JOKE = ["Tell me a joke.", "a joke", "joke please", "do you know a joke?", "make me laugh",
        "say something funny", "I want to hear a joke", "be funny", "got any jokes?",
        "tell me something funny", "know a good joke?", "cheer me up", "I need a laugh", "a pun please",
        "let me hear a joke", "give me a short joke", "do you have something funny?", "time for a joke",
        "I would like a good joke", "entertain me", "one joke", "what is your best joke?"]  # fmt: skip
ABOUT = ["Tell me a joke about {k}s.", "a joke about a {k}", "{k} joke", "joke with a {k}",
         "do you know a {k} joke?", "something funny about {k}s", "a {k} joke please"]  # fmt: skip
MEET = ["My name is {n}.", "I am {n}", "I'm {n}", "you can call me {n}", "call me {n}",
        "hi, I'm {n}", "hello, my name is {n}", "my name's {n}", "{n} is my name",
        "people call me {n}", "hey, {n} here", "nice to meet you, I am {n}", "this is {n}",
        "my friends call me {n}", "it is {n} here", "hello from {n}", "{n} speaking", "the name is {n}",
        "I go by {n}", "you are talking to {n}", "I am called {n}", "they named me {n}"]  # fmt: skip
REMEMBER = ["What is my name?", "do you know my name?", "what's my name", "who am I?",
            "do you remember my name?", "say my name", "what am I called?"]  # fmt: skip
LIKES = (
    "apples music books football chess dancing trains summer winter tea coffee pizza cats "
    "dogs painting rain snow stars flowers games math cooking swimming running"
).split()
LIKE = ["I like {x}.", "I love {x}", "{x} are my favorite", "I really like {x}", "i enjoy {x}",
        "do you like {x}?", "what do you think about {x}?", "my hobby is {x}"]  # fmt: skip
FAR = ["Who is the president of {x}?", "Who won the game {x} yesterday?", "What happened in {y}?",
       "translate {x} to German", "Who wrote {x}?", "what is the meaning of {x}?",
       "explain {x} to me", "what is the price of {x}?", "who invented {x}?",
       "summarize {x}", "what should I know about {x}?", "who is the king of {x}",
       "give me a recipe for {x}", "what is the population of {x}?", "who discovered {x}?",
       "draw a picture of {x}", "play {x}", "search the web for {x}", "buy {x} for me"]  # fmt: skip
FAR_ON = ("physics gravity the internet Bitcoin quantum theory the stock market Hamlet philosophy "
          "the news electricity Mozart soup chess atoms the war Rome lasagna democracy tennis "
          "phones algebra the telephone opera penicillin oil").split(" ")  # fmt: skip
UNKNOWN = "I am too small to know that. " + CAN


FEEL = ["I am", "I feel", "I'm", "feeling", "I am feeling", "my mood is", "i was", "we are"]
MUCH = ["", "", "so", "very", "a bit", "rather", "quite", "really", "a little", "too"]
WHEN = [
    "",
    "",
    "today",
    "now",
    "right now",
    "tonight",
    "again",
    "this morning",
    "all day",
    "at home",
]
MOODS = [
    ("sad down low unhappy lonely blue miserable awful bad lost worried hurt upset heartbroken",
     "I am sorry to hear that. Shall I tell you a story?"),
    ("happy great good wonderful cheerful fantastic glad excited joyful proud",
     "That is great! I am happy for you."),
    ("tired sleepy exhausted worn weary", "Then take a little rest. Sleep well!"),
    ("bored", "Let us have some fun! Ask me for a story or a joke."),
    ("hungry starving", "Then have something good to eat. Maybe an apple?"),
]  # fmt: skip
THANK = [
    "thanks",
    "thank you",
    "many thanks",
    "thx",
    "big thanks",
    "I thank you",
    "thank you again",
]
FOR = ["", "", "a lot", "so much", "very much", "for that", "for the answer", "for helping me",
       "for the story", "for your time", "for the code", "for everything"]  # fmt: skip
PRAISE = ["", "", ", that was good", ", that was nice", ", you are great", ", very useful", ", perfect",
          ", this is what I need", ", you helped me a lot", ", that is kind", "! Great answer"]  # fmt: skip
GREET = ["hi", "hello", "hey", "good day", "hi there", "hello friend", "hey you", "hello again"]
HOW = ["how are you", "how is it going", "how was your day", "how do you feel", "are you well",
       "is everything fine", "how are things", "how is life", "are you having a good day",
       "what are you up to"]  # fmt: skip


def composed(rng: random.Random) -> Turn:
    """Moods, thanks and greetings from parts: many wordings for few answers."""
    draw = rng.random()
    if draw < 0.5:
        moods, answer = rng.choice(MOODS)
        parts = [pick(rng, FEEL), pick(rng, MUCH), pick(rng, moods.split()), pick(rng, WHEN)]
        text = " ".join(part for part in parts if part)
    elif draw < 0.75:
        text = f"{pick(rng, THANK)} {pick(rng, FOR)}".strip() + pick(rng, PRAISE)
        answer = "You are welcome!"
    else:
        link = pick(rng, [", ", "! ", ". ", " and "])
        how = f"{pick(rng, HOW)} {pick(rng, WHEN)}".strip()
        text = (pick(rng, GREET) + link if rng.random() < 0.6 else "") + how + "?"
        answer = "I am fine, thank you! How can I help you?"
    return Turn(typed(rng, cap(text)), answer)


def small(rng: random.Random) -> Turn:
    """One of the fixed exchanges."""
    if rng.random() < 0.35:
        return composed(rng)
    ways, answer = rng.choice(SMALL)
    text = pick(rng, ways)
    plain = rng.random() < 0.4
    return Turn(text if plain else typed(rng, cap(text)), answer)


def joke(rng: random.Random) -> list[Turn]:
    """A joke, and perhaps the next ones."""
    at = 0
    if rng.random() < 0.5:
        at = rng.randrange(len(JOKES))
        text = pick(rng, ABOUT).format(k=JOKES[at][0])
    else:
        text = pick(rng, JOKE)
    turns = [Turn(typed(rng, cap(text), keep=(JOKES[at][0],), order=True), JOKES[at][1])]
    while rng.random() < 0.3 and len(turns) < 3:
        at = (at + 1) % len(JOKES)
        ask = pick(rng, ["another one", "another joke", "one more", "tell me another one", "again",
                         "more jokes", "one more joke please"])  # fmt: skip
        turns.append(Turn(typed(rng, cap(ask)), JOKES[at][1]))
    return turns


def meet(rng: random.Random, who: str = "") -> Turn:
    """Somebody says their name."""
    who = who or name(rng)
    text = pick(rng, MEET).format(n=who)
    return Turn(typed(rng, cap(text), keep=(who,)), f"Nice to meet you, {who}! How can I help you?")


def remember(rng: random.Random) -> Turn:
    """Asked for the name without having heard it."""
    return Turn(typed(rng, pick(rng, REMEMBER)), "You did not tell me your name yet.")


def like(rng: random.Random) -> Turn:
    """Somebody likes something."""
    thing = pick(rng, LIKES)
    text = pick(rng, LIKE).format(x=thing)
    return Turn(typed(rng, cap(text), keep=(thing,)), f"I like {thing} too! Tell me more.")


def far(rng: random.Random) -> Turn:
    """Far outside: say so instead of inventing."""
    text = pick(rng, FAR).format(x=pick(rng, FAR_ON), y=rng.randrange(1500, 2020))
    return Turn(typed(rng, cap(text)), UNKNOWN)
