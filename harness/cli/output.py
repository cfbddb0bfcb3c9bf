"""Print for people and for programs: the only module of the command line that writes.

Names come from files that others wrote. Whatever could steer a terminal becomes � on its way out,
and colours are put on afterwards; in JSON it is escaped.
"""

from __future__ import annotations

import io
import os
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from harness.store.json_text import json_text
from harness.worker.redaction.writings import without_colours


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
    _put(json_text(value, indent=1))


def say(part: Part = "", *, err: bool = False) -> None:
    """Print lines, or a table."""
    for line in _lines(part):
        _put(line, err=err)


def note(part: Part) -> None:
    """Print what goes on, or what a person should know beside the result: to standard error."""
    say(part, err=True)


def near(path: Path) -> Path:
    """Give a path relative to the current directory, if it lies below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def emit_data(data: str | bytes) -> None:
    """Print for a program, as it is; on a terminal nothing in a text steers that."""
    if isinstance(data, str) and sys.stdout.isatty():
        data = visible(data)
    if isinstance(data, str):
        data = data.encode(errors="backslashreplace")
    with _unless_lost(sys.stdout):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def lost_output() -> OSError | None:
    """Give why a result could not be printed; None where all were."""
    return _lost[0] if _lost else None


def discard(stream: TextIO) -> None:
    """Drop what a stream still holds and gets: Python would fail on it again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def open_closed_streams() -> None:
    """Open the standard streams that were closed: the next file opened would take their place.

    Reading from them finds the end, writing results fails, and what is said to a person is dropped.
    """
    flags = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, flags[number])
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def write_what_can_be_written() -> None:
    """Let both streams write letters that their encoding lacks by their numbers."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show_warnings() -> None:
    """Print Python's warnings as notes of one line: libraries give them, of what others wrote."""
    warnings.showwarning = _show_warning


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    text = " ".join(str(message).split())
    note(f"Warning: {text} ({category.__name__} at {Path(filename).name}:{lineno})")


_lost: list[OSError] = []


def _put(line: str, *, err: bool = False) -> None:
    """Print a line; work goes on where nobody can read it, and a lost result is remembered."""
    stream = sys.stderr if err else sys.stdout
    with _unless_lost(stream):
        click.echo(line, file=stream)  # named: where it chooses, ascii is written as UTF-8


@contextmanager
def _unless_lost(stream: TextIO) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        if stream is sys.stdout:
            _lost.append(fault)
        discard(stream)


def visible(text: str) -> str:
    """Replace what could steer a terminal; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(map(_visible, without_colours(text)))


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
