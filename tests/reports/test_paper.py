"""What `export` writes for a paper compiles, fits its column, and says what it shows."""

from __future__ import annotations

import dataclasses
import io
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from PIL import Image

from harness.analysis.evidence import Evidence, Recordings
from harness.analysis.scaling.scaling import scaling
from harness.analysis.tables import Column, Table, selected
from harness.cli.verbs.export import command as export
from harness.errors import UsageError
from harness.sections.cells import cells
from harness.sections.contract.blocks import tables
from harness.sections.contract.section import sections
from harness.sections.ranking import ranking
from harness.verdicts.results import Interval, TurnsTaken
from reports.exports.formats import bibtex, latex, markdown, methods
from reports.exports.paper_tables import for_paper
from reports.figures.captions import caption
from reports.figures.converted import converted
from reports.figures.figures import figure
from tests import needs, runs
from tests.reports import samples

COLUMN_MM, PAGE_MM = 85.0, 160.0
PAPER = r"""
\documentclass[10pt%s]{article}
\usepackage[a4paper,textwidth=%gmm,columnsep=8mm]{geometry}
\usepackage[T1]{fontenc}
\usepackage{textcomp,graphicx,booktabs,caption}
\emergencystretch=2em
\begin{document}
\section{Methods}
%s
\begin{thebibliography}{9}\bibitem{%s} The run.\end{thebibliography}
\end{document}
"""


def _table(table, results, width_mm: float) -> str:
    chosen, same = for_paper(table, ())
    return latex.of_captioned(
        chosen, caption(results, table.title, *same), width_mm, is_chosen=False
    )


@pytest.mark.parametrize(("columns", "width_mm"), [(1, PAGE_MM), (2, COLUMN_MM)])
def test_a_paper_compiles_and_nothing_sticks_out(columns, width_mm, tmp_path: Path):
    demo, scaled = samples.demo(), samples.scaled()
    many = samples.factorial(2, 2, 4)
    body = _table(ranking(demo), demo, width_mm) + _table(scaling(scaled), scaled, width_mm)
    body += _table(ranking(many), many, width_mm)
    for results, name in ((demo, "ranking"), (demo, "trials"), (scaled, "scaling")):
        drawn = figure(results, Evidence(), name, width_mm)
        (tmp_path / f"{name}.pdf").write_bytes(converted(drawn.svg, "pdf"))
        body += latex.of_figure(drawn, caption(results, drawn.title))
    _compile(columns, f"{methods.of_results(demo)}\n{body}", tmp_path)


def _compile(columns: int, body: str, tmp_path: Path) -> None:
    compiler = needs.program("pdflatex", package="texlive-latex-base")
    if not _has(compiler, "booktabs.sty"):
        needs.missing(
            "booktabs", "install it, for example: apt-get install texlive-latex-recommended"
        )
    text = 2 * COLUMN_MM + 8 if columns == 2 else PAGE_MM
    key = bibtex.keys_of(samples.demo())[0]
    told = (",twocolumn" if columns == 2 else "", text, body, key)
    (tmp_path / "paper.tex").write_text(PAPER % told, encoding="utf-8")
    done = subprocess.run(
        [compiler, "-interaction=batchmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
    )
    log = (tmp_path / "paper.log").read_text(errors="replace")
    assert done.returncode == 0, log[-2000:]
    assert not re.findall(r"Overfull \\hbox.*", log)


@pytest.mark.parametrize(("columns", "width_mm"), [(1, PAGE_MM), (2, COLUMN_MM)])
def test_every_table_of_a_page_compiles_and_nothing_sticks_out(columns, width_mm, tmp_path: Path):
    told = samples.everything()
    made = sections(told, samples.evidence()).made
    every = [one for section in made for one in tables(section.blocks) if one.rows]
    assert {"gate", "energy", "findings", "what-ran"} <= {one.name for one in every}
    short = [dataclasses.replace(one, rows=one.rows[:12]) for one in every]
    body = "\n\\clearpage\n".join(_table(one, told, width_mm) for one in short)
    _compile(columns, body, tmp_path)


def _has(compiler: str, file: str) -> bool:
    finder = Path(compiler).with_name("kpsewhich")
    return subprocess.run([finder, file], capture_output=True).returncode == 0


def test_a_caption_names_machine_number_and_interval():
    told = caption(samples.demo(), "Ranking", "workload: alexnet")
    assert told == (
        "Ranking (workload: alexnet). AMD EPYC, 2 cores, 24.0 GiB of memory, no GPU · "
        "torch 2.13.0, jax 0.10.2, bakeoff 0.1.0 · 2025-11-21 04:40 UTC. n = 6 trials per cell. "
        "Intervals of rates: smallest and largest of 6 trials, 96.9 %."
    )


def test_the_methods_name_what_was_compared_and_what_was_tolerated():
    demo = samples.demo()
    cells = [
        dataclasses.replace(
            cell, trials=tuple(dataclasses.replace(t, verdict="contended") for t in cell.trials)
        )
        for cell in demo.cells
    ]
    crowded = dataclasses.replace(demo, cells=tuple(cells), varied=("precision",))
    told = methods.of_results(crowded)
    assert "7 configurations (factors: workload, framework, precision) ran" in told
    assert "42 of 43 trials count; rejected by rule: 1 contended." in told
    assert "Of those that count, 42 were contended, which the study tolerates." in told
    assert "tolerates" not in methods.of_results(demo)


def test_the_methods_say_that_trials_took_turns_only_of_those_that_did():
    def told(*alone: str) -> str:
        first = samples.demo().cells[0]
        trials = tuple(
            dataclasses.replace(trial, turns=TurnsTaken(alone=why))
            for trial, why in zip(first.trials, alone, strict=False)
        )
        assert first.rate is not None
        rate = dataclasses.replace(first.rate, n=len(alone), interval=None)
        cell = dataclasses.replace(first, trials=trials, rate=rate)
        return methods.of_results(dataclasses.replace(samples.demo(), cells=(cell,)))

    alone = "slurm starts its ranks"
    assert "took turns" not in told(alone)
    assert "ran 1 time each" in told(alone)
    assert "within blocks. " in told(alone)
    assert ". ." not in told(alone)
    assert "the others were stopped." in told("", "")
    assert "the others were stopped; 1 ran alone." in told("", alone)


def test_what_all_rows_share_stands_in_the_caption():
    chosen, same = for_paper(scaling(samples.scaled()), ())
    assert "unit" not in {column.key for column in chosen.columns}
    assert "unit: images/s" in same
    assert "workload: resnet50" in same


def test_columns_asked_for_are_those_in_their_order():
    chosen, same = for_paper(ranking(samples.demo()), ("rate", "cell"))
    assert [column.key for column in chosen.columns] == ["rate", "cell"]
    assert same == ()
    with pytest.raises(UsageError, match=r"no column 'rates'\. Did you mean 'rate'"):
        for_paper(ranking(samples.demo()), ("rates",))


def test_a_table_that_fits_at_no_size_is_refused_with_its_columns():
    table = ranking(samples.demo())
    with pytest.raises(UsageError, match=r"20 mm are given.*--columns workload,place,cell"):
        latex.of_captioned(table, "", 20.0)


def test_columns_that_nobody_chose_are_left_out_until_the_others_fit():
    told = _table(ranking(samples.demo()), samples.demo(), COLUMN_MM)
    assert told.startswith("% left out, as it is too wide: answer\n")
    assert "torch bf16" in told
    assert "0.800 {[}0.785, 0.815{]}" in told


def test_names_too_long_for_a_column_are_broken_and_keep_rate_and_ratio():
    many = samples.factorial(2, 2, 4)
    told = _table(ranking(many), many, COLUMN_MM)
    assert re.search(r"p\{\d+mm\}", told)
    assert r"fw0~$\cdot$ bf16~$\cdot$ batch~8~$\cdot$ 4~threads & " in told
    assert r"rate & $\times$ reference" in told
    chosen, _ = for_paper(ranking(many), ("cell", "rate", "rate_interval"))
    assert "p{" in latex.of_captioned(chosen, "", 50.0)


def test_no_line_of_an_axis_runs_through_words():
    svg = figure(samples.factorial(2, 2, 4), Evidence(), "trials", COLUMN_MM).svg
    shapes = list(ElementTree.fromstring(svg).iter())
    grid = [
        (float(one.get("y1")), float(one.get("y2"))) for one in shapes if one.get("class") == "grid"
    ]
    bases = [float(one.get("y")) for one in shapes if one.tag.endswith("text") and one.get("y")]
    assert grid
    assert not any(upper < base - 6 < lower for upper, lower in grid for base in bases)


@pytest.mark.parametrize("name", ["ranking", "trials"])
def test_no_words_of_a_figure_overlap_in_a_column_of_a_paper(name):
    svg = figure(samples.factorial(2, 2, 4), Evidence(), name, COLUMN_MM).svg
    lines: dict[str, int] = {}
    for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        if one.get("text-anchor") != "middle":
            lines[f"{one.get('y')}"] = lines.get(f"{one.get('y')}", 0) + len(one.text or "")
    assert max(lines.values()) <= 54
    assert "fw0 · bf16 · batch 8 · 4 threads" in svg


def test_the_caption_of_ratios_names_the_reference_and_how_surely_they_hold():
    told = caption(samples.demo(), "Ranking", has_ratios=True)
    assert told.endswith(
        "Reference: torch fp32; ratios are paired within blocks, their intervals of each workload "
        "hold together with 96.9 %."
    )
    assert "Reference" not in caption(samples.demo(), "Every trial")


def _held_back() -> Table:
    """What holds cells with long names back, as a run on several nodes has them."""
    columns = [
        ("cell", "cell", "name"),
        ("verdict", "held back by", "text"),
        ("cause", "part of the step", "text"),
        ("share", "of the step", "share"),
        ("seconds", "time", "seconds"),
    ]
    places = ("within a node", "over nodes, 1 a node")
    rows = tuple(
        (f"tensorflow · multiworker · cpu · batch 16 · {place}", "kernel-bound", cause, 0.5, 0.0042)
        for place in places
        for cause in ("operations beyond what is needed", "computing")
    )
    return Table("limits", "What holds each cell back", tuple(Column(*c) for c in columns), rows)


def test_two_columns_of_words_are_broken_before_numbers_are_left_out(tmp_path: Path):
    told = _table(_held_back(), samples.demo(), 82.0)
    assert "cell & part of the step & of the step & time" in told
    assert "left out" not in told
    assert re.search(r"@\{\}p\{\d+mm\}p\{\d+mm\}rr@\{\}", told), told
    _compile(2, told, tmp_path)


@pytest.mark.parametrize("width_mm", [46.0, 48.0, 50.0, 60.0, 70.0])
def test_the_second_line_of_a_broken_name_has_room_for_its_indent(width_mm, tmp_path: Path):
    table = selected(_held_back(), ["cell", "share"])
    _compile(2, latex.of_captioned(table, "What holds each cell back.", width_mm), tmp_path)


def test_scaling_keeps_efficiency_and_node_hours_in_a_column_of_a_paper():
    cells = [one for one in samples.scaled().cells if one.strategy != "horovod"]
    told = dataclasses.replace(samples.scaled(), cells=tuple(cells))
    written = _table(scaling(told), told, COLUMN_MM)
    assert "devices & rate & efficiency & node-h/epoch" in written, written
    assert "cell: torch ddp" in written
    assert "left out" not in written


def test_every_cell_keeps_its_rate_in_a_column_of_a_paper():
    told = _table(cells(samples.demo(), {}), samples.demo(), COLUMN_MM)
    head = next(line for line in told.splitlines() if line.startswith("workload &"))
    assert head.startswith("workload & cell & rate & step p50")


def test_of_why_two_cells_differ_a_column_of_a_paper_keeps_the_difference():
    columns = [
        ("slower", "slower cell", "name"),
        ("part", "part of the step", "name"),
        ("slower_s", "time in the slower", "seconds"),
        ("faster_s", "time in the faster", "seconds"),
        ("difference_ms", "difference, ms", "number"),
        ("interval_ms", "interval", "interval"),
        ("share", "of the difference", "share"),
        ("slower_operations", "slower cell's operations", "long"),
    ]
    span = Interval(0.0163, 0.0668, 0.95, "")
    row = ("torch fp32", "block/conv1, backward", 2e-4, 1e-4, 0.0415, span, 0.3, "1 × aten::add_")
    table = Table("why-2", "Why", tuple(Column(*one) for one in columns), (row,))
    told = _table(table, samples.demo(), COLUMN_MM)
    assert "part of the step & difference, ms & of the difference" in told
    assert "0.0415 {[}0.0163, 0.0668{]}" in told


@pytest.mark.parametrize("name", ["ranking", "trials", "scaling", "step-time"])
@pytest.mark.parametrize("width_mm", [None, 85.0, 170.0])
def test_a_figure_is_as_wide_as_asked_and_stands_alone(name, width_mm):
    drawn = figure(samples.everything(), samples.evidence(), name, width_mm)
    root = ElementTree.fromstring(drawn.svg)
    assert root.get("width").endswith("mm") == (width_mm is not None)
    assert width_mm is None or root.get("width") == f"{width_mm:g}mm"
    assert "var(" not in drawn.svg
    assert root.get("font-family")
    assert any("resnet50" in text for text in root.itertext()) or name == "scaling"


def test_the_ranking_of_a_paper_has_whiskers_and_every_cell():
    root = ElementTree.fromstring(figure(samples.demo(), Evidence(), "ranking", 85.0).svg)
    shapes = [one.get("class") or "" for one in root.iter()]
    assert shapes.count("whisker") == 3 * len(samples.demo().cells)
    texts = "\n".join(root.itertext())
    assert "torch bf16" in texts
    assert "[24.8, 25.3]  0.800 ×" in texts


def test_a_figure_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(UsageError, match=r"Did you mean 'scaling'\?\n +Known: .*ranking"):
        figure(samples.scaled(), Evidence(), "scalin", None)


def _maps(count: int) -> Evidence:
    (one,) = samples.evidence().recordings.timelines
    timelines = tuple(dataclasses.replace(one, title=f"map {n}") for n in range(1, count + 1))
    return dataclasses.replace(samples.evidence(), recordings=Recordings(timelines=timelines))


def test_each_drawing_of_a_figure_can_be_asked_for_by_its_number():
    whole = figure(samples.demo(), _maps(20), "timeline", 85.0)
    third = figure(samples.demo(), _maps(20), "timeline-3", 85.0)
    assert whole.parts == tuple(f"timeline-{n}" for n in range(1, 21))
    assert whole.height_mm > 15 * third.height_mm
    assert third.title == "map 3"
    assert f'height="{third.height_mm:.2f}mm"' in third.svg


def test_of_several_tasks_the_ranking_of_one_is_drawn_by_its_number():
    both = figure(samples.demo(), Evidence(), "ranking", 85.0)
    second = figure(samples.demo(), Evidence(), "ranking-2", 85.0)
    assert both.parts == ("ranking-1", "ranking-2")
    assert samples.demo().rankings[1].workload in second.svg
    assert f"{samples.demo().rankings[0].workload} (" not in second.svg


def test_a_number_that_no_drawing_has_is_refused_with_those_that_there_are():
    with pytest.raises(UsageError, match=r"'timeline-21'; there is timeline-1 to timeline-20\."):
        figure(samples.demo(), _maps(20), "timeline-21", None)


def test_methods_say_how_it_was_measured_and_cite_the_run():
    told = methods.of_results(samples.demo())
    assert "7 configurations (factors: workload, framework, precision) ran 6 times each" in told
    assert "(seed 2026)" in told
    assert "42 of 43 trials count; rejected by rule: 1 contended." in told
    assert "Reference: torch fp32; ratios are paired within blocks, their intervals" in told
    assert told.endswith("\\cite{bakeoff-quickstart-2026-11-21}\n")
    entry = bibtex.of_results(samples.demo())
    assert entry.startswith("@misc{bakeoff-quickstart-2026-11-21,\n")
    assert "year = {2025}" in entry
    assert "Measured on AMD EPYC, 2 cores" in entry


def test_a_machine_of_which_nothing_was_seen_is_told_by_its_title(recorded: Path):
    assert "We measured on a laptop, with" in _export(recorded, "--to", "methods").decode()
    assert "note = {Measured on a laptop}" in _export(recorded, "--to", "bibtex").decode()


def test_a_table_says_efficiency_to_the_tenth_as_the_sentence_does():
    told = _table(scaling(samples.scaled()), samples.scaled(), PAGE_MM)
    assert re.search(r"\d\d\.\d \\% \{\[\}\d\d\.\d \\%, \d\d\.\d \\%", told), told


def test_the_methods_tell_trials_without_a_number_from_rejected_ones():
    told = samples.demo()
    first, *others = told.cells
    cut = dataclasses.replace(first.trials[0], counted=False, outcome="timeout", verdict=None)
    cells = (dataclasses.replace(first, trials=(cut, *first.trials[1:])), *others)
    said = methods.of_results(dataclasses.replace(told, cells=cells))
    assert "41 of 43 trials count; ended without a number: 1 timeout; rejected by rule: 1 c" in said


def test_spans_are_told_as_a_run_records_them():
    told = samples.demo()
    measure = {"warmup": {"seconds": None, "steps": 5}, "until": {"seconds": 30, "steps": None}}
    run = dataclasses.replace(told.runs[0], measure=measure)
    said = methods.of_results(dataclasses.replace(told, runs=(run,)))
    assert "warmed up for 5 steps and was timed for 30 s;" in said


def test_of_a_run_without_numbers_nothing_is_told_or_drawn():
    empty = dataclasses.replace(samples.demo(), cells=())
    with pytest.raises(UsageError, match="no trial gave a number that counts"):
        methods.of_results(empty)
    with pytest.raises(UsageError, match="nothing to draw of ranking"):
        figure(empty, Evidence(), "ranking", 85.0)


def test_hostile_names_stay_text_in_all_that_a_paper_takes():
    told = samples.hostile()
    written = [methods.of_results(told), bibtex.of_results(told)]
    written.append(_table(ranking(told), told, PAGE_MM * 10))
    for text in written:
        assert "\x1b" not in text
        assert not re.search(r"(?<!\\)&(?! )", text)
    drawn = figure(told, Evidence(), "trials", 85.0)
    assert "<script" not in drawn.svg
    assert "<script" not in markdown.of_figure(drawn, caption(told, drawn.title))
    ElementTree.fromstring(drawn.svg)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cells = [runs.RecordedCell(), runs.RecordedCell(framework="jax")]
    return runs.write_run(tmp_path_factory.mktemp("runs"), cells)


def _export(*arguments: object) -> bytes:
    words = [str(one) for one in arguments]
    done = CliRunner().invoke(export, words, standalone_mode=False)
    if done.exception:
        raise done.exception
    return done.stdout_bytes


def test_export_draws_at_the_width_asked_for(recorded: Path, tmp_path: Path):
    place = tmp_path / "ranking.png"
    _export(recorded, "--to", "png", "--width", "85mm", "--output", place)
    assert Image.open(io.BytesIO(place.read_bytes())).width == pytest.approx(85 / 25.4 * 300, abs=2)
    assert b'width="85mm"' in _export(recorded, "--to", "svg", "--width", "8.5cm")


@pytest.mark.parametrize(
    ("workloads", "remedy"),
    [
        (("tinycnn",), "--table ranking has the same in numbers."),
        (("tinycnn", "alexnet"), "--figure takes each by itself: ranking-1 to ranking-2."),
    ],
)
def test_a_figure_that_no_page_holds_is_drawn_with_a_word_on_what_to_ask_for(
    workloads: tuple[str, ...], remedy: str, tmp_path: Path
):
    cells = [
        runs.RecordedCell(workload=name, factors={"threads": n})
        for name in workloads
        for n in range(1, 31)
    ]
    many = runs.write_run(tmp_path, cells, runs.Recording(trials=1))
    command = [str(many), "--to", "svg", "--width", "85mm"]
    done = CliRunner().invoke(export, command, catch_exceptions=False)
    assert re.fullmatch(
        rf"Warning: this figure is \d+ mm tall, no page is; {remedy}\n", done.stderr
    )
    assert done.stdout.startswith("<svg")


def test_a_table_that_no_page_holds_is_written_with_a_word(tmp_path: Path):
    cells = [runs.RecordedCell(factors={"threads": n}) for n in range(1, 61)]
    many = runs.write_run(tmp_path, cells, runs.Recording(trials=1))
    for words, is_told in ((("latex", "--width", "85mm"), True), (("markdown",), False)):
        done = CliRunner().invoke(export, [str(many), "--to", *words], catch_exceptions=False)
        told = re.fullmatch(r"Warning: this table is about \d+ mm tall, no page.*\n", done.stderr)
        assert bool(told) == is_told, done.stderr
        assert "60 threads" in done.stdout


@pytest.mark.parametrize("form", [("latex", "--width", "85mm"), ("latex",), ("markdown",)])
def test_a_table_without_rows_is_refused_with_those_that_have_some(recorded: Path, form):
    with pytest.raises(UsageError, match=r"'scaling' has no rows here\.\n +These have .*ranking"):
        _export(recorded, "--to", *form, "--table", "scaling")
    assert _export(recorded, "--to", "csv", "--table", "scaling").startswith(b"workload,cell,")


def test_a_figure_that_fits_is_drawn_without_a_word(recorded: Path):
    done = CliRunner().invoke(export, [str(recorded), "--to", "svg"], catch_exceptions=False)
    assert done.stderr == ""


def test_export_writes_the_place_of_a_figure_and_its_caption(recorded: Path):
    told = _export(recorded, "--to", "latex", "--figure", "trials").decode()
    assert "\\includegraphics{trials.pdf}" in told
    assert "bakeoff export RUN --to pdf --figure trials --output trials.pdf" in told
    assert "n = 6 trials per cell" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "svg", "--table", "cells"), "svg has a drawing: take --figure"),
        (("--to", "csv", "--figure", "trials"), "csv holds no figures"),
        (("--to", "csv", "--width", "85mm"), "leave --width out"),
        (("--to", "latex", "--table", "cells", "--figure", "trials"), "take one"),
        (("--to", "latex", "--width", "wide"), "'wide' is no width: say 85mm"),
        (("--to", "methods", "--table", "cells"), "methods has one shape"),
    ],
)
def test_what_a_format_has_no_use_for_is_refused(recorded: Path, words, message):
    with pytest.raises(Exception, match=re.escape(message)):
        _export(recorded, *words)
