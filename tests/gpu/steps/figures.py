"""What the studies' pages say of utilisation and energy, and their figures for a paper."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.gpu.answer import Answer, Broken, NotPossible
from tests.gpu.day import Day
from tests.gpu.steps.study import STUDIES

LIMIT_S = 120.0
_FIGURES = (("ranking", "pdf"), ("ranking", "svg"), ("energy", "svg"))
_CONVENTIONS = ("full", "causal", "hardware")


def draw(day: Day) -> Answer:
    """Export figures and tables of every study that ran, and say what they hold."""
    studies = [name for name in STUDIES if (day.work / "runs" / name / "report.html").is_file()]
    if not studies:
        raise NotPossible("no study has a page yet")
    folder = day.work / "figures"
    folder.mkdir(exist_ok=True)
    lines: list[str] = []
    measured: dict[str, Any] = {}
    for study in studies:
        drawn = [_export(day, study, figure, form, folder) for figure, form in _FIGURES]
        lines += [f"{study}: {name}" for name in drawn if name]
        if not any(drawn):
            if not day.is_dry:
                raise Broken(f"{study}: no figure could be drawn")
            lines.append(f"{study}: no figure, as stand-ins measure nothing")
        told = {name: _table(day, study, name) for name in ("tokens", "energy")}
        measured[study] = told
        lines += [f"{study}: {words}" for words in of_tokens(told["tokens"])]
        lines += [f"{study}: {words}" for words in of_energy(told["energy"])]
    with tarfile.open(day.out / "figures.tar.gz", "w:gz") as packed:
        packed.add(folder, "figures")
    return Answer(tuple(lines), measured)


def _export(day: Day, study: str, figure: str, form: str, folder: Path) -> str:
    """Write one figure; "" where the page has none of that name."""
    file = folder / f"{study}-{figure}.{form}"
    words = ("--to", form, "--figure", figure, "--output", str(file))
    done = day.bakeoff("export", study, *words, limit_s=LIMIT_S)
    return file.name if done.code == 0 else ""


def _table(day: Day, study: str, name: str) -> list[dict[str, Any]]:
    """Give a table's rows; none where the page has no such table."""
    done = day.bakeoff("export", study, "--to", "json", "--table", name, limit_s=LIMIT_S)
    rows: list[dict[str, Any]] = json.loads(done.out) if done.code == 0 else []
    return rows


def of_tokens(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Say each cell's operations a second by each convention, as shares of the ceiling."""
    for row in rows:
        shares = [
            f"{name} {row[f'{name}_gflops']:,.0f} GFLOP/s"
            + (f" ({row[f'{name}_share']:.1%})" if row[f"{name}_share"] is not None else "")
            for name in _CONVENTIONS
            if row[f"{name}_gflops"] is not None
        ]
        yield f"{row['cell']}: {row['tokens']:,.0f} tokens/s; {', '.join(shares)}"


def of_energy(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Say what a sample took in each cell."""
    if not rows:
        yield "no energy was measured"
    for row in rows:
        if row["work_per_joule"] is not None:
            unit = row["unit"].partition(" per joule")[0].removesuffix("s")
            yield f"{row['cell']}: {1 / row['work_per_joule']:.3g} J per {unit}"
