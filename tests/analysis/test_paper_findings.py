"""Lay made-up papers beside made-up results, and refuse findings that say nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.analysis.evidence import Evidence
from harness.analysis.papers.paper_findings import PaperFinding, findings
from harness.analysis.results import Results
from harness.errors import BakeoffError
from harness.sections.contract.gather import questions
from harness.store.dataset import Dataset
from harness.store.outcome import Ended
from harness.store.records import Gate, Hole
from harness.study.study import load_study
from harness.verdicts.io_results import InputResult
from harness.verdicts.results import CellResult, TrialResult
from reports.page.page import render
from tests.reports import samples
from tests.runs import Behaviour, RecordedCell, Recording, write_run

STUDY = """
[[finding]]
question = "How much faster is torch?"
paper = "not available"
of = { framework = "torch", workload = "alexnet", precision = "fp32" }
over = { framework = "jax", workload = "alexnet", precision = "fp32" }
[[finding]]
question = "Is input waited for?"
paper = "no"
measure = "waited"
of = { framework = "torch", workload = "alexnet", precision = "fp32" }
[[finding]]
question = "And Caffe?"
paper = "slower"
of = { framework = "caffe" }
over = { framework = "jax" }
"""
REASON = "Rank 0 ended.\n    torch sees no GPU\n    Log: /there/rank.0.err"


def found(results: Results) -> tuple[PaperFinding, ...]:
    return findings(results, questions(results, pytest.fail))


def results(folder: Path) -> Results:
    made = samples.demo()
    (folder / "study.toml").write_text(STUDY, "utf-8")
    told = InputResult(cache="cold", wait_share=0.125)
    cells = tuple(
        replace(cell, trials=tuple(replace(one, input=told) for one in cell.trials))
        for cell in made.cells
    )
    return replace(made, cells=cells, runs=(replace(made.runs[0], directory=str(folder)),))


def test_a_page_opens_with_the_questions_that_the_run_answers(tmp_path: Path) -> None:
    made = results(tmp_path)
    page = render(made, Evidence(questions=questions(made, pytest.fail)))
    section = page.split('<section id="findings">')[1].split("</section>")[0]
    shown, _, folded = section.partition("<details")
    assert "How much faster is torch?" in shown
    assert "And Caffe?" not in shown
    assert "1 question that this run has no number for" in folded
    assert "And Caffe?" in folded


def test_a_page_says_of_an_answer_that_its_cells_are_a_stand_in(tmp_path: Path) -> None:
    made = results(tmp_path)
    text = STUDY.replace('paper = "no"', 'paper = "no"\nstand_in = "a <small> machine"')
    (tmp_path / "study.toml").write_text(text, "utf-8")
    _, waited, _ = found(made)
    assert waited.measured.startswith("of a stand-in, a <small> machine; 12.5 % of the time")
    page = render(made, Evidence(questions=questions(made, pytest.fail)))
    assert "of a stand-in, a &lt;small&gt; machine; 12.5" in page


def test_a_ratio_is_of_trials_in_the_same_block(tmp_path: Path) -> None:
    ratio, waited, missing = (one.measured for one in found(results(tmp_path)))
    assert ratio.startswith("1.2")
    assert "times, 1.2" in ratio
    assert "alexnet · torch fp32 against alexnet · jax fp32, n = 6" in ratio
    assert waited.startswith("12.5 % of the time")
    assert missing == "not measured: this run has no such cell"


def test_only_the_side_that_has_no_cell_says_why_not(tmp_path: Path) -> None:
    """A variant of the other side that was left out explains nothing."""
    made = results(tmp_path)
    left_out = (
        Hole("a", "no fast memory", {"framework": "jax", "workload": "alexnet"}),
        Hole("b", "no caffe here", {"framework": "caffe", "workload": "alexnet"}),
    )
    missing = found(replace(made, holes=left_out))[-1].measured
    assert missing == "not measured: no caffe here"


def test_a_cell_that_failed_says_how(tmp_path: Path) -> None:
    made = results(tmp_path)

    def failed(trial: TrialResult) -> TrialResult:
        return replace(trial, outcome=Ended.FAILED, reason=REASON, counted=False)

    cells = tuple(
        replace(one, trials=tuple(map(failed, one.trials))) if one.framework == "torch" else one
        for one in made.cells
    )
    left_out = (Hole("a", "no such option", {"framework": "torch", "workload": "alexnet"}),)
    ratio, waited, _ = (one.measured for one in found(replace(made, cells=cells, holes=left_out)))
    assert ratio == waited == "not measured: Rank 0 ended. torch sees no GPU"


def test_no_other_cell_answers_for_one_that_failed(tmp_path: Path) -> None:
    """Of two that are asked for, the one of which less else is said is meant."""
    meant = RecordedCell(outcomes=dict.fromkeys(range(1, 7), "failed"))
    other = RecordedCell(factors={"tier": "lustre"})
    run = write_run(tmp_path, [meant, other], Recording())
    asked = '[[finding]]\nquestion = "?"\npaper = "!"\nof = { framework = "torch" }\n'
    (run / "study.toml").write_text(asked, "utf-8")
    (told,) = found(analyse(Dataset([run])))
    assert told.answer.value is None
    assert told.measured.startswith("not measured: ")


def test_an_answer_says_the_worst_verdict_of_its_trials(tmp_path: Path) -> None:
    made = results(tmp_path)

    def judged(cell: CellResult, verdicts: tuple[str, ...]) -> CellResult:
        pairs = zip(cell.trials, verdicts, strict=False)
        trials = tuple(replace(trial, verdict=one) for trial, one in pairs)
        return replace(cell, trials=(*trials, *cell.trials[len(verdicts) :]))

    told = ("noisy", "stalled", "contended", "unsteady")
    cells = tuple(judged(one, told) if one.framework == "torch" else one for one in made.cells)
    ratio, *_ = found(replace(made, cells=cells))
    assert ratio.measured.endswith("; the worst trial is called stalled")
    assert ratio.measured.startswith("beside other work; ")


def test_a_cell_that_never_ran_is_named(tmp_path: Path) -> None:
    made = results(tmp_path)
    cells = tuple(
        replace(one, trials=()) if one.framework == "torch" else one for one in made.cells
    )
    ratio = found(replace(made, cells=cells))[0].measured
    assert ratio == "not measured: alexnet · torch fp32 was not run"


def test_an_answer_beside_other_work_says_so(tmp_path: Path) -> None:
    made = results(tmp_path)
    cells = tuple(
        replace(one, trials=tuple(replace(trial, verdict="contended") for trial in one.trials))
        if one.framework == "jax"
        else one
        for one in made.cells
    )
    ratio, waited, missing = found(replace(made, cells=cells))
    assert ratio.measured == f"beside other work; {ratio.answer.text}"
    assert waited.measured == waited.answer.text, "of torch alone"
    assert missing.measured.startswith("not measured")


def two_nodes(folder: Path, one_node_s: float) -> Results:
    """Ask how efficient two nodes are whose step takes a hundredth of a second."""
    one = RecordedCell(behaviour=Behaviour(step_s=one_node_s))
    two = RecordedCell(factors={"nodes": 2, "strategy": "ddp"}, behaviour=Behaviour(step_s=0.01))
    run = write_run(folder, [one, two], Recording())
    question = (
        '[[finding]]\nquestion = "?"\npaper = "!"\nmeasure = "efficiency"\n'
        "of = { nodes = 2 }\nover = { nodes = 1 }\n"
    )
    (run / "study.toml").write_text(question, "utf-8")
    return analyse(Dataset([run]))


def test_more_than_linear_is_no_answer(tmp_path: Path) -> None:
    results = two_nodes(tmp_path, 0.1)
    (told,) = found(results)
    assert told.measured.startswith("no answer: more than linear, so its baseline was slowed (10")
    page = render(results, Evidence(questions=questions(results, pytest.fail)))
    assert "1 question that this run has no number for" in page


def test_an_efficiency_says_where_ranks_have_fewer_threads_than_the_one_before(
    tmp_path: Path,
) -> None:
    results = two_nodes(tmp_path, 0.01)
    cells = tuple(
        replace(cell, trials=tuple(replace(t, facts={"threads": threads}) for t in cell.trials))
        for cell, threads in zip(results.cells, (1, 2), strict=True)
    )
    assert cells[0].scale.nodes == 2
    (told,) = found(replace(results, cells=cells))
    assert told.measured.endswith("; a rank of the baseline has 2 threads, here 1")
    (alike,) = found(results)
    assert "threads" not in alike.measured


def test_what_exchanges_messages_is_never_held_against_what_trains(tmp_path: Path) -> None:
    def cell(
        nodes: int, workload: str = "tinycnn", unit: str = "images", **more: object
    ) -> RecordedCell:
        factors = {"nodes": nodes, "strategy": "ddp" if nodes > 1 else "none", **more}
        return RecordedCell(workload, factors=factors, unit=unit)

    cells = [
        cell(2, "all-reduce", "bytes", message_bytes=2**24),
        *(cell(nodes, container=boxed) for nodes in (1, 2) for boxed in (True, False)),
    ]
    run = write_run(tmp_path, cells, Recording())
    question = (
        '[[finding]]\nquestion = "?"\npaper = "!"\nof = { nodes = 2 }\nover = { nodes = 1 }\n'
    )
    (run / "study.toml").write_text(question, "utf-8")
    (told,) = found(analyse(Dataset([run])))
    named, _, against = told.measured.partition(" against ")
    assert "all-reduce" not in told.measured.replace("tinycnn", "")
    assert ("container" in named) == ("container" in against), "alike in all that was not asked"


def test_what_only_one_of_two_is_asked_to_be_the_other_is_too(tmp_path: Path) -> None:
    """A container on two nodes is nothing to hold against a rank of its own on one."""
    cells = [
        RecordedCell(factors={"nodes": nodes, "strategy": "ddp", "container": boxed})
        for nodes in (2, 1)
        for boxed in (True, False)
    ]
    run = write_run(tmp_path, cells, Recording())
    question = (
        '[[finding]]\nquestion = "?"\npaper = "!"\nof = { container = true }\n'
        "over = { nodes = 1, container = false }\n"
    )
    (run / "study.toml").write_text(question, "utf-8")
    (told,) = found(analyse(Dataset([run])))
    assert "2 nodes" not in told.measured


@pytest.mark.parametrize("wrong", ["torch", "jax"])
def test_what_computes_something_else_is_no_answer(tmp_path: Path, wrong: str) -> None:
    made = results(tmp_path)
    cells = tuple(
        replace(one, gate=Gate("differs", "fc")) if one.framework == wrong else one
        for one in made.cells
    )
    ratio, waited, _ = (one.measured for one in found(replace(made, cells=cells)))
    assert ratio.startswith(f"not measured: alexnet · {wrong} fp32")
    assert ratio.endswith("is not ranked, it computes something else (fc)")
    assert waited.startswith("not measured" if wrong == "torch" else "12.5 %")


def test_a_run_without_findings_has_none(tmp_path: Path) -> None:
    told = results(tmp_path)
    (tmp_path / "study.toml").write_text("", "utf-8")
    assert found(told) == ()


def test_a_finding_names_factors_that_there_are(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        'title = "One"\n[matrix]\nworkload = "nothing"\nframework = "null"\n'
        '[[finding]]\nquestion = "?"\npaper = "!"\nof = { raeder = "pread" }\n',
        "utf-8",
    )
    with pytest.raises(BakeoffError, match="raeder"):
        load_study(study)
