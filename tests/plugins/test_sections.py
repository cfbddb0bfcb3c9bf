"""A section is one file of a provider package: the page, the terminal and the exports have it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.analysis.evidence import Evidence
from harness.cli.verbs.export import command as export
from harness.sections.contract.section import sections
from reports.page.page import render
from reports.text.terminal import render as in_terminal
from tests import runs
from tests.plugins.conftest import Install
from tests.reports import samples

EFFORT = '''
"""The section of how often each cell was run."""

from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Brief, Chart, Note, Sheet, Stacks
from harness.sections.contract.section import Section

COLUMNS = (Column("cell", "cell", "name"), Column("trials", "trials", "count"))


def blocks(results, evidence):
    rows = tuple((cell.label, len(cell.trials)) for cell in results.cells)
    bars = tuple((name, (("trials", float(count)),)) for name, count in rows)
    yield Note("So often was each cell run.")
    yield Sheet(Table("effort", "Trials of each cell", COLUMNS, rows))
    yield Chart(Stacks(bars, "count"), Table("effort-drawn", "Trials drawn", COLUMNS, rows))
    yield Brief("Effort:", tuple(f"{name}: {count} trials" for name, count in rows))


SECTION = Section("How much was run", 1250, blocks, contents="Effort")
'''


def test_one_file_is_a_section_of_the_page_between_those_of_lower_and_higher_order(
    install: Install,
) -> None:
    install("extra", group="sections", run_effort__dot__py=EFFORT)
    page = render(samples.demo())
    assert '<li><a href="#run-effort">Effort</a></li>' in page
    section = page.split('<section id="run-effort">')[1].split("</section>")[0]
    assert "<h2>How much was run</h2>\n<p>So often was each cell run.</p>" in section
    assert re.search(r'<table class="grid[^"]*" data-name="effort">', section)
    assert 'data-name="effort-drawn" aria-label="Trials drawn"' in section
    places = [page.index(f'<section id="{name}"') for name in ("trials", "run-effort", "gate")]
    assert places == sorted(places)


def test_one_file_is_told_in_the_terminal(install: Install) -> None:
    install("extra", group="sections", run_effort__dot__py=EFFORT)
    assert "Effort:\n  alexnet · torch · bf16: 6 trials" in in_terminal(samples.demo())


@pytest.mark.parametrize(
    ("form", "row"),
    [("csv", "tinycnn · torch,6"), ("latex", r"tinycnn $\cdot$ torch & 6 \\")],
    ids=lambda text: text.split()[0],
)
def test_one_file_gives_tables_to_exports(
    install: Install, tmp_path: Path, form: str, row: str
) -> None:
    install("extra", group="sections", run_effort__dot__py=EFFORT)
    run = runs.write_run(tmp_path / "runs", [runs.RecordedCell()])
    arguments = [str(run), "--to", form, "--table", "effort"]
    done = CliRunner().invoke(export, arguments, catch_exceptions=False)
    assert row in done.stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("", "extra.broken has no constant SECTION"),
        ("SECTION = 'tea'", "extra.broken.SECTION is no Section"),
        (
            EFFORT.replace("contents=", "needs=frozenset({'tea'}), contents="),
            "it needs tea, which nothing gathers",
        ),
        (EFFORT.replace("yield Note", "1 / 0 #"), "ZeroDivisionError: division by zero"),
    ],
    ids=["import", "constant", "kind", "needs", "making"],
)
def test_a_section_that_cannot_be_made_is_named_with_its_reason_and_breaks_no_page(
    install: Install, text: str, reason: str
) -> None:
    install("extra", group="sections", broken__dot__py=text)
    whole = sections(samples.demo())
    assert whole.missing == (f"Section broken of extra_dist is missing: {reason}.",)
    page = render(samples.demo())
    assert '<section id="cells"' in page
    assert '<section id="broken"' not in page
    assert "Section broken of extra_dist is missing" in page
    assert "Section broken of extra_dist is missing" in in_terminal(samples.demo())


def test_a_section_is_made_only_where_what_it_needs_was_gathered(install: Install) -> None:
    needing = EFFORT.replace("contents=", "needs=frozenset({'questions'}), contents=")
    install("extra", group="sections", run_effort__dot__py=needing)
    for evidence, is_made in ((Evidence(), False), (Evidence(questions={}), True)):
        names = [one.name for one in sections(samples.demo(), evidence).made]
        assert ("run-effort" in names) is is_made
