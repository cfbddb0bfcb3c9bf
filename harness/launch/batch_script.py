"""Write batch scripts: a queue's directives, then the one command that they are for."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import UsageError


@dataclass(frozen=True)
class Batch:
    """What a queue is asked to run, and for how long."""

    argv: Sequence[str]
    name: str
    nodes: int
    minutes: int
    log: str
    parts: int = 1
    """How often it is run, one after another, each time on nodes of its own."""


def text(
    prefix: str,
    directives: Mapping[str, Any],
    argv: Sequence[str],
    *,
    options: str | None = None,
    before: Sequence[str] = (),
) -> str:
    """Write a script; a directive is an option and its value, True where it takes none.

    One whose value is None is left out; ``options`` are words that the engine itself splits.
    """
    words = [
        option if value is True else f"{option}{shlex.quote(_line(option, value))}"
        for option, value in directives.items()
        if value is not None
    ]
    words += [_line("options", options)] if options else []
    command = shlex.join(argv)
    if f"\n{prefix}" in command:  # LSF reads directives wherever they stand
        raise UsageError(f"batch script: a word of the command holds a line of {prefix}.")
    lines = ["#!/bin/sh", *(f"{prefix} {word}" for word in words), *before, f"exec {command}"]
    return "\n".join(lines) + "\n"


def _line(what: str, value: object) -> str:
    """Refuse what would end its line: the shell would run the rest of it."""
    found = str(value)
    if not found.isprintable():
        raise UsageError(
            f"batch script: {what.strip(' =')}: {found!r} holds a line break or another control "
            "character. Write it on one line."
        )
    return found
