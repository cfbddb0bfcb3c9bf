"""Texts that others wrote, as characters that steer no terminal and that XML 1.0 allows."""

from __future__ import annotations


def plain(text: str) -> str:
    """Replace what is no character to see; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c in "\t\n" or c.isprintable() else "\ufffd" for c in text)
