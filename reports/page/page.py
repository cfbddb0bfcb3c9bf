"""Make the page: one HTML file that opens from disk, prints, and asks no network."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.context.machine_words import header
from harness.analysis.effects.effects import FEWEST_CELLS
from harness.analysis.evidence import Evidence
from harness.analysis.limits.holding_back import limits
from harness.analysis.ranking import side_word
from harness.analysis.results import Results
from harness.sections.contract.section import RANKINGS, sections
from reports.charts.colours import colours_of
from reports.page.blocks import Canvas, packings, part
from reports.page.cell_places import CellPlaces
from reports.page.code_words import coded
from reports.page.folding import FIRST
from reports.page.grid import LONG
from reports.page.links import Links
from reports.page.rankings import chart, folded
from reports.page.sideways import sideways
from reports.text.answer import SIMULATED, WARNINGS_SHOWN, Answer, answer
from reports.text.cards import trust

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment

    from harness.analysis.between_runs.run_comparison import Versus

_HERE = Path(__file__).parents[1]
_LARGE = 600
"""A browser lays out the sections of a page of more trials only where they are looked at."""
_ANSWERS_SHOWN = 3
"""Of workloads each of whose factors have sentences; those of others unfold."""


def _asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def _script(name: str) -> str:
    """Give a script of ours without what is for those who read it; no text of it spans lines."""
    lines = (line.strip() for line in _asset(name).splitlines())
    return "\n".join(line for line in lines if not line.startswith("//"))


def _digest(text: str) -> str:
    """Name a text as a content security policy does."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


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

    made = Environment(
        bytecode_cache=_compiled(),
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["coded"] = coded
    return made


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


def _inline(*, zoom: bool, printed: str) -> _Inline:
    styles = [("page-style", _asset("page.css")), ("chart-style", _asset("chart.css"))]
    styles.append(("print-style", printed))
    scripts = [_script("page.js"), _script("bars.js"), _script("cells.js"), _script("columns.js")]
    if zoom:
        styles.append(("zoom-style", _asset("uplot/uPlot.min.css")))
        scripts += [_asset("uplot/uPlot.iife.min.js"), _script("timelines.js")]
    return _Inline(tuple(styles), tuple(scripts))


def _answer(told: Answer, results: Results, comparison: Versus | None) -> Answer:
    """Say what the page leads with: of two compared runs, what changed."""
    if comparison is None:
        return told
    from reports.page import changes  # brings numpy, which a page of one run does without

    return replace(
        told,
        question=changes.question(comparison),
        sentences=(("", changes.sentence(comparison)),),
        basis="",
        cards=(*changes.cards(comparison), trust(results)),
        warnings=(*comparison.warnings, *told.warnings),
    )


def render(
    results: Results,
    evidence: Evidence | None = None,
    *,
    place: Path | None = None,
    readings: Mapping[str, str] | None = None,
) -> str:
    """Make the page.

    ``place`` is where the page will lie: what lies in the same folder or below it is linked.
    ``readings`` says where the raw readings of each timeline's chart lie, from the page.
    """
    evidence = evidence or Evidence()
    found = sections(results, evidence)
    held = limits(results, evidence)
    told = answer(results, held)
    told = replace(told, warnings=(*told.warnings, *found.missing))
    told = _answer(told, results, evidence.comparison)
    links, colours = Links.of(results, place), colours_of(results)
    packed = packings(block for made in found.made for block in made.blocks)
    places = CellPlaces.of(results)
    canvas = Canvas(links, places, colours, packed, readings or {})
    is_long = len(results.cells) >= FEWEST_CELLS
    drawn = [
        part(made, canvas, is_folded=is_long and made.is_detail)
        for made in found.made
        if made.is_on_page
    ]
    return (
        _templates()
        .get_template("page.html")
        .render(
            results=results,
            answer=told,
            warnings_shown=WARNINGS_SHOWN,
            answers_shown=_ANSWERS_SHOWN if results.effects else len(told.sentences),
            charts=folded(
                [chart(r, colours, places, held) for r in told.rankings if r.cells or r.set_aside]
            ),
            leading=[one for one in drawn if one.made.section.order < RANKINGS],
            following=[one for one in drawn if one.made.section.order >= RANKINGS],
            is_large=sum(len(cell.trials) for cell in results.cells) > _LARGE,
            inline=_inline(
                zoom=bool(packed), printed=sideways(block for one in drawn for block in one.blocks)
            ),
            several_runs=len(results.runs) > 1,
            side_word=side_word(results.runs),
            simulated=SIMULATED if results.is_simulated else "",
            machines=header(results),
            cells=places.data,
            first=FIRST,
            long=LONG,
        )
    )
