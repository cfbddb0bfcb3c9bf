"""Values as a TOML file has them, and how messages write them."""

from __future__ import annotations

from typing import Any

Value = str | int | float | bool | None


def shown(value: Any) -> str:
    """Write a value as it stands in TOML, with texts in single quotes as in all messages."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a table"
    return f"'{value}'"
