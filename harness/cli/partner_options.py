"""Refuse an option that means nothing without another one."""

from __future__ import annotations

from harness.errors import UsageError


def refuse_without(partner: str, is_given: bool, **options: object) -> None:
    """Refuse those of the options that were given, where their partner was not."""
    stray = next((name for name, value in options.items() if value), None)
    if stray is not None and not is_given:
        raise UsageError(f"--{stray.replace('_', '-')} is for --{partner}.")
