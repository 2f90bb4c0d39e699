"""The first conversation: ask, stream, stop, follow up, keep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dfly_core.records.commands import Load
from dfly_tui.state.conversation import Conversation, Turn, Who
from dfly_tui.state.store import Store
from dfly_tui.widgets.answer import Answer
from dfly_tui.widgets.transcript import Question
from tests.app.app_driving import Opener


async def test_a_question_is_answered_and_the_panel_counts(open_app: Opener) -> None:
    async with open_app() as d:
        await d.ask("hello")
        text = await d.answered()
        assert text.startswith("The fox found a **lantern**")
        assert d.app.panel.stats.cycles > 3
        assert "mean accepted length" in d.shown
        assert "●" in d.shown
        assert "○" in d.shown
        assert "◆" in d.shown
        assert "def light(lamp):" in d.shown
        assert "**lantern**" not in d.app.query_one(Answer).prose.rows[0]


async def test_escape_keeps_the_partial_answer_and_the_next_turn_has_it_as_history(
    open_app: Opener,
) -> None:
    async with open_app("long", rate=60) as d:
        await d.ask("one")
        await d.wait(lambda: len(d.app.talk.chat.turns[-1].text) > 20)
        await d.pilot.press("escape")
        text = await d.answered()
        turn = d.app.talk.chat.turns[-1]
        assert turn.end == "stopped"
        assert text
        assert "stopped" in d.shown
        await d.ask("two")
        messages = d.app.talk.chat.messages(upto=4)
        assert [(m.role, m.content) for m in messages] == [
            ("user", "one"), ("assistant", text), ("user", "two"),
        ]  # fmt: skip
        await d.pilot.press("escape")
        await d.answered(4)


async def test_fault_03_stop_before_the_first_token_is_idle_again(open_app: Opener) -> None:
    async with open_app("slowfirst") as d:
        await d.ask("hello")
        await d.wait(lambda: d.app.talk.answering)
        await d.pilot.press("escape")
        assert await d.answered() == ""
        assert not d.app.desk.busy
        assert d.app.panel.first_token is None
        # A question that got no word is not history.
        await d.ask("again")
        assert [m.content for m in d.app.talk.chat.messages(upto=4)] == ["again"]
        await d.pilot.press("escape")
        await d.answered(4)


async def test_the_welcome_says_that_the_embedded_pair_is_tiny_and_of_no_other(
    open_app: Opener,
) -> None:
    async with open_app() as d:
        await d.sees("The embedded pair is tiny and can do little else.")
        d.app.load(Load("target", "drafter"))
        await d.wait(lambda: d.ready and d.app.panel.pair is not None)
        await d.wait(lambda: "tiny" not in d.shown)


async def test_the_head_says_that_the_prompt_is_read_until_the_first_word(
    open_app: Opener,
) -> None:
    async with open_app("slowfirst") as d:
        await d.ask("hello")
        await d.sees("reading the prompt")
    async with open_app("reading") as d:
        await d.ask("hello")
        await d.sees("reading 512 of 4,096 tokens")
    async with open_app("halfway") as d:
        await d.ask("hello")
        await d.wait(lambda: len(d.app.panel.steps) == 5)
        await d.pilot.pause(0.3)
        head = d.shown.splitlines()[0]
        assert "reading" not in head
        assert head.rstrip().endswith("embedded pair")


async def test_fault_04_a_stopped_answer_is_there_after_a_restart(
    open_app: Opener, home: Path
) -> None:
    async with open_app("long", rate=60) as d:
        await d.ask("hello")
        await d.wait(lambda: len(d.app.talk.chat.turns[-1].text) > 20)
        await d.pilot.press("escape")
        text = await d.answered()
    chat = Store(home / "data" / "chats").load(1)
    assert chat.turns[-1].text == text
    assert chat.turns[-1].end == "stopped"
    async with open_app(resume=1) as d:
        assert len(d.app.query(Question)) == 1
        await d.sees("stopped")
        assert d.app.talk.chat.messages()[-1].content == text


async def test_an_example_is_one_key_away(open_app: Opener) -> None:
    async with open_app() as d:
        assert "Tab for an example" in d.shown
        await d.pilot.press("tab")
        first = d.app.chat_screen.composer.draft
        assert first
        await d.pilot.press("tab")
        assert d.app.chat_screen.composer.draft != first
        await d.pilot.press("enter")
        await d.answered()
        assert not d.app.chat_screen.welcome.display


async def test_tab_leaves_a_draft_of_ones_own_as_it_is_and_the_keys_say_what_it_does(
    open_app: Opener,
) -> None:
    async with open_app() as d:
        await d.sees("tab Example")
        await d.pilot.press(*"hi")
        await d.wait(lambda: "tab Example" not in d.shown)
        await d.pilot.press("tab")
        assert d.app.chat_screen.composer.draft == "hi"
        d.app.chat_screen.composer.set_draft("")
        await d.pilot.press(*"/re")  # goes to the composer, whatever has the focus
        await d.sees("tab Complete")
        await d.pilot.press("tab")
        assert d.app.chat_screen.composer.draft == "/rename "


async def test_a_message_sent_while_loading_waits_for_the_pair(open_app: Opener) -> None:
    async with open_app("slowhello", load=False) as d:
        await d.ask("early")
        await d.answered()
        assert d.app.talk.chat.turns[0].text == "early"


async def test_a_prompt_from_the_command_line_is_asked_at_once(open_app: Opener) -> None:
    async with open_app(load=False, prompt="from the shell") as d:
        await d.answered()
        assert d.app.talk.chat.turns[0].text == "from the shell"


async def test_again_replaces_the_last_answer(open_app: Opener, home: Path) -> None:
    async with open_app("echo") as d:
        await d.ask("one")
        await d.answered()
        await d.pilot.press("ctrl+r")
        await d.pilot.pause()
        await d.answered()
        assert [t.who for t in d.app.talk.chat.turns] == ["user", "assistant"]
    assert len(Store(home / "data" / "chats").load(1).turns) == 2


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("toolong", "the prompt has 3000 tokens, the context 2048"),
        ("noweights", "no weights in /nowhere: choose another folder"),
    ],
)
async def test_a_fault_is_one_clear_line_with_the_remedy(
    open_app: Opener, scenario: str, said: str
) -> None:
    async with open_app(scenario, load=False) as d:
        if scenario == "toolong":
            await d.wait(lambda: d.ready)
            await d.ask("hello")
        await d.wait(lambda: said in d.app.chat_screen.notice.words)
        await d.pilot.pause()
        assert said[:30] in d.shown


async def test_fault_22_drafting_off_shows_its_reason_and_a_dash(open_app: Opener) -> None:
    async with open_app("plain") as d:
        await d.ask("hello")
        await d.answered()
        assert "Drafting off: no drafter is loaded" in d.shown
        lines = [line for line in d.shown.split("\n") if "mean accepted length" in line]
        assert "- mean accepted length" in lines[0]
        assert "- accepted" in lines[0]


async def test_the_embedded_pair_always_drafts_and_others_are_measured(open_app: Opener) -> None:
    async with open_app() as d:
        await d.wait(lambda: d.ready)
        pair = d.app.panel.pair
        assert pair is not None
        assert pair.embedded
        assert d.app.options.width == pair.block_size - 1
        d.app.settings.width = 2
        assert d.app.options.width == 2
        d.app.settings.width = None
        d.app.panel.pair = replace(pair, embedded=False)
        assert d.app.options.width is None


async def test_a_long_chat_shows_its_end_and_pages_back_to_its_beginning(open_app: Opener) -> None:
    async with open_app(size=(80, 24)) as d:
        chat = Conversation()
        for number in range(1, 61):
            who: Who = "user" if number % 2 else "assistant"
            chat.turns.append(Turn(number, who, f"turn number {number}.", "stop"))
        d.app.talk.open(chat)
        await d.sees("turn number 60.")
        for _ in range(60):
            await d.pilot.press("pageup")
            await d.pilot.pause()
            if "turn number 1." in d.shown:
                break
        await d.sees("turn number 1.")
        assert len(d.app.query("Question, Answer")) <= 24
        await d.pilot.press("end")
        await d.sees("turn number 60.")
        await d.ask("more")
        await d.answered(62)
        await d.sees("And so it went home.")


async def test_how_tokens_are_drawn_is_told_to_the_engine(open_app: Opener) -> None:
    async with open_app() as d:
        chosen = d.app.settings
        chosen.temperature, chosen.top_p, chosen.top_k, chosen.seed = 0.7, 0.9, 40, 5
        made = d.app.options
        assert (made.temperature, made.top_p, made.top_k, made.seed) == (0.7, 0.9, 40, 5)
