"""What the user does with conversations, as actions of the app."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dfly_core.records.commands import GenerateOptions
from dfly_tui.clipboard import copy_with, tool
from dfly_tui.keys_in_turn import KeysInTurn
from dfly_tui.state.conversation import Conversation, as_markdown, code_blocks
from dfly_tui.state.export import export, free_name
from dfly_tui.state.store import TAKEN
from dfly_tui.talk import COPY, Talk
from dfly_tui.text import middle

if TYPE_CHECKING:
    from dfly_tui.app import Start
    from dfly_tui.desk import Desk
    from dfly_tui.state.settings import Settings


class ChatActions(KeysInTurn):
    """Mixed into the app, which has the parts named here."""

    desk: Desk
    talk: Talk
    settings: Settings
    start: Start

    @property
    def options(self) -> GenerateOptions:
        """How answers are to be made."""
        chosen, pair = self.settings, self.talk.panel.pair
        width = chosen.width
        if width is None and pair is not None and pair.embedded and pair.draft:
            # The embedded pair is there to show drafting, also where it does not pay.
            width = pair.block_size - 1
        return replace(chosen.options, width=width)

    def say_line(self, words: str, serious: bool = False) -> None:
        """A short-lived line in place of the one before; never parsed as markup."""
        self.clear_notifications()
        self.notify(words, severity="warning" if serious else "information", markup=False)

    def may(self, action: str) -> bool:
        """Whether a command can be done now; the app knows and says why not."""
        raise NotImplementedError

    def _free(self) -> bool:
        if self.desk.busy:
            self.say_line(self.desk.busy_words)
        return not self.desk.busy

    def action_new_chat(self) -> None:
        """Begin another conversation."""
        if self.may("new_chat"):
            self.talk.open(Conversation(system=self.settings.system))
            self.chat_screen.composer.focus()

    def stop(self) -> None:
        """Stop what runs; the app knows what."""
        raise NotImplementedError

    def action_stop(self) -> None:
        """Stop the answer, or the loading of a pair."""
        if self.may("stop"):
            self.stop()

    def action_edit_last(self) -> None:
        """Take a message back into the composer: the last one, pressed again the one before."""
        asked = [turn for turn in self.talk.chat.turns if turn.who == "user"]
        editing = self.chat_screen.editing
        before = [turn for turn in asked if editing is not None and turn.number < editing.number]
        question = before[-1] if before else asked[-1] if asked else None
        if self.may("edit_last") and question is not None:
            self.chat_screen.edit(question)

    def action_continue(self) -> None:
        """Go on with an answer that was stopped or was too long."""
        if self.may("continue"):
            self.talk.go_on(self.options)

    def action_chats(self) -> None:
        """List the conversations."""
        from dfly_tui.screens.chats import ChatsScreen

        if self._free():
            self.push_screen(ChatsScreen(), self._open_chosen)

    def _open_chosen(self, number: int | None) -> None:
        if number is not None:
            self.open_chat(number)
        self.chat_screen.composer.focus()

    def open_chat(self, number: int) -> None:
        """Open a conversation from disk."""
        try:
            if self.talk.resume(number):
                self.chat_screen.trouble(COPY)
        except OSError as error:
            self.chat_screen.trouble(f"Chat {number} cannot be opened: {error.strerror or error}")

    def action_rename(self, title: str = "") -> None:
        """Give the open chat a title, or ask for one."""
        from dfly_tui.screens.dialogs import AskLine

        def named(title: str | None) -> None:
            if title is not None:
                self.rename_chat(self.talk.chat.number, title)

        if title:
            named(title)
        else:
            self.push_screen(AskLine("Title", self.talk.chat.shown_title), named)

    def rename_chat(self, number: int, title: str) -> None:
        """Give a chat a title; an empty one goes back to its first words."""
        if self.talk.store.taken(number):
            self.say_line(f"Not renamed: {TAKEN}", serious=True)
            return
        chat = self.talk.chat if number == self.talk.chat.number else Conversation(number)
        chat.title = title.strip()
        record = {"did": "title", "title": chat.title}
        if number:
            self.talk.write(lambda: self.talk.store.add(chat, record))
        self.chat_screen.show_head()

    def action_export(self, name: str = "") -> None:
        """Write the open chat as Markdown into that file, or ask for one."""
        self._export(self.talk.chat, name)

    def export_chat(self, number: int) -> None:
        """Write a chat from the list as Markdown."""
        self._export(self.talk.store.load(number))

    def _export(self, chat: Conversation, name: str = "") -> None:
        from dfly_tui.screens.dialogs import AskLine

        own = self.start.data / "exports"
        default = free_name(own / f"chat-{chat.number}.md")

        def fault(name: str) -> str:
            return export(as_markdown(chat), name, own) if name else ""

        def told(name: str | None) -> None:
            if name:
                path, room = str(Path(name).expanduser()), self.size.width - 20
                self.say_line(f"Exported to {middle(path, max(room, 8))}")

        if not name:
            self.push_screen(AskLine("Export as Markdown to", str(default), fault=fault), told)
        elif why := fault(name):
            self.chat_screen.trouble(why)
        else:
            told(name)

    def action_delete(self) -> None:
        """Delete the open chat after a question."""
        from dfly_tui.screens.dialogs import Confirm

        def decided(yes: bool | None) -> None:
            if yes:
                self.delete_chat(self.talk.chat.number)

        title = self.talk.chat.shown_title
        self.push_screen(Confirm(f"Delete “{title}” for good?", "deletes"), decided)

    def delete_chat(self, number: int) -> None:
        """Delete a chat; if it is open, begin another."""
        try:
            self.talk.store.delete(number)
        except OSError as error:
            self.say_line(f"Not deleted: {error.strerror or error}", serious=True)
            return
        if number == self.talk.chat.number:
            self.talk.open(Conversation(system=self.settings.system))

    def action_system(self, text: str = "") -> None:
        """Change what the model is told before this conversation, or ask for it."""
        from dfly_tui.screens.dialogs import AskText

        def told(text: str | None) -> None:
            if text is not None:
                self.talk.set_system(text)
                self.say_line("System prompt set" if text.strip() else "No system prompt")

        if text:
            told(text)
        else:
            self.push_screen(AskText("System prompt of this chat", self.talk.chat.system), told)

    def action_copy_answer(self) -> None:
        """Copy the last answer as it was written."""
        answer = self.talk.chat.last("assistant")
        self._copy(answer.text if answer else "", "answer")

    def action_copy_code(self) -> None:
        """Copy the last code block of the last answer."""
        answer = self.talk.chat.last("assistant")
        blocks = code_blocks(answer.text) if answer else []
        self._copy(blocks[-1] if blocks else "", "code block")

    def _copy(self, text: str, what: str) -> None:
        if not text:
            self.say_line(f"There is no {what} to copy")
            return
        argv = tool()
        if argv is not None and copy_with(argv, text):
            self.say_line(f"Copied the {what}")
            return
        # Nobody answers OSC 52, so it is not claimed to have worked.
        self.copy_to_clipboard(text)
        self.say_line(f"Sent the {what} to the terminal, which copies it if it knows OSC 52")
