"""Write a table for a paper: booktabs rules where loaded, plain ones elsewhere."""

from __future__ import annotations

from harness.analysis.tables import Table, filled, shown_row

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


def of_table(table: Table) -> str:
    """Write a tabular that compiles with nothing but LaTeX itself."""
    table = filled(table)
    kept = [i for i, column in enumerate(table.columns) if column.kind != "path"]
    shape = "".join("l" if table.columns[i].kind in _LEFT else "r" for i in kept)
    heads = " & ".join(escaped(table.columns[i].title) for i in kept)
    lines = []
    for row in table.rows:
        texts = shown_row(table, row)
        lines.append(" & ".join(escaped(texts[i]) for i in kept) + r" \\")
    body = "\n".join(lines)
    return (
        f"% {escaped(table.title)}\n{_RULES}\\begin{{tabular}}{{{shape}}}\n\\toprule\n"
        f"{heads} \\\\\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
    )
