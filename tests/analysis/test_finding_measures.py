"""Recompute what findings measure, from raw tables, with queries as a reader would write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.analyse import analyse
from harness.analysis.papers.finding_measures import MEASURES
from harness.analysis.papers.paper_findings import Answer, findings
from harness.analysis.rates_for_queries import add_rates
from harness.sections.contract.gather import questions
from harness.store.dataset import Dataset
from harness.store.samples import samples_format
from harness.store.samples.samples_format import Channel, Declared
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


def run_of(
    folder: Path,
    change: Callable[[dict[str, Any]], list[dict[str, Any]]] = fed,
    device: str = "cpu",
) -> Path:
    cells = [
        RecordedCell(
            factors={"ranks_per_node": ranks, "device": device},
            behaviour=Behaviour(step_s=step),
            start_s=1,
        )
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
    unknown = ("calls", "utilisation", "memory", "disk", "energy")
    assert {told[one].value for one in unknown} == {None}
    assert told["energy"].text.startswith("not measured: nothing was recorded of it")
    assert told["memory"].text.startswith("not measured: only a GPU tells of its memory")


def read(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Let each tenth window end an epoch: two from storage, then those that memory held."""
    if event["event"] != "window":
        return [event]
    if event["phase"] != "measure" or event["first"] % 10 != 9:
        return [{**event, "waited": 0}]
    number = event["first"] // 10
    from_storage = number < 4 or number % 2 == 0
    epoch = {
        "event": "epoch",
        "phase": "measure",
        "number": number,
        "first": event["first"] - 9,
        "steps": 10,
        "samples": 160,
        "bytes": 160_000,
        "digest": f"{number:016x}",
        "cache": "cold" if from_storage else "warm",
        "cold_fraction": 1.0 if from_storage else 0.0,
        "calls": 7 * number + 1,
        "call_bytes": 160_000,
        "cpu_s": 0.01,
    }
    return [{**event, "waited": 0}, epoch]


def test_reads_of_an_epoch_follow_from_raw_events(tmp_path: Path) -> None:
    run = run_of(tmp_path, read)
    calls = queried(
        run,
        "SELECT trial, sum(calls) / count(DISTINCT number) FROM epochs "
        "JOIN cells USING (cell_key) JOIN (SELECT cell_key, trial, min(first) AS timed "
        "FROM windows WHERE phase = 'measure' GROUP BY ALL) USING (cell_key, trial) "
        "WHERE json_extract(factors, '$.ranks_per_node') = 2 "
        "AND first >= timed AND cache = 'cold' GROUP BY trial",
    )
    assert len(calls) == TRIALS
    assert middle(calls) > 0
    assert answers(run)["calls"].value == pytest.approx(middle(calls))


CORES = 4
TICK_NS = 5_000_000
OBSERVED = {
    # channel: its counts a second while it warms up, and while it is timed, of trial 1; more later
    ("rank.user", "s", "rank:0"): (0.9e9, 0.5e9),
    ("rank.system", "s", "rank:0"): (0.2e9, 0.1e9),
    ("rank.user", "s", "rank:1"): (0.9e9, 0.7e9),
    ("rank.system", "s", "rank:1"): (0.2e9, 0.2e9),
    ("disk.busy", "s", "disk:vda"): (0.9e9, 0.25e9),
    ("disk.busy", "s", "disk:vdb"): (0.1e9, 0.125e9),
    ("energy", "J", "node0/package-0"): (200e9, 90e9),
    ("energy", "J", "node0/core-0"): (100e9, 80e9),  # which the package counts already
}
GAUGED = {
    # channel of a GPU: percent while it warms up, and while it is timed, of trial 1; more later
    ("gpu.utilisation", "gpu:a"): (10, 40),
    ("gpu.memory-busy", "gpu:a"): (5, 20),
    ("gpu.utilisation", "gpu:b"): (10, 60),
    ("gpu.memory-busy", "gpu:b"): (5, 30),
}


def observe(trial: Path, number: int) -> None:
    """Let counters grow in one way until steps are timed, and in another while they are."""
    files = [file.read_text("utf-8").splitlines() for file in trial.glob("events.*.jsonl")]
    windows = [one for file in files for one in map(json.loads, file) if one["event"] == "window"]
    timed = min(one["start"] for one in windows if one["phase"] == "measure")
    begin, end = min(one["start"] for one in windows), max(one["end"] for one in windows)
    channels = tuple(
        Channel(name, unit, "counter", scope, scale=1e-9) for name, unit, scope in OBSERVED
    )
    channels += tuple(Channel(name, "share", "gauge", scope, 0.01) for name, scope in GAUGED)
    data = samples_format.header(node="node0")
    data += samples_format.note("begins", cpus={"0": [0, 1], "1": [2, 3]})
    data += samples_format.declare(Declared(0, "made up", TICK_NS, begin, channels))
    times = sorted({*range(begin, end + TICK_NS, TICK_NS), timed, end})
    for tick, at in enumerate(times):
        before, after = min(at, timed) - begin, max(at, timed) - timed
        raw = [
            round((slow * before + fast * (1 + number / 20) * after) / 1e9)
            for slow, fast in OBSERVED.values()
        ]
        raw += [slow if at < timed else fast + number for slow, fast in GAUGED.values()]
        data += samples_format.sample(0, tick, at, at, raw)
    (trial / "samples.node0.bin").write_bytes(data)


def test_what_hardware_did_follows_from_raw_samples(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    for trial in run.glob("cells/*/trial-*"):
        observe(trial, int(trial.name.partition("-")[2]))
    seal_all(run)
    told = answers(run)
    rates = (
        "WITH timed AS (SELECT cell_key, trial, min(start_ns) AS begins, max(end_ns) AS ends "
        "FROM windows WHERE phase = 'measure' GROUP BY ALL), "
        "grown AS (SELECT cell_key, trial, scope, channel, "
        "(max(value) - min(value)) / (max(t_ns) - min(t_ns)) * 1e9 AS rate "
        "FROM samples JOIN timed USING (cell_key, trial) WHERE t_ns BETWEEN begins AND ends "
        "GROUP BY ALL), mine AS (SELECT grown.* FROM grown JOIN cells USING (cell_key) "
        "WHERE json_extract(factors, '$.ranks_per_node') = 2) "
    )
    busy = queried(
        run,
        f"{rates} SELECT trial, 100 * sum(rate) / {CORES} FROM mine "
        "WHERE channel IN ('rank.user', 'rank.system') GROUP BY trial",
    )
    assert len(busy) == TRIALS
    assert told["utilisation"].value == pytest.approx(middle(busy), rel=1e-4)
    assert told["utilisation"].value == pytest.approx(100 * 1.5 * 1.1 / CORES, rel=1e-4)
    disks = queried(
        run,
        f"{rates} SELECT trial, 100 * max(rate) FROM mine WHERE channel = 'disk.busy' "
        "GROUP BY trial",
    )
    assert told["disk"].value == pytest.approx(middle(disks), rel=1e-4)
    energy = queried(
        run,
        f"{rates} SELECT mine.trial, mine.rate / trials.rate FROM mine "
        "JOIN trials USING (cell_key, trial) WHERE scope LIKE '%package%' AND counted",
    )
    assert told["energy"].value == pytest.approx(middle(energy), rel=1e-4)


@pytest.mark.parametrize(
    ("measure", "channel", "percent"),
    [("utilisation", "gpu.utilisation", 52.0), ("memory", "gpu.memory-busy", 27.0)],
)
def test_what_gpus_did_follows_from_raw_samples(
    tmp_path: Path, measure: str, channel: str, percent: float
) -> None:
    run = run_of(tmp_path, device="gpu")
    for trial in run.glob("cells/*/trial-*"):
        observe(trial, int(trial.name.partition("-")[2]))
    seal_all(run)
    gauged = queried(
        run,
        "SELECT samples.trial, 100 * avg(value) FROM samples JOIN cells USING (cell_key) "
        "JOIN (SELECT cell_key, trial, min(start_ns) AS begins, max(end_ns) AS ends FROM windows "
        "WHERE phase = 'measure' GROUP BY ALL) AS timed USING (cell_key, trial) "
        "WHERE json_extract(factors, '$.ranks_per_node') = 2 AND t_ns BETWEEN begins AND ends "
        f"AND channel = '{channel}' GROUP BY samples.trial",
    )
    assert len(gauged) == TRIALS
    assert answers(run)[measure].value == pytest.approx(middle(gauged)) == percent


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
    def losses(change: float, seeds: tuple[int, ...] = (1, 2)) -> str:
        folder = tmp_path / f"{change} {seeds}"
        cells = [
            RecordedCell(factors={"reader": reader, "cell_seed": seed})
            for reader, own in (("pread", seeds), ("async-thread", (1, 2)))
            for seed in own
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
    assert "they agree, 0.0500 apart where 2 seeds alone are 0.100 apart" in losses(0.05, (1,))
    assert "they DIFFER, 0.300 apart where 2 seeds alone" in losses(0.3, (1,))


def test_every_measure_that_a_study_may_name_is_computed() -> None:
    assert set(Measured.__args__) == set(MEASURES)
    assert {name for name, one in MEASURES.items() if one.needs_over} == set(NEED_OVER)
