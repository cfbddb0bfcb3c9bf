"""Recompute what findings measure, from raw tables, with queries as a reader would write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.analyse import analyse
from harness.analysis.context.finding_measures import MEASURES
from harness.analysis.context.paper_findings import Answer, findings
from harness.analysis.rates_for_queries import add_rates
from harness.sections.contract.gather import questions
from harness.store.dataset import Dataset
from harness.study.finding import NEED_OVER, Measured
from tests.outcomes import seal_all
from tests.runs import Behaviour, RecordedCell, Recording, write_run

TRIALS = 3
FINDING = '[[finding]]\nquestion = "{0}"\npaper = "!"\nmeasure = "{0}"\nof = {1}\n{2}'


def edit(run: Path, change: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> None:
    for file in run.rglob("events.*.jsonl"):
        events = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        told = [json.dumps(one) for event in events for one in change(event)]
        file.write_text("\n".join(told) + "\n", "utf-8")
    seal_all(run)


def fed(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Let a window wait for an eighth of its time, and a checkpoint follow each twentieth."""
    if event["event"] == "values":
        return [{**event, "step": step, "values": {"loss": 4.0 / step}} for step in range(1, 31)]
    if event["event"] != "window":
        return [event]
    told = [{**event, "waited": (event["end"] - event["start"]) // 8}]
    if event["phase"] == "measure" and event["first"] % 20 == 19:
        stood = {"start": event["end"] + 1_000, "end": event["end"] + 11_000}
        told.append(
            {
                "event": "checkpoint",
                "phase": "measure",
                "step": event["first"],
                **stood,
                "saver": "save",
                "bytes": 10,
            }
        )
    return told


def run_of(folder: Path, change: Callable[[dict[str, Any]], list[dict[str, Any]]] = fed) -> Path:
    cells = [
        RecordedCell(factors={"ranks_per_node": ranks}, behaviour=Behaviour(step_s=step), start_s=1)
        for ranks, step in ((1, 0.02), (2, 0.025))
    ]
    run = write_run(folder, cells, Recording(trials=TRIALS, measure={"turns": False}))
    edit(run, change)
    return run


def answers(run: Path, over: bool = False) -> dict[str, Answer]:
    """Answer every measure of the cell with two ranks, against that with one, or alone."""
    against = "over = { ranks_per_node = 1 }\n" if over else ""
    asked = [one for one in MEASURES if over or one not in NEED_OVER]
    text = "".join(FINDING.format(one, "{ ranks_per_node = 2 }", against) for one in asked)
    (run / "study.toml").write_text(text, "utf-8")
    results = analyse(Dataset([run]))
    return {one.measure: one.answer for one in findings(results, questions(results, pytest.fail))}


def queried(run: Path, text: str) -> list[float]:
    dataset = Dataset([run])
    add_rates(dataset)
    return [float(row[-1]) for row in dataset.sql(text).rows]


def middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def test_each_figure_alone_follows_from_raw_tables(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    told = answers(run)
    mine = "JOIN cells USING (cell_key) WHERE json_extract(factors, '$.ranks_per_node') = 2"
    waited = queried(
        run,
        "SELECT trial, 100 * sum(waited_ns) / sum(end_ns - start_ns) FROM windows "
        f"{mine} AND phase = 'measure' GROUP BY trial",
    )
    assert told["waited"].value == pytest.approx(middle(waited), rel=1e-6)
    rates = queried(run, f"SELECT trials.rate FROM trials {mine} AND counted ORDER BY trial")
    per_step = 2 * 16
    steps = [per_step / rate for rate in rates]
    assert told["rate"].value == pytest.approx((rates[0] * rates[1] * rates[2]) ** (1 / 3))
    assert told["input_s"].value == pytest.approx(
        middle([step * share / 100 for step, share in zip(steps, waited, strict=True)]), rel=1e-3
    )
    assert told["epoch_s"].value == pytest.approx(middle([50_000 / rate for rate in rates]))
    blocked = queried(
        run,
        f"SELECT median(end_ns - start_ns) / 1e9 FROM checkpoints {mine} AND rank = 0",
    )
    assert told["blocked"].value == pytest.approx(blocked[0]) == pytest.approx(1e-5)
    last = (
        f"SELECT trial, avg(value) FROM \"values\" {mine} AND name = 'loss' AND rank = 0 "
        "AND step > 20 GROUP BY trial"
    )
    assert told["loss"].value == pytest.approx(middle(queried(run, last)))
    started = queried(
        run,
        f"SELECT trial, max(took) FROM (SELECT trial, rank, sum(end_ns - start_ns) / 1e9 AS took "
        f"FROM phases {mine} AND phase IN ('start', 'open') GROUP BY trial, rank) GROUP BY trial",
    )
    assert told["start_s"].value == pytest.approx(middle(started))
    assert {told[one].value for one in ("calls", "utilisation", "disk", "energy")} == {None}
    assert told["energy"].text.startswith("not measured: nothing was recorded of it")


def test_two_cells_are_compared_block_by_block(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    told = answers(run, over=True)
    by_ranks = {
        ranks: queried(
            run,
            "SELECT trials.rate FROM trials JOIN cells USING (cell_key) "
            f"WHERE json_extract(factors, '$.ranks_per_node') = {ranks} ORDER BY block",
        )
        for ranks in (1, 2)
    }
    pairs = list(zip(by_ranks[2], by_ranks[1], strict=True))
    product = 1.0
    for two, one in pairs:
        product *= two / one
    assert told["rate"].value == pytest.approx(product ** (1 / TRIALS))
    assert told["efficiency"].value == pytest.approx(product ** (1 / TRIALS) / 2)
    assert told["efficiency"].text.partition(",")[0].endswith("of linear")
    longer = middle([32 / two - 16 / one for two, one in pairs])
    assert told["overhead_s"].value == pytest.approx(longer)
    assert told["loss"].text.startswith("loss 0.159 against 0.159 after 31 steps: equal")


def test_losses_agree_only_within_what_other_seeds_change(tmp_path: Path) -> None:
    def losses(change: float) -> str:
        folder = tmp_path / str(change)
        cells = [
            RecordedCell(factors={"reader": reader, "cell_seed": seed})
            for reader in ("pread", "async-thread")
            for seed in (1, 2)
        ]
        run = write_run(folder, cells, Recording(trials=2))
        keys = {cell.key: cell.factors for cell in cells}
        for file in run.rglob("events.*.jsonl"):
            of = keys[file.parents[1].name]
            apart = change if of["reader"] == "pread" else 0.0
            loss = 2.0 + 0.1 * of["cell_seed"] + apart
            text = file.read_text("utf-8").replace('"loss": 2.3', f'"loss": {loss}')
            file.write_text(text, "utf-8")
        seal_all(run)
        (run / "study.toml").write_text(
            '[[finding]]\nquestion = "?"\npaper = "!"\nmeasure = "loss"\n'
            'of = { reader = "async-thread" }\nover = { reader = "pread" }\n',
            "utf-8",
        )
        results = analyse(Dataset([run]))
        (found,) = findings(results, questions(results, pytest.fail))
        return found.measured

    assert "they agree, 0.0500 apart where 2 seeds alone are 0.100 apart" in losses(0.05)
    assert "they DIFFER, 0.300 apart where 2 seeds alone are 0.100 apart" in losses(0.3)
    assert "equal in every digit" in losses(0.0)


def test_every_measure_that_a_study_may_name_is_computed() -> None:
    assert set(Measured.__args__) == set(MEASURES)
    assert {name for name, one in MEASURES.items() if one.needs_over} == set(NEED_OVER)
