"""Hold `docs/commands.md` to the command line: every option of every verb, and no other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from harness.cli.main import bakeoff

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"


def commands(command: click.Command, *names: str) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(names), command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from commands(inner, *names, name)


@cache
def offered() -> dict[str, set[str]]:
    """Give each command's options by their long names; hidden ones are for Bakeoff itself."""
    return {
        name: {
            next(one for one in option.opts if one.startswith("--"))
            for option in command.params
            if isinstance(option, click.Option) and not option.hidden
        }
        for name, command in commands(bakeoff, "bakeoff")
    }


@cache
def described() -> dict[str, set[str]]:
    """Give the options that the page lists under the headings that name a command."""
    found: dict[str, set[str]] = defaultdict(set)
    for section in PAGE.read_text(encoding="utf-8").split("\n### ")[1:]:
        heading, _, body = section.partition("\n")
        for command in re.findall(r"`(bakeoff [a-z -]+)`", heading):
            found[command] |= set(re.findall(r"^\| `(--[a-z-]+)", body, re.MULTILINE))
    found["bakeoff"] = set(re.findall(r"`bakeoff (--[a-z-]+)`", PAGE.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize("command", sorted(offered()))
def test_every_option_is_described_under_its_command(command: str) -> None:
    missing = offered()[command] - described()[command]
    assert not missing, f"docs/commands.md: `{command}` has no row for {sorted(missing)}"


@pytest.mark.parametrize("command", sorted(described()))
def test_no_option_is_described_that_does_not_exist(command: str) -> None:
    assert command in offered(), f"docs/commands.md: there is no command `{command}`"
    gone = described()[command] - offered()[command]
    assert not gone, f"docs/commands.md: `{command}` has no option {sorted(gone)}"


def test_an_option_has_words_to_itself() -> None:
    rows = re.findall(r"^\| `--[^`]+` \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows
    assert all(row.strip() for row in rows)
