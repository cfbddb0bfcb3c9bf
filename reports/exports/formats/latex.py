"""Write tables and places of figures for a paper: booktabs rules where loaded, plain elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from harness.analysis.numbers import UNKNOWN
from harness.analysis.tables import Table, filled, shown_row, without
from harness.errors import UsageError
from reports.figures.figures import PaperFigure

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "×": r"$\times$",
    "±": r"$\pm$",
    "µ": r"$\mu$",
    "−": "$-$",
    "–": "--",
    "≡": r"$\equiv$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "·": r"$\cdot$",
    "[": "{[}",  # after \\ a bracket would be an optional argument
    "]": "{]}",
}
_SIZES = {"": 1.0, "\\small\n": 0.93, "\\footnotesize\n": 0.86, "\\scriptsize\n": 0.8}
"""How wide letters are beside those of ten points: small ones are wider than their height says."""
_LINES_PT = {"": 12.0, "\\small\n": 11.0, "\\footnotesize\n": 9.5, "\\scriptsize\n": 8.0}
"""From one line to the next at each size."""
_FEWEST = 2
_MARGINS = (6.0, 3.0)
_PT_PER_MM = 72.27 / 25.4
_LEAST_NAME_MM = 24.0
"""No name is broken into lines shorter than this."""
_TOGETHER = 20
"""So many letters between two dots of a name stay on one line."""
_SLIM, _BROAD = frozenset(" iljtfr.,:;'|!()[]"), frozenset("mwMW×−≡≈≠%")
_LEFT = ("text", "name", "long", "path", "flag")
_NAMES = ("name", "long", "text")
_HANG_PT = 10.0
_HUNG = r"\raggedright\hangindent=1em "
"""How a broken name stands: no wider gaps, and its second line set in."""
_ROW_END_BESIDE_BROKEN = r" \tabularnewline"
"""What ends a row whose last cell is set ragged: there two backslashes only end a line."""
_RULES = "".join(
    f"\\providecommand{{\\{rule}}}{{\\hline}}\n" for rule in ("toprule", "midrule", "bottomrule")
)


def escaped(text: str) -> str:
    """Make any text safe in LaTeX; what it has no letter for becomes a question mark."""
    written = []
    for character in text:
        if character in _ESCAPES:
            written.append(_ESCAPES[character])
        elif character.isprintable() and ord(character) < 0x250:
            written.append(character)
        else:
            written.append(" " if character.isspace() else "?")
    return "".join(written)


_Broken = dict[int, int]
"""Which columns are broken into lines, and each into how many millimetres."""


@dataclass(frozen=True)
class _Words:
    """A table as it is printed."""

    heads: tuple[str, ...]
    shape: str
    rows: tuple[tuple[str, ...], ...]
    names: tuple[bool, ...]
    """Which columns hold words, which may be broken into lines."""


@dataclass(frozen=True)
class _LaidOut:
    """A table as it fits: its columns, the size of its letters, and what had no room."""

    words: _Words
    size: str
    margins: float
    broken: _Broken
    left_out: tuple[str, ...]


def of_table(table: Table) -> str:
    """Write a tabular that compiles with nothing but LaTeX itself."""
    return _tabular(table.title, _words(table), "", {})


def of_captioned(
    table: Table, caption: str, width_mm: float | None, *, is_chosen: bool = True
) -> str:
    """Write a float with its caption; the words as large as the width allows.

    Long names in the first column are broken into lines where the others leave them no room.
    Columns that nobody chose are left out from the last one on until the others fit.
    """
    laid = _laid_out(table, width_mm, is_chosen=is_chosen)
    without = "".join(f"% left out, as it is too wide: {escaped(head)}\n" for head in laid.left_out)
    return (
        f"{without}\\begin{{table}}\n\\centering\n\\caption{{{escaped(caption)}}}\n"
        f"\\label{{tab:{table.name}}}\n{laid.size}"
        f"\\setlength{{\\tabcolsep}}{{{laid.margins:g}pt}}%\n"
        f"{_tabular(table.title, laid.words, '@{}', laid.broken)}\\end{{table}}\n"
    )


def height_mm(table: Table, width_mm: float | None, *, is_chosen: bool) -> float:
    """Estimate how tall the rows of such a float are."""
    laid = _laid_out(table, width_mm, is_chosen=is_chosen)
    room = {at: mm * _PT_PER_MM / _SIZES[laid.size] for at, mm in laid.broken.items()}
    lines = sum(
        max((ceil(_width(row[at]) / wide) for at, wide in room.items()), default=1)
        for row in laid.words.rows
    )
    return lines * _LINES_PT[laid.size] / _PT_PER_MM


def of_figure(figure: PaperFigure, caption: str) -> str:
    """Write the float of a figure that lies beside the paper as PDF."""
    drawing = f"{figure.name}.pdf"
    made = f"bakeoff export RUN --to pdf --figure {figure.name} --output {drawing}"
    return (
        f"% The drawing, in the same --width: {made}\n"
        f"\\begin{{figure}}\n\\centering\n\\includegraphics{{{drawing}}}\n"
        f"\\caption{{{escaped(caption)}}}\n\\label{{fig:{figure.name}}}\n\\end{{figure}}\n"
    )


def _of_paper(table: Table) -> Table:
    return without(filled(table), [c.key for c in table.columns if c.kind == "path"])


def _words(table: Table) -> _Words:
    table = _of_paper(table)
    return _Words(
        heads=tuple(column.title for column in table.columns),
        shape="".join("l" if column.kind in _LEFT else "r" for column in table.columns),
        rows=tuple(tuple(shown_row(table, row)) for row in table.rows),
        names=tuple(column.kind in _NAMES for column in table.columns),
    )


def _with_intervals_beside(table: Table, words: _Words) -> _Words:
    """Put each interval into the column of its value, whose heading then stands for both."""
    intervals = [
        at for at, column in enumerate(_of_paper(table).columns) if column.kind == "interval" and at
    ]
    kept = [at for at in range(len(words.heads)) if at not in intervals]

    def joined(row: Sequence[str], at: int) -> str:
        known = at + 1 in intervals and row[at + 1] != UNKNOWN
        return f"{row[at]} {row[at + 1]}" if known else row[at]

    return _Words(
        heads=tuple(words.heads[at] for at in kept),
        shape="".join("l" if at + 1 in intervals else words.shape[at] for at in kept),
        rows=tuple(tuple(joined(row, at) for at in kept) for row in words.rows),
        names=tuple(words.names[at] for at in kept),
    )


def _tabular(title: str, words: _Words, edge: str, broken: _Broken) -> str:
    heads = " & ".join(map(escaped, words.heads))
    texts = [list(map(escaped, row)) for row in words.rows]
    shapes = list(words.shape)
    for at, wide_mm in broken.items():
        shapes[at] = f"p{{{wide_mm}mm}}"
        for row, text in zip(texts, words.rows, strict=True):
            pieces = (escaped(one).replace(" ", "~") for one in _pieces(text[at]))
            row[at] = _HUNG + " ".join(pieces)
    end = _ROW_END_BESIDE_BROKEN if broken else r" \\"
    body = "\n".join(" & ".join(row) + end for row in texts)
    shape = "".join(shapes)
    return (
        f"% {escaped(title)}\n{_RULES}\\begin{{tabular}}{{{edge}{shape}{edge}}}\n\\toprule\n"
        f"{heads} \\\\\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
    )


def _pieces(name: str) -> list[str]:
    """Part a name where it may break: after its dots, and inside what is long between them."""
    *others, last = name.split(" · ")
    parts = [*(f"{one} ·" for one in others), last]
    return [
        piece
        for part in parts
        for piece in ([part] if others and len(part) <= _TOGETHER else part.split())
    ]


def _without_last(words: _Words) -> _Words:
    return _Words(
        heads=words.heads[:-1],
        shape=words.shape[:-1],
        rows=tuple(row[:-1] for row in words.rows),
        names=words.names[:-1],
    )


def _laid_out(table: Table, width_mm: float | None, *, is_chosen: bool) -> _LaidOut:
    words, left_out = _with_intervals_beside(table, _words(table)), []
    if width_mm is None:
        return _LaidOut(words, "", _MARGINS[0], {}, ())
    while (found := _fitting(words, width_mm)) is None:
        if is_chosen or len(words.heads) == _FEWEST:
            raise _too_wide(table, words, width_mm)
        left_out.append(words.heads[-1])
        words = _without_last(words)
    return _LaidOut(words, *found, tuple(left_out))


def _fitting(words: _Words, width_mm: float) -> tuple[str, float, _Broken] | None:
    """Choose the largest size at which all columns fit, with as few broken ones as can be."""
    sizes = [(size, scale, margins) for size, scale in _SIZES.items() for margins in _MARGINS]
    named = [at for at, is_name in enumerate(words.names) if is_name]
    named.sort(key=lambda at: -max(_width(row[at]) for row in words.rows))
    for count in range(len(named) + 1):
        for size, scale, margins in sizes:
            room_mm = width_mm - _needed(words, scale, margins)
            broken = _broken(words, named[:count], scale / _PT_PER_MM, room_mm)
            if broken is not None:
                return size, margins, broken
    return None


def _broken(
    words: _Words, columns: Sequence[int], mm_per_pt: float, room_mm: float
) -> _Broken | None:
    """Give each column to break its width, if they fit: what it needs, and its part of the rest."""
    wide, least = {}, {}
    for at in columns:
        texts = [words.heads[at], *(row[at] for row in words.rows)]
        pieces = [piece for text in texts for piece in _pieces(text)]
        wide[at] = max(map(_width, texts)) * mm_per_pt
        longest = (max(map(_width, pieces)) + _HANG_PT) * mm_per_pt
        least[at] = min(wide[at], max(_LEAST_NAME_MM, longest))
    room = room_mm + sum(wide.values()) - sum(least.values())
    if room < 0:
        return None
    saved = sum(wide.values()) - sum(least.values())
    shares = {at: (wide[at] - least[at]) / saved if saved else 0.0 for at in columns}
    return {at: floor(least[at] + room * shares[at]) for at in columns}


def _needed(words: _Words, scale: float, margins: float) -> float:
    columns = zip(words.heads, *words.rows, strict=True)
    wide = sum(max(map(_width, column)) for column in columns) * scale
    return (wide + 2 * margins * (len(words.heads) - 1)) / _PT_PER_MM


def _too_wide(table: Table, words: _Words, width_mm: float) -> UsageError:
    least = _needed(words, min(_SIZES.values()), _MARGINS[-1])
    return UsageError(
        f"the table needs {ceil(least)} mm at the smallest size, and {width_mm:g} mm are given. "
        f"Leave columns out: --columns {','.join(column.key for column in table.columns)}"
    )


def _width(text: str) -> float:
    """Estimate the width of words in Computer Modern at ten points, rather too wide."""
    return sum(
        3.3 if one in _SLIM else 8.4 if one in _BROAD else 7.3 if one.isupper() else 5.1
        for one in text
    )
