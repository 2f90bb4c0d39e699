"""What the user does with chats: edit, go on, copy, rename, export, delete; commands and help."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dfly_tui import clipboard
from dfly_tui.commands import COMMANDS, completions, slash
from dfly_tui.screens.chats import ChatsScreen
from dfly_tui.screens.help import HelpScreen
from dfly_tui.screens.replay import ReplayScreen
from dfly_tui.screens.tokens import TokensScreen
from dfly_tui.state.conversation import Turn
from dfly_tui.state.store import Store
from tests.app.app_driving import Opener


async def test_edit_puts_the_new_message_in_the_old_ones_place(open_app: Opener) -> None:
    async with open_app("echo") as d:
        await d.ask("first")
        await d.answered()
        await d.ask("secnod")
        await d.answered(4)
        await d.pilot.press("ctrl+t")
        assert d.app.chat_screen.composer.draft == "secnod"
        assert "Editing: Enter sends" in d.shown
        await d.ask("second")
        await d.pilot.pause()
        assert await d.answered(4) == d.app.talk.chat.turns[3].text
        said = [t.text for t in d.app.talk.chat.turns if t.who == "user"]
        assert said == ["first", "second"]
        assert "You said: second" in d.shown


async def test_escape_leaves_editing_with_nothing_changed(open_app: Opener) -> None:
    async with open_app() as d:
        await d.ask("first")
        await d.answered()
        await d.ask("second")
        await d.answered(4)
        await d.pilot.press("ctrl+t")
        assert d.app.chat_screen.composer.draft == "second"
        await d.pilot.press("ctrl+t")
        assert d.app.chat_screen.composer.draft == "first"
        await d.pilot.press("escape")
        assert d.app.chat_screen.composer.draft == ""
        assert len(d.app.talk.chat.turns) == 4


async def test_a_stopped_answer_goes_on(open_app: Opener, home: Path) -> None:
    async with open_app("long", rate=60) as d:
        await d.ask("go")
        await d.wait(lambda: len(d.app.talk.chat.turns[-1].text) > 20)
        await d.pilot.press("escape")
        before = await d.answered()
        await d.pilot.press("ctrl+l")
        await d.wait(lambda: d.app.talk.answering)
        await d.wait(lambda: len(d.app.talk.chat.turns[-1].text) > len(before))
        await d.pilot.press("escape")
        after = await d.answered()
        assert after.startswith(before)
        assert len(d.app.talk.chat.turns) == 2
    assert Store(home / "data" / "chats").load(1).turns[-1].text == after


async def test_an_answer_stopped_before_its_first_word_goes_on_with_its_own_question(
    open_app: Opener,
) -> None:
    async with open_app("told") as d:
        await d.ask("first")
        first = await d.answered()
        chat = d.app.talk.chat
        chat.turns += [Turn(3, "user", "second", "stop"), Turn(4, "assistant", "", "stopped")]
        await d.pilot.press("ctrl+l")
        await d.wait(lambda: bool(chat.turns[-1].text))
        told = await d.answered(4)
        assert json.loads(told) == [["user", "first"], ["assistant", first], ["user", "second"]]
        assert chat.turns[-1].note == ""


async def test_chats_are_listed_searched_opened_renamed_deleted_exported(
    open_app: Opener, home: Path
) -> None:
    async with open_app("echo") as d:
        for text in ("about foxes [/]", "about lanterns"):
            await d.ask(text)
            await d.answered()
            await d.pilot.press("ctrl+n")
        await d.pilot.press("ctrl+o")
        await d.pilot.pause()
        await d.sees("about foxes [/]")
        assert isinstance(d.app.screen, ChatsScreen)
        await d.pilot.press(*"foxes")
        await d.wait(lambda: "about lanterns" not in d.shown)
        await d.pilot.press("f2", *"!", "enter")
        await d.sees("about foxes [/]!")
        await d.pilot.press("f4", "enter")
        path = home / "data/exports/chat-1.md"
        await d.wait(path.exists)
        exported = path.read_text()
        assert exported.startswith("# about foxes [/]!\n\n## You\n\nabout foxes [/]")
        await d.pilot.press("enter")
        await d.pilot.pause()
        assert d.app.talk.chat.number == 1
        await d.pilot.press("ctrl+o", "f8", "y")
        await d.wait(lambda: Store(home / "data/chats").numbers() != [1, 2])
        await d.pilot.press("escape")


async def test_slash_words_run_and_unknown_ones_are_said(open_app: Opener) -> None:
    async with open_app() as d:
        await d.ask("/nonsense")
        assert "no command /nonsense" in d.app.chat_screen.notice.words
        assert d.app.chat_screen.composer.draft == "/nonsense"
        await d.ask("/edit")
        words = d.app.chat_screen.notice.words
        assert words == "/edit can't be done now. Nothing was said in this chat yet"
        d.app.chat_screen.composer.set_draft("/he")
        await d.pilot.pause()
        assert "/help" in d.shown
        await d.ask("/help")
        await d.wait(lambda: isinstance(d.app.screen, HelpScreen))
        await d.pilot.press("escape")
        await d.ask("/usr/bin is a folder")
        await d.answered()


async def test_tab_completes_a_slash_command_as_far_as_one_way_leads_on(open_app: Opener) -> None:
    async with open_app() as d:
        composer = d.app.chat_screen.composer
        for typed, whole, told in (
            ("/sy", "/system ", "/system [text]: What the model is told first"),
            ("/c", "/c", "/chats · /convert"),
            ("/co", "/co", "/convert"),
            ("/cop", "/copy", "/copy: There is no answer in this chat yet"),
            ("/S", "/s", "/system · /settings"),
            ("/x", "/x", "No command begins like this: /help lists them"),
        ):
            composer.set_draft(typed)
            await d.sees(told if whole == typed else typed)
            await d.pilot.press("tab")
            assert composer.draft == whole
            assert composer.has_focus
            await d.sees(told)
        # What is no command is no matter of Tab: it goes where it always goes.
        await d.ask("hello")
        await d.answered()
        composer.set_draft("/usr/bin")
        await d.pilot.press("tab")
        assert composer.draft == "/usr/bin"


async def test_words_behind_a_slash_command_are_taken_or_refused(open_app: Opener) -> None:
    async with open_app() as d:
        notice, composer = d.app.chat_screen.notice, d.app.chat_screen.composer
        await d.ask("/theme nope")
        assert "There is no theme nope. There are: ansi-dark," in notice.words
        await d.ask("/theme dfly-light")
        assert d.app.theme == "dfly-light"
        assert not notice.words
        await d.ask("/system be 'brief' [/]")
        assert d.app.talk.chat.system == "be 'brief' [/]"
        await d.ask("hello")
        await d.answered()
        await d.ask("/rename A title (1")
        assert d.app.talk.chat.title == "A title (1"
        takes_none = [command for command in COMMANDS if not command.takes]
        assert len(takes_none) == len(COMMANDS) - 4
        for command in takes_none:
            notice.clear()
            await d.ask(f"/{command.word} nope")
            assert notice.words, command.word
            assert composer.draft == f"/{command.word} nope"
        assert len(d.app.talk.chat.turns) == 2


def test_slash_reads_words_only() -> None:
    assert slash("/Help me") == ("help", "me")
    assert slash("/usr/bin") is None
    assert slash("/new\nline") is None
    assert slash("1/2") is None
    assert [c.word for c in completions("/re")] == ["rename"]
    assert len(completions("/")) == len(COMMANDS)


async def test_help_lists_every_key_and_command(open_app: Opener) -> None:
    async with open_app(size=(120, 90)) as d:
        await d.pilot.press("f1")
        await d.pilot.pause()
        shown = d.shown
        for command in COMMANDS:
            assert f"/{command.word}" in shown
        for words in ("Send", "New line", "Quit", "A/B: both decoders", "Step replay"):
            assert words in shown
        assert "Your earlier messages" in shown
        names = shown.partition("Names for")[2]
        for name in ("composer.send", "app.new_chat", "app.quit", "chat.stop"):
            assert name in names  # so that one can be bound anew


async def test_help_hangs_long_lines_under_themselves_beside_its_scrollbar(
    open_app: Opener,
) -> None:
    async with open_app(size=(80, 24)) as d:
        await d.pilot.press("f1")
        await d.sees("Stop; leave the edit")
        await d.pilot.pause()
        rows = d.shown.splitlines()
        at = next(i for i, row in enumerate(rows) if "Stop; leave the edit" in row)
        assert "loading" not in rows[at]
        assert rows[at + 1].index("loading") >= rows[at].index("Stop")


async def test_every_command_is_an_action_of_the_app(open_app: Opener) -> None:
    async with open_app() as d:
        for command in COMMANDS:
            assert hasattr(d.app, f"action_{command.action}"), command.word


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ('{"app.help": "f5"}', "Your keys: they leave no key for app.race"),
        ('{"nonsense": "f5"}', "Your keys: no key is named nonsense (F1 has the names)"),
        ('{"app.newchat": "f5,f6", "bench.start": "f2"}', "no key is named app.newchat (F1"),
        ('{"app.help": "f5", "app.race": "f1"}', ""),
        ('{"app.help": "f1,ctrl+j"}', ""),  # shift+enter still breaks the line
    ],
)
async def test_own_keys_that_do_nothing_or_take_another_are_told_at_the_start(
    open_app: Opener, home: Path, own: str, said: str
) -> None:
    (home / "data").mkdir()
    (home / "data/settings.json").write_text(f'{{"keys": {own}}}')
    async with open_app() as d:
        words = d.app.chat_screen.notice.words
        assert said in words if said else not words


async def test_keys_can_be_bound_anew(open_app: Opener, home: Path) -> None:
    (home / "data").mkdir()
    (home / "data/settings.json").write_text(
        '{"keys": {"composer.send": "ctrl+s", "composer.newline": "enter", "app.new_chat": "f12"}}'
    )
    async with open_app("echo") as d:
        await d.pilot.press("a", "enter", "b", "ctrl+s")
        await d.answered()
        assert d.app.talk.chat.turns[0].text == "a\nb"
        await d.pilot.press("f12")
        await d.pilot.pause()
        assert not d.app.talk.chat.turns


async def test_the_palette_offers_what_applies_now(open_app: Opener) -> None:
    async with open_app() as d:
        titles = {c.title for c in d.app.get_system_commands(d.app.screen)}
        assert "Chats" in titles
        assert not titles & {"Stop", "Copy answer", "A/B"}
        await d.ask("hello")
        await d.answered()
        titles = {c.title for c in d.app.get_system_commands(d.app.screen)}
        assert {"Copy answer", "A/B", "Step replay"} <= titles


async def test_replay_shows_where_draft_and_target_part(open_app: Opener) -> None:
    async with open_app() as d:
        await d.ask("hello")
        await d.answered()
        await d.pilot.press("f3")
        await d.wait(lambda: isinstance(d.app.screen, ReplayScreen))
        await d.pilot.press("home", "right")
        await d.pilot.pause()
        assert "they part" in d.shown
        assert "“␣fox”" in d.shown
        await d.pilot.press("escape", "f4")
        await d.wait(lambda: isinstance(d.app.screen, TokensScreen))
        assert "of the characters came from the drafter" in d.shown


async def test_fault_12_copied_is_said_only_when_true(
    open_app: Opener, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = home / "bin"
    tools.mkdir()
    taken = home / "taken"
    script = tools / "pbcopy"
    program = f"import sys; open({str(taken)!r}, 'w').write(sys.stdin.read())"
    script.write_text(f"#!{sys.executable}\n{program}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    for name in ("SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    async with open_app() as d:
        await d.ask("hello")
        await d.answered()
        await d.pilot.press("ctrl+b")
        await d.wait(lambda: "Copied the code block" in d.shown)
        assert taken.read_text() == "def light(lamp):\n    return lamp.on()"
        script.write_text("#!/bin/sh\nexit 1\n")
        await d.pilot.press("ctrl+g")
        await d.wait(lambda: "Sent the answer to the terminal" in d.shown)
        monkeypatch.setenv("SSH_CONNECTION", "1")
        assert clipboard.tool() is None


async def test_the_system_prompt_is_told_first_and_kept(open_app: Opener, home: Path) -> None:
    async with open_app() as d:
        await d.ask("/system")
        await d.pilot.press(*"brief", "ctrl+s")
        await d.pilot.pause()
        await d.ask("hello")
        await d.answered()
        first = d.app.talk.chat.messages()[0]
        assert (first.role, first.content) == ("system", "brief")
    assert Store(home / "data/chats").load(1).system == "brief"


async def test_fault_17_a_full_disk_is_said_and_the_chat_goes_on(
    open_app: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "create", full)
    async with open_app() as d:
        await d.ask("hello")
        assert "fox" in await d.answered()
        assert "No space left on device" in d.app.chat_screen.notice.words


@pytest.mark.parametrize("keys", [("f1",), ("f6",), ("f9", "enter"), ("f7",), ("ctrl+p",)])
async def test_fault_19_ctrl_q_leaves_from_every_screen(
    open_app: Opener, keys: tuple[str, ...]
) -> None:
    async with open_app() as d:
        await d.pilot.press(*keys, "ctrl+q")
        await d.wait(lambda: d.app.return_code == 0 and not d.app.is_running)
