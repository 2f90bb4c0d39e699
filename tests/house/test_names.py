"""Our widgets and screens keep out of Textual's private names: a clash is silent and breaks it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from textual.app import App
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.scroll_view import ScrollView
from textual.widget import Widget
from textual.widgets import Static, TextArea

TUI = Path(__file__).parents[2] / "dfly_tui"
BASES = {
    "App": App,
    "ModalScreen": ModalScreen,
    "Screen": Screen,
    "ScrollView": ScrollView,
    "Static": Static,
    "TextArea": TextArea,
    "Vertical": VerticalScroll,
    "VerticalScroll": VerticalScroll,
    "Widget": Widget,
    "Dialog": ModalScreen,
    "ScreenActions": App,
    "ChatActions": App,
}


def own_names(node: ast.ClassDef) -> set[str]:
    """Private methods, and private attributes set in `__init__`."""
    names = {f.name for f in node.body if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))}
    for item in ast.walk(node):
        targets = item.targets if isinstance(item, ast.Assign) else []
        targets += [item.target] if isinstance(item, ast.AnnAssign) else []
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            names |= {p.attr for p in parts if isinstance(p, ast.Attribute)}
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def classes() -> list[tuple[str, ast.ClassDef, type]]:
    found: list[tuple[str, ast.ClassDef, type]] = []
    for path in sorted(TUI.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    name = base.value if isinstance(base, ast.Subscript) else base
                    if isinstance(name, ast.Name) and name.id in BASES:
                        found.append((f"{path.stem}.{node.name}", node, BASES[name.id]))
    return found


@pytest.mark.parametrize(
    ("name", "node", "base"), classes(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_no_private_name_of_ours_is_one_of_textuals(
    name: str, node: ast.ClassDef, base: type
) -> None:
    taken = {n for cls in base.__mro__ for n in vars(cls)}
    instance = vars(base()) if base not in (App, Screen, ModalScreen) else vars(Widget())
    taken |= set(instance)
    # Overriding is meant where Textual says so.
    meant = {"_on_key", "_on_paste", "_display"}
    assert not (own_names(node) & taken) - meant, name
