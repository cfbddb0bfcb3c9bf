"""Write tables and places of figures for a paper: booktabs rules where loaded, plain elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

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
_FEWEST = 2
_MARGINS = (6.0, 3.0)
_PT_PER_MM = 72.27 / 25.4
_SLIM, _BROAD = frozenset(" iljtfr.,:;'|!()[]"), frozenset("mwMW×−≡≈≠%")
_LEFT = ("text", "name", "long", "path", "flag")
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


@dataclass(frozen=True)
class _Words:
    """A table as it is printed."""

    heads: tuple[str, ...]
    shape: str
    rows: tuple[tuple[str, ...], ...]


def of_table(table: Table) -> str:
    """Write a tabular that compiles with nothing but LaTeX itself."""
    return _tabular(table.title, _words(table), "")


def of_captioned(
    table: Table, caption: str, width_mm: float | None, *, is_chosen: bool = True
) -> str:
    """Write a float with its caption; the words as large as the width allows.

    Columns that nobody chose are left out from the last one on until the others fit.
    """
    words, size, margins, without = _with_intervals_beside(table, _words(table)), "", 6.0, ""
    if width_mm is not None:
        while (found := _fitting(words, width_mm)) is None:
            if is_chosen or len(words.heads) == _FEWEST:
                raise _too_wide(table, words, width_mm)
            without += f"% left out, as it is too wide: {escaped(words.heads[-1])}\n"
            words = _without_last(words)
        size, margins = found
    return (
        f"{without}\\begin{{table}}\n\\centering\n\\caption{{{escaped(caption)}}}\n"
        f"\\label{{tab:{table.name}}}\n{size}\\setlength{{\\tabcolsep}}{{{margins:g}pt}}%\n"
        f"{_tabular(table.title, words, '@{}')}\\end{{table}}\n"
    )


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
    )


def _tabular(title: str, words: _Words, edge: str) -> str:
    heads = " & ".join(map(escaped, words.heads))
    body = "\n".join(" & ".join(map(escaped, row)) + r" \\" for row in words.rows)
    return (
        f"% {escaped(title)}\n{_RULES}\\begin{{tabular}}{{{edge}{words.shape}{edge}}}\n\\toprule\n"
        f"{heads} \\\\\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
    )


def _without_last(words: _Words) -> _Words:
    rows = tuple(row[:-1] for row in words.rows)
    return _Words(heads=words.heads[:-1], shape=words.shape[:-1], rows=rows)


def _fitting(words: _Words, width_mm: float) -> tuple[str, float] | None:
    """Choose the largest size at which all columns fit."""
    for size, scale in _SIZES.items():
        for margins in _MARGINS:
            if _needed(words, scale, margins) <= width_mm:
                return size, margins
    return None


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
