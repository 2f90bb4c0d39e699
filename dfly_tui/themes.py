"""Our two themes: calm, one accent colour; the rest are Textual's own."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="dfly-dark",
    primary="#7AB8D9",
    secondary="#9AA7B0",
    accent="#7AB8D9",
    foreground="#D5DADF",
    background="#15191D",
    surface="#1B2025",
    panel="#21272D",
    success="#86C28B",
    warning="#D9B36C",
    error="#D97C7C",
    variables={
        "footer-key-foreground": "#7AB8D9",
        "scrollbar": "#2C343B",
        "scrollbar-hover": "#3A444C",
        "scrollbar-active": "#7AB8D9",
        "scrollbar-background": "#15191D",
        "scrollbar-background-hover": "#15191D",
        "scrollbar-background-active": "#15191D",
        "scrollbar-corner-color": "#15191D",
        "footer-description-foreground": "#8E989F",
        "text-disabled": "#8E989F",  # also of what a field takes when nothing is typed
        "block-cursor-text-style": "none",
    },
)

LIGHT = Theme(
    name="dfly-light",
    primary="#1F6F99",
    secondary="#5A6871",
    accent="#1F6F99",
    foreground="#22292E",
    background="#FAFAF8",
    surface="#F1F1EE",
    panel="#E9E9E5",
    success="#2F7D3A",
    warning="#8F6410",
    error="#A83A3A",
    dark=False,
    variables={
        "footer-key-foreground": "#1F6F99",
        "scrollbar": "#D5D5CF",
        "scrollbar-hover": "#BFBFB8",
        "scrollbar-active": "#1F6F99",
        "scrollbar-background": "#FAFAF8",
        "scrollbar-background-hover": "#FAFAF8",
        "scrollbar-background-active": "#FAFAF8",
        "scrollbar-corner-color": "#FAFAF8",
        "footer-description-foreground": "#5A6871",
        "text-disabled": "#5A6871",
        "block-cursor-text-style": "none",
    },
)
