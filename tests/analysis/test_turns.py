"""These tests hold what is made of trials that took turns, from runs whose truth is known."""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp, log
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.analysis.blocks.how_measured import how_measured
from harness.analysis.blocks.paired_blocks import log_ratios
from harness.analysis.papers.paper_findings import findings
from harness.analysis.results import Results
from harness.sections.cells import cells
from harness.sections.contract.gather import questions
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName
from harness.store.outcome import read_outcome, write_outcome
from harness.verdicts.results import CellResult
from reports.text.answer import sentence
from tests.outcomes import seal_all
from tests.runs import Behaviour, RecordedCell, Recording, write_run
from tests.turn_runs import Sharing, take_turns

QUIET = Behaviour(trial_noise=0.0, window_noise=0.004, windows=70)
TORCH = RecordedCell(framework="torch", behaviour=QUIET)
JAX = RecordedCell(framework="jax", behaviour=replace(QUIET, step_s=0.02 / 1.02))
CELLS = (TORCH, JAX)
ROUNDS = """
    SELECT windows.block, turns.round, sum(steps) / sum(windows.end_ns - windows.start_ns) AS rate
    FROM windows JOIN cells USING (cell_key) JOIN turns ON turns.cell_key = windows.cell_key
        AND turns.trial = windows.trial AND turns.number = windows.turn
    WHERE framework = '{0}' AND phase = 'measure' GROUP BY ALL
"""
RATIO = f"""
    SELECT exp(avg(apart)) FROM (
        SELECT block, median(ln(mine.rate / theirs.rate)) AS apart
        FROM ({ROUNDS.format("jax")}) mine JOIN ({ROUNDS.format("torch")}) theirs
        USING (block, round) GROUP BY block)
"""
MEASURE = {"trials": 6, "turns": True, "turn_s": 1.0}


def recorded(folder: Path, sharing: Sharing, *, cells: tuple[RecordedCell, ...] = CELLS) -> Path:
    run = write_run(folder, cells, Recording(measure=MEASURE, block_noise=0.0))
    return take_turns(run, cells, sharing)


def told(folder: Path, sharing: Sharing, *, cells: tuple[RecordedCell, ...] = CELLS) -> Results:
    return analyse(Dataset([recorded(folder, sharing, cells=cells)]))


def of(results: Results, framework: str) -> CellResult:
    return next(cell for cell in results.cells if cell.framework == framework)


def test_what_the_machine_does_to_everybody_cancels_within_rounds(tmp_path: Path) -> None:
    jax = of(told(tmp_path, Sharing(machine_noise=0.4)), "jax").comparison
    assert jax is not None
    assert jax.interval is not None
    assert jax.ratio == pytest.approx(1.02, abs=0.004)
    assert jax.interval.high - jax.interval.low < 0.02
    assert "each the median of its rounds" in jax.interval.meaning


def test_a_burst_in_one_turn_does_not_move_a_blocks_ratio(tmp_path: Path) -> None:
    bursts = {("jax", block): {1 + block % 7: 3.0} for block in range(1, 7)}
    jax = of(told(tmp_path, Sharing(bursts=bursts)), "jax").comparison
    assert jax is not None
    assert jax.ratio == pytest.approx(1.02, abs=0.004)


def test_a_paper_s_finding_has_the_ratio_that_the_ranking_has(tmp_path: Path) -> None:
    """A burst in one turn moves the rates of whole trials apart, and no ratio of rounds."""
    bursts = {("jax", block): {1 + block % 7: 3.0} for block in range(1, 7)}
    run = recorded(tmp_path, Sharing(bursts=bursts))
    asked = '[[finding]]\nquestion = "?"\npaper = "!"\n'
    pair = 'of = { framework = "jax" }\nover = { framework = "torch" }\n'
    (run / "study.toml").write_text(asked + pair, "utf-8")
    dataset = Dataset([run])
    results = analyse(dataset)
    (told,) = findings(results, questions(results, pytest.fail))
    assert told.answer.value == pytest.approx(1.02, abs=0.004)
    (row,) = dataset.sql(RATIO).rows
    assert told.answer.value == pytest.approx(float(row[-1]))


def test_settling_and_disturbed_turns_are_in_no_figure(tmp_path: Path) -> None:
    lost = {("jax", block): (2, 5) for block in range(1, 7)}
    jax = of(told(tmp_path, Sharing(disturbed=lost)), "jax")
    assert jax.rate is not None
    assert jax.rate.value == pytest.approx(16 / (0.02 / 1.02), rel=0.005)
    for trial in jax.trials:
        assert trial.turns is not None
        assert [one.number for one in trial.turns.rounds] == [1, 3, 4, 6, 7]
        assert trial.turns.disturbed == 6
        assert trial.verdict == "valid"
        assert trial.windows == 50


def test_a_round_that_one_of_two_cells_lost_counts_for_neither(tmp_path: Path) -> None:
    bursts = {("torch", 1): dict.fromkeys((1, 2, 3), 1.5)}
    lost = {("jax", 1): (1, 2, 3)}
    results = told(tmp_path, Sharing(bursts=bursts, disturbed=lost))
    logs = log_ratios(of(results, "jax"), of(results, "torch"))
    assert exp(logs[1]) == pytest.approx(1.02, abs=0.01)


def test_too_few_common_rounds_leave_a_block_out(tmp_path: Path) -> None:
    lost = {("jax", 2): (1, 2), ("torch", 2): (3, 4, 6)}
    results = told(tmp_path, Sharing(disturbed=lost))
    assert sorted(log_ratios(of(results, "jax"), of(results, "torch"))) == [1, 3, 4, 5, 6]


def test_a_neighbour_that_never_leaves_makes_trials_and_the_answer_contended(
    tmp_path: Path,
) -> None:
    lost = {("jax", block): (1, 2, 3, 4, 6) for block in (2, 3)}
    results = told(tmp_path, Sharing(disturbed=lost))
    jax = of(results, "jax")
    verdicts = {trial.block: trial.verdict for trial in jax.trials}
    assert verdicts == {
        1: "valid",
        2: "contended",
        3: "contended",
        **dict.fromkeys((4, 5, 6), "valid"),
    }
    assert jax.comparison is not None
    assert jax.comparison.answer == "contended"
    assert "somebody used the cores" in jax.comparison.why


@pytest.mark.parametrize("threads", [None, 1])
def test_only_cells_that_fill_all_cores_are_advised_to_leave_a_neighbour_room(
    tmp_path: Path, threads: int | None
) -> None:
    cells = tuple(replace(one, factors={"threads": threads}) for one in CELLS)
    lost = {("jax", block): (1, 2, 3, 4, 6) for block in (2, 3)}
    results = told(tmp_path, Sharing(disturbed=lost), cells=cells)
    (warning,) = (one for one in results.warnings if "contended" in one)
    assert ("fewer threads than cores" in warning) == (threads is None)


def test_a_trial_without_one_undisturbed_turn_is_contended(tmp_path: Path) -> None:
    lost = {("jax", 1): range(1, 8)}
    jax = of(told(tmp_path, Sharing(disturbed=lost)), "jax")
    assert jax.trials[0].verdict == "contended"
    assert not jax.trials[0].counted


def test_standing_still_is_no_stall_and_the_machines_changes_are_not_the_trials(
    tmp_path: Path,
) -> None:
    results = told(tmp_path, Sharing(machine_noise=0.3))
    for cell in results.cells:
        assert {trial.verdict for trial in cell.trials} == {"valid"}
        assert {trial.steady_from for trial in cell.trials} == {0}


def test_a_cell_that_ran_alone_is_compared_by_whole_trials(tmp_path: Path) -> None:
    mxnet = RecordedCell(framework="mxnet", behaviour=replace(QUIET, step_s=0.025))
    sharing = Sharing(alone={"mxnet": "it reads files"})
    results = told(tmp_path, sharing, cells=(TORCH, JAX, mxnet))
    alone = of(results, "mxnet").comparison
    assert alone is not None
    assert alone.ratio == pytest.approx(0.8, abs=0.01)
    assert alone.interval is not None
    assert "rounds" not in alone.interval.meaning


def test_a_cell_is_paired_with_the_references_trial_of_its_own_group(tmp_path: Path) -> None:
    run = recorded(tmp_path, Sharing())
    paths = RunPaths(run)
    # the reference ran once more in block 2, with nobody, and 30 % faster
    first = paths.trial(TORCH.key, TrialName(2))
    again = paths.trial(TORCH.key, TrialName(2, 2))
    again.root.mkdir()
    outcome = read_outcome(first)
    assert outcome.turns is not None
    alone = replace(outcome.turns, together={TORCH.key: "trial-2.2"})
    again.events(0).write_text(first.events(0).read_text().replace('"steps": 1', '"steps": 2'))
    write_outcome(replace(outcome, trial="trial-2.2", turns=alone), again, settled=False)
    results = analyse(Dataset([run]))
    assert [t.counted for t in of(results, "torch").trials if t.block == 2] == [False, True]
    logs = log_ratios(of(results, "jax"), of(results, "torch"))
    assert exp(logs[2]) == pytest.approx(1.02, abs=0.01)


def test_place_and_rate_follow_the_ratio_where_rounds_and_trials_disagree(tmp_path: Path) -> None:
    # jax loses its three slowest rounds of the machine, so that its own mean flatters it
    slow = {("torch", b): dict.fromkeys((1, 2, 3), 2.0) for b in range(1, 7)}
    lost = {("jax", b): (1, 2, 3) for b in range(1, 7)}
    slower = replace(JAX, behaviour=replace(QUIET, step_s=0.0204))
    results = told(tmp_path, Sharing(bursts=slow, disturbed=lost), cells=(TORCH, slower))
    jax, torch = of(results, "jax"), of(results, "torch")
    assert jax.rate is not None
    assert torch.rate is not None
    assert jax.comparison is not None
    assert jax.comparison.ratio == pytest.approx(jax.rate.value / torch.rate.value)
    assert results.rankings[0].cells[0].framework == "torch"


def test_the_page_says_how_cells_were_measured(tmp_path: Path) -> None:
    mxnet = RecordedCell(framework="mxnet", behaviour=replace(QUIET, step_s=0.025))
    sharing = Sharing(alone={"mxnet": "it reads files"}, turn_s=1.0, disturbed={("jax", 1): (3,)})
    (ranking,) = told(tmp_path, sharing, cells=(TORCH, JAX, mxnet)).rankings
    assert how_measured(ranking) == (
        "Cells took turns of 1.00 s, 7 rounds a block, one at work while the others stood still; "
        "3 disturbed turns dropped. By the scatter of its rounds a block's ratio is known to "
        "± 0.0 %, at worst ± 0.0 %; how far single windows spread is in that, and marks no trial. "
        "By turns against alone with the others stopped: torch +0.0 % [+0.0, +0.0], jax +0.0 % "
        "[+0.0, +0.0]; that is in the time which each turn settles, and in no rate. mxnet ran "
        "alone: it reads files."
    )


SPREAD = tuple(0.002 * (place - 9.5) / 9.5 for place in range(20))
"""Twenty checks around none."""


def test_what_turns_that_do_not_settle_may_do_widens_an_interval(tmp_path: Path) -> None:
    sharing = Sharing(settles=False, known={"torch": SPREAD, "jax": [0.01 + one for one in SPREAD]})
    before = of(told(tmp_path / "unknown", Sharing()), "jax").comparison
    results = told(tmp_path / "known", sharing)
    jax = of(results, "jax").comparison
    assert before is not None
    assert jax is not None
    assert before.interval is not None
    assert jax.interval is not None
    assert jax.ratio == before.ratio
    assert jax.interval.low == pytest.approx(before.interval.low * exp(-0.0101), rel=5e-4)
    assert jax.interval.high == before.interval.high
    assert "widened by what turns may do" in jax.interval.meaning
    (ranking,) = results.rankings
    assert (
        "By turns against alone with the others stopped: jax +1.0 % [+0.9, +1.1], "
        "torch +0.0 % [−0.1, +0.1]; intervals of ratios are wider by that."
    ) in how_measured(ranking)


def test_an_answer_that_turns_may_have_made_is_withdrawn(tmp_path: Path) -> None:
    faster = replace(JAX, behaviour=replace(QUIET, step_s=0.02 / 1.05))
    assert of(told(tmp_path / "a", Sharing(), cells=(TORCH, faster)), "jax").comparison.answer == (
        "faster"
    )
    sharing = Sharing(settles=False, known={"torch": SPREAD, "jax": [0.06 + one for one in SPREAD]})
    results = told(tmp_path / "b", sharing, cells=(TORCH, faster))
    comparison = of(results, "jax").comparison
    assert comparison is not None
    assert comparison.answer == "cannot tell"
    assert "as large as the difference" in comparison.why
    assert "Not shown to be within 3 %: jax." in how_measured(results.rankings[0])


def test_the_checks_of_older_runs_compare_a_turn_with_the_next_of_its_own(tmp_path: Path) -> None:
    run = recorded(tmp_path, Sharing(settles=False))
    file = RunPaths(run).trial(JAX.key, TrialName(1)).events(0)
    events = [json.loads(line) for line in file.read_text().splitlines()]
    turns = [one for one in events if one["event"] == "turn" and one["round"] < 4]
    for one in turns:
        one |= {"steps": 10, "work_s": 0.202, "check": False}
        check = {**one, "number": 100 + one["number"], "check": True, "work_s": 0.2}
        events.append({**check, "start": one["end"] + 1, "end": one["end"] + 10**9})
    events[-1]["disturbed"] = "others used 0.61 of the 2 cores"
    file.write_text("".join(json.dumps(one) + "\n" for one in events))
    seal_all(run)
    jax = of(analyse(Dataset([run])), "jax")
    taken = jax.trials[0].turns
    assert taken is not None
    assert taken.alternations == pytest.approx([log(0.2 / 0.202)] * 2)
    assert len(taken.rounds) == 7
    assert taken.disturbed == 0


def test_what_turns_do_while_they_settle_is_in_no_rate(tmp_path: Path) -> None:
    before = of(told(tmp_path / "unknown", Sharing()), "jax").comparison
    known = {"torch": SPREAD * 9, "jax": [0.06 + one for one in SPREAD * 9]}
    results = told(tmp_path / "known", Sharing(known=known))
    assert of(results, "jax").comparison == before
    said = how_measured(results.rankings[0])
    assert "jax +6.1 % [" in said
    assert "in no rate. Not shown to be within 3 %: jax." in said


def test_a_rate_that_still_changes_within_turns_widens_an_interval(tmp_path: Path) -> None:
    before = of(told(tmp_path / "even", Sharing()), "jax").comparison
    results = told(tmp_path / "slow", Sharing(slow_start={"jax": 1.04}))
    jax = of(results, "jax").comparison
    assert before is not None
    assert jax is not None
    assert before.interval is not None
    assert jax.interval is not None
    assert before.ratio is not None
    assert jax.interval.high > before.ratio * 1.04**0.5
    assert "Rates still change within what counts of a turn" in how_measured(results.rankings[0])


def test_a_trial_by_turns_is_noisy_by_its_rounds_not_by_its_windows(tmp_path: Path) -> None:
    restless = replace(JAX, behaviour=replace(JAX.behaviour, window_noise=0.2, windows=700))
    quiet = of(told(tmp_path / "windows", Sharing(), cells=(TORCH, restless)), "jax")
    assert {trial.verdict for trial in quiet.trials} == {"valid"}
    bursts = {("jax", 2): dict(zip(range(1, 8), (1, 1.5, 2, 0.6, 1, 2.5, 0.5), strict=True))}
    jax = of(told(tmp_path / "rounds", Sharing(bursts=bursts)), "jax")
    marks = {trial.block: (trial.verdict, trial.evidence[:1]) for trial in jax.trials}
    assert marks[1][0] == "valid"
    assert marks[2][0] == "noisy"
    assert "rounds leave the ratio to the reference in doubt by" in marks[2][1][0]


def test_each_cell_says_with_how_many_it_took_turns_or_why_it_ran_alone(tmp_path: Path) -> None:
    mxnet = RecordedCell(framework="mxnet", behaviour=replace(QUIET, step_s=0.025))
    results = told(tmp_path, Sharing(alone={"mxnet": "it reads files"}), cells=(TORCH, JAX, mxnet))
    table = cells(results, {})
    keys = [column.key for column in table.columns]
    name, turns = keys.index("framework"), keys.index("turns")
    shared = "in turns with 1 other; +0.0 % [+0.0, +0.0] by turns against alone, in 42 turns"
    assert {row[name]: row[turns] for row in table.rows} == {
        "torch": shared,
        "jax": shared,
        "mxnet": "alone: it reads files",
    }


def test_what_the_machine_does_within_a_round_makes_no_trial_unsteady(tmp_path: Path) -> None:
    run = recorded(tmp_path, Sharing())
    for block in range(1, 7):
        file = RunPaths(run).trial(JAX.key, TrialName(block)).events(0)
        events = [json.loads(line) for line in file.read_text().splitlines()]
        measured = [e for e in events if e["event"] == "window" and e["phase"] == "measure"]
        for at, one in enumerate(measured):
            faster = 0.012 * (at % 10 if (at // 10) % 2 else 9 - at % 10)
            one["end"] = one["start"] + int((1 - faster) * (one["end"] - one["start"]))
        file.write_text("".join(json.dumps(one) + "\n" for one in events))
    seal_all(run)
    jax = of(analyse(Dataset([run])), "jax")
    assert {trial.verdict: trial.evidence for trial in jax.trials} == {"valid": ()}


def test_nothing_is_said_of_turns_where_a_study_has_none(tmp_path: Path) -> None:
    run = write_run(tmp_path, CELLS)
    (ranking,) = analyse(Dataset([run])).rankings
    assert how_measured(ranking) == ""


def test_the_answer_names_a_neighbour_that_never_left(tmp_path: Path) -> None:
    lost = {("jax", block): (1, 2, 3, 4, 6) for block in (2, 3)}
    (ranking,) = told(tmp_path, Sharing(disturbed=lost)).rankings
    assert "somebody else used the machine" in sentence(ranking)


def test_a_query_finds_turns_and_their_windows(tmp_path: Path) -> None:
    dataset = Dataset([recorded(tmp_path, Sharing(disturbed={("jax", 1): (3,)}))])
    rows = dataset.sql(
        "select t.round, t.try, t.disturbed != '' as lost, count(*), any_value(w.phase) "
        "from turns t join windows w on w.cell_key = t.cell_key and w.trial = t.trial "
        f"and w.turn = t.number where t.cell_key = '{JAX.key}' and t.block = 1 "
        "and w.phase != 'settle' group by all order by 1, 2"
    ).rows
    assert [row[:4] for row in rows if row[0] in (2, 3)] == [
        (2, 1, False, 10),
        *((3, attempt, True, 10) for attempt in (1, 2, 3)),
    ]
    assert {row[4] for row in rows if row[2]} == {"disturbed"}


def test_the_page_says_where_a_block_had_several_groups(tmp_path: Path) -> None:
    run = recorded(tmp_path, Sharing())
    trial = RunPaths(run).trial(JAX.key, TrialName(3))
    outcome = read_outcome(trial)
    assert outcome.turns is not None
    together = {**outcome.turns.together, TORCH.key: "trial-3.2"}
    trial.outcome.unlink()
    changed = replace(outcome, turns=replace(outcome.turns, together=together))
    write_outcome(changed, trial, settled=False)
    (ranking,) = analyse(Dataset([run])).rankings
    assert "the reference was in each group" in how_measured(ranking)
    assert 3 not in log_ratios(*ranking.cells[:2])


def test_the_page_claims_no_reference_of_a_group_that_has_none(tmp_path: Path) -> None:
    run = recorded(tmp_path, Sharing())
    trial = RunPaths(run).trial(JAX.key, TrialName(3))
    outcome = read_outcome(trial)
    assert outcome.turns is not None
    trial.outcome.unlink()
    changed = replace(outcome, turns=replace(outcome.turns, together={JAX.key: "trial-3"}))
    write_outcome(changed, trial, settled=False)
    (ranking,) = analyse(Dataset([run])).rankings
    assert "the reference was in each group" not in how_measured(ranking)
    assert "compared with it by whole trials" in how_measured(ranking)
