"""Make the page: one HTML file that opens from disk, prints, and ask no network."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis import differences, numbers
from harness.analysis.evidence import Evidence
from harness.sections import all_tables, cells, hardware_use
from harness.sections.files.checkpoints import checkpoint_table
from harness.sections.files.input import input_table
from harness.sections.scaling.expected import expected
from harness.sections.scaling.gradient_exchange import communication
from harness.sections.scaling.messages import collectives
from harness.sections.scaling.start_up import starting
from harness.sections.what_ran import what_ran
from harness.verdicts.results import Results
from reports.page import figures
from reports.page.energy import energy_drawings
from reports.page.grid import Grid, gate_grid, grid, trial_grid
from reports.page.ladders import ladder_drawings
from reports.page.links import Links
from reports.page.rankings import chart, colours_of, strips
from reports.page.step_time import step_time
from reports.text import method
from reports.text.answer import WARNINGS_SHOWN, Answer, answer
from reports.text.cards import trial_list

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment

    from harness.analysis.run_comparison import Versus
    from reports.page.changes import Changes

_HERE = Path(__file__).parents[1]


def _asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Name a text as a content security policy does."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _facts(results: Results) -> list[tuple[str, list[tuple[str, list[tuple[str, str]]]]]]:
    """List per run what is known about machine, software and protocol."""
    return [
        (
            run.name,
            [
                (title, list(differences.flatten(facts).items()))
                for title, facts in (
                    ("Machine", run.platform),
                    ("Host", differences.host_facts(run.provenance)),
                    ("Protocol", run.measure),
                    ("Environments", run.environments),
                )
                if facts
            ],
        )
        for run in results.runs
    ]


def _compiled() -> BytecodeCache | None:
    """Keep compiled templates where caches live; compiling costs as much as a page of 50 cells."""
    from jinja2 import FileSystemBytecodeCache

    cache_home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(cache_home) / "bakeoff" / "templates"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to
        return None
    return FileSystemBytecodeCache(str(folder)) if os.access(folder, os.W_OK) else None


@cache
def _templates() -> Environment:
    """Make the one template environment: everything escaped, nothing undefined."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        bytecode_cache=_compiled(),
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@dataclass(frozen=True)
class Figure:
    """A drawing on the page, with its table."""

    title: str
    note: str
    svg: str
    name: str
    grid: Grid | None
    packed: str
    raw: str
    narrow: str


def _figures(drawings: Sequence[figures.Drawing]) -> list[Figure]:
    return [
        Figure(d.title, d.note, d.svg, d.name, grid(d.table), d.packed, d.raw, d.narrow)
        for d in drawings
    ]


def _recordings(figures: Sequence[Figure]) -> list[tuple[str, list[Figure]]]:
    """Put the timelines of one recording together, under the name that their titles begin with."""
    found: dict[str, list[Figure]] = {}
    for figure in figures:
        recording, _, title = figure.title.rpartition(": ")
        found.setdefault(recording, []).append(replace(figure, title=title))
    return list(found.items())


@dataclass(frozen=True)
class _Inline:
    """The styles and scripts of a page; only what it needs."""

    styles: tuple[tuple[str, str], ...]
    """Each with its id."""
    scripts: tuple[str, ...]

    @property
    def policy(self) -> str:
        """Allow exactly these, by their digests, and nothing from anywhere else."""
        styles = " ".join(f"'{_digest(text)}'" for _, text in self.styles)
        scripts = " ".join(f"'{_digest(text)}'" for text in self.scripts)
        return (
            f"default-src 'none'; style-src {styles}; script-src {scripts}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        )


def _inline(*, zoom: bool) -> _Inline:
    styles = [("page-style", _asset("page.css")), ("chart-style", _asset("chart.css"))]
    scripts = [_asset("page.js")]
    if zoom:
        styles.append(("zoom-style", _asset("uplot/uPlot.min.css")))
        scripts += [_asset("uplot/uPlot.iife.min.js"), _asset("timelines.js")]
    return _Inline(tuple(styles), tuple(scripts))


def _changed(against: Versus) -> Changes:
    from reports.page.changes import changes  # brings numpy, which a page of one run does without

    return changes(against)


def render(
    results: Results,
    evidence: Evidence | None = None,
    *,
    against: Versus | None = None,
    place: Path | None = None,
    readings: Sequence[str] = (),
) -> str:
    """Make the page.

    ``against`` is the comparison of exactly two runs. ``place`` is where the page will lie: what
    lies in the same folder or below it is linked. ``readings`` are the raw files of timelines.
    """
    shown = evidence or Evidence()
    told: Answer = answer(results)
    changed = _changed(against) if against else None
    links = Links.of(results, place)
    colours = colours_of(results)
    trial_total = len(trial_list(results))
    listed = trial_grid(results, links)
    timelines = _figures(figures.timeline_drawings(shown, readings))
    return (
        _templates()
        .get_template("page.html")
        .render(
            results=results,
            answer=told,
            changed=changed,
            warnings_shown=WARNINGS_SHOWN,
            change_figures=_figures([changed.drawing] if changed else []),
            changed_besides=grid(changed.differences) if changed else None,
            not_compared=grid(changed.not_compared) if changed else None,
            charts=[chart(r, colours, links) for r in told.rankings if r.cells or r.set_aside],
            cells=grid(
                cells.cells(results),
                filters=("workload", "framework", "machine"),
                links=links,
            ),
            differences=grid(differences.between_cells(results)),
            machines=grid(differences.between_runs(results))
            if len(results.runs) > 1 and not changed
            else None,
            splits=_figures(step_time(results, shown)),
            is_split=bool(shown.splits),
            scaling=_figures(figures.scaling_drawings(results)),
            expected=grid(expected(results)),
            starting=grid(starting(results)),
            collectives=grid(collectives(results)),
            communication=grid(communication(results)),
            roofline=_figures(figures.roof_drawings(shown)),
            ladders=_figures(ladder_drawings(shown)),
            read=grid(input_table(results)),
            saved=grid(checkpoint_table(results)),
            recordings=_recordings(timelines),
            usage=grid(
                hardware_use.usage(results), filters=("workload", "cell", "node", "what", "name")
            ),
            phases=grid(hardware_use.phases(shown)),
            unread=grid(hardware_use.unread(shown)),
            observer=hardware_use.observer(results),
            energy=_figures(energy_drawings(shown)),
            strips=[(r, *strips(r, colours)) for r in told.rankings],
            trials=listed,
            trial_total=trial_total,
            trials_listed=len(listed.rows) if listed else 0,
            gate=gate_grid(results),
            ran=grid(what_ran(results)),
            holes=grid(all_tables.holes(results)),
            runs=grid(all_tables.runs(results)),
            facts=_facts(results),
            method=method.METHOD,
            glossary=method.GLOSSARY,
            findings=grid(figures.findings(shown)),
            inline=_inline(zoom=bool(timelines)),
            several_runs=len(results.runs) > 1,
            simulated=method.SIMULATED if results.is_simulated else "",
            moment=numbers.moment(min((r.started_wall_ns for r in results.runs), default=None)),
        )
    )
