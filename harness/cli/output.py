"""Print for people and for programs: the only module of the command line that writes.

Names come from files that others wrote. Whatever could steer a terminal becomes � on its way out,
and colours are put on afterwards; in JSON it is escaped.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import click

from harness.store.json_text import json_text

UNKNOWN = "–"


@dataclass(frozen=True)
class Styled:
    """A line, or a cell of a table, that stands out."""

    text: str
    colour: str | None = None
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """Columns side by side, as wide as they need; nothing is cut off."""

    rows: Sequence[Sequence[str | Styled]]
    head: Sequence[str] = ()
    right: frozenset[int] = frozenset()
    """The columns that are aligned to the right: numbers."""
    widest: int | None = None
    """A longer cell only moves what follows it in its own line."""


Part = str | Styled | Table


def emit(value: object, words: Callable[[], Part | Iterable[Part]], *, as_json: bool) -> None:
    """Print a result: as JSON, or in words and tables, which are made only then."""
    if as_json:
        emit_json(value)
        return
    parts = words()
    for part in (parts,) if isinstance(parts, str | Styled | Table) else parts:
        say(part)


def emit_json(value: object) -> None:
    """Print a result as JSON."""
    click.echo(json_text(value, indent=1))


def say(part: Part = "", *, err: bool = False) -> None:
    """Print lines, or a table."""
    for line in _lines(part):
        click.echo(line, err=err)


def note(part: Part) -> None:
    """Print what goes on, or what a person should know beside the result: to standard error."""
    say(part, err=True)


def emit_data(data: str | bytes) -> None:
    """Print for a program, as it is; on a terminal nothing in a text steers that."""
    if isinstance(data, str) and sys.stdout.isatty():
        data = visible(data)
    sys.stdout.buffer.write(
        data.encode(errors="backslashreplace") if isinstance(data, str) else data
    )


def visible(text: str) -> str:
    """Replace what could steer a terminal; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


def width(text: str) -> int:
    """Count the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _visible(character: str) -> str:
    if character.isprintable() or character in "\n\t":
        return character
    return " " if character.isspace() else "�"


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _lines(part: Part) -> list[str]:
    if isinstance(part, Table):
        return _aligned(part)
    if isinstance(part, Styled):
        return [_styled(part, visible(part.text))]
    return [visible(part).removesuffix("\n")]


def _styled(cell: str | Styled, text: str) -> str:
    if isinstance(cell, str):
        return text
    return click.style(text, fg=cell.colour, bold=cell.bold or None)


def _aligned(table: Table) -> list[str]:
    rows = [table.head, *table.rows] if table.head else list(table.rows)
    texts = [[_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(*texts, strict=True)]
    if table.widest is not None:
        widths = [min(one, table.widest) for one in widths]
    lines = []
    for row, shown in zip(rows, texts, strict=True):
        cells = []
        for index, (cell, text) in enumerate(zip(row, shown, strict=True)):
            gap = " " * (widths[index] - width(text))
            styled = _styled(cell, text)
            cells.append(gap + styled if index in table.right else styled + gap)
        lines.append("  ".join(cells).rstrip())
    return lines


def _one_line(cell: str | Styled) -> str:
    text = cell if isinstance(cell, str) else cell.text
    return visible(text).replace("\n", " ").replace("\t", " ")
