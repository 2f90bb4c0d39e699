"""What is wrong with the user's own keys. Textual tells of no key with a name that it displaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from textual.binding import BindingsMap

# Of pages that are imported when first asked for: only the front of their names is known.
_LATER = ("bench", "chats", "convert", "dialog", "help", "race", "replay", "strip")


def faults(own: Mapping[str, str], bindings: Iterable[BindingsMap]) -> str:
    """One line on names that no key has, and on keys that are taken from others; or empty.

    `own` is keys by name; `bindings` are those of the chat and the app as they come.
    """
    usual: dict[str, set[str]] = {}
    for key, binding in (pair for found in bindings for pair in found):
        if binding.id:
            usual.setdefault(binding.id, set()).add(key)
    unknown = [name for name in own if name not in usual and name.partition(".")[0] not in _LATER]
    taken = {key.strip() for name, keys in own.items() if name in usual for key in keys.split(",")}
    displaced = [name for name, keys in usual.items() if name not in own and keys <= taken]
    parts = [f"no key is named {', '.join(unknown)} (F1 has the names)"] if unknown else []
    parts += [f"they leave no key for {', '.join(displaced)}"] if displaced else []
    return f"Your keys: {'; '.join(parts)}" if parts else ""
