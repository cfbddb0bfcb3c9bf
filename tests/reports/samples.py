"""Build Results by hand, of any size, the same each time."""

from __future__ import annotations

import dataclasses
import math
import random
import statistics

from harness.analysis.between_runs.run_comparison import Pair, Versus
from harness.analysis.evidence import Channel, Evidence, Mark, Recordings, Timeline
from harness.analysis.results import Results
from harness.stats.between_runs.unpaired import Change
from harness.store.records import Gate, Hole, RunInfo
from harness.verdicts.io_results import CheckpointResult, InputResult
from harness.verdicts.results import (
    CellResult,
    Comparison,
    Contradiction,
    Estimate,
    Interval,
    Reading,
    TrialResult,
    WhatRan,
)
from harness.worker.scale import Scale

START_NS = 1_763_700_000_000_000_000
MEANING = "smallest and largest of 6 trials"


def interval(low: float, high: float, meaning: str = MEANING) -> Interval:
    return Interval(low, high, 0.969, meaning)


def trial(run: str, key: str, block: int, rate: float | None, **changes: object) -> TrialResult:
    made = TrialResult(
        run=run,
        cell_key=key,
        block=block,
        attempt=1,
        outcome="ok",
        reason="",
        origin="measured",
        verdict="valid",
        evidence=(),
        counted=True,
        rate=rate,
        p50_s=16 / rate if rate else None,
        p95_s=17 / rate if rate else None,
        p99_s=18.5 / rate if rate else None,
        steps_per_window=1,
        steady_from=3,
        windows=40,
        first_step_s=1.4,
        peak_rss_bytes=900 * 2**20,
        peak_device_bytes=None,
        started_wall_ns=START_NS + block * 60_000_000_000,
        directory=f"runs/{run}/cells/{key}/trial-{block}",
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def comparison(
    reference: str, ratio: float, answer: str, spread: float = 0.015, more: int | None = None
) -> Comparison:
    between = None if answer == "reference" else interval(ratio - spread, ratio + spread, "joint")
    return Comparison(
        reference_key=reference,
        ratio=1.0 if answer == "reference" else ratio,
        interval=between,
        answer=answer,
        blocks=6,
        more_blocks=more,
        why="the whole interval is within 3 % of 1" if answer == "same" else "joint, 6 blocks",
    )


def cell(
    workload: str,
    framework: str,
    precision: str,
    rate: float,
    compared: Comparison | None,
    *,
    run: str = "quickstart-2026-11-21",
    batch: int = 16,
    noise: float = 0.02,
    gate: str = "equivalent",
    unit: str = "images/s",
    **changes: object,
) -> CellResult:
    key = f"{workload[:3]}{framework[:2]}{precision}{batch}"
    draw = random.Random(f"{key}{run}")
    trials = tuple(
        trial(run, key, block, rate * (1 + draw.gauss(0, noise))) for block in range(1, 7)
    )
    rates = [t.rate for t in trials if t.rate]
    made = CellResult(
        run=run,
        key=key,
        label=f"{workload} · {framework} · {precision}",
        workload=workload,
        framework=framework,
        strategy="none",
        factors={"precision": precision, "batch": batch, "device": "cpu", "nodes": 1},
        scale=Scale(batch_per_device=batch),
        platform="local",
        unit=unit,
        rate=Estimate(statistics.median(rates), unit, 6, interval(min(rates), max(rates))),
        comparison=compared,
        trials=trials,
        epoch_s=Estimate(1_281_167 / rate, "s", 6, None),
        parameters=61_100_840 if workload == "alexnet" else 16_186,
        macs=714_188_480 if workload == "alexnet" else 5_160_000,
        gate=Gate(gate, "float64, 4e-14" if gate == "equivalent" else ""),
        utilisation={},
        versions={framework: {"torch": "2.13.0", "jax": "0.10.2"}.get(framework, "1.0")},
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def run_info(name: str = "quickstart-2026-11-21", title: str = "This machine") -> RunInfo:
    return RunInfo(
        name=name,
        directory=f"runs/{name}",
        title="Quick start",
        started_wall_ns=START_NS,
        platform={"name": "local", "title": title, "cpu": {"model": "AMD EPYC", "cores": 2}},
        provenance={
            "command": ["/home/somebody/src/bakeoff/.venv/bin/bakeoff", "run", "quickstart"],
            "machine": {
                "cpu_model": "AMD EPYC",
                "cores": 2,
                "kernel": "6.1.0",
                "memory_bytes": 25_769_803_776,
                "gpus": [],
            },
            "software": {"bakeoff": "0.1.0", "python": "3.11.2"},
            "git": {"commit": "4f1c9e0", "dirty": False},
        },
        measure={"trials": 6, "warmup": "3 s", "until": "5 s"},
        environments={"torch": {"interpreter": "3.11.2", "torch": "2.13.0"}},
        seed=2026,
    )


def demo() -> Results:
    """A study of two workloads, two frameworks, two precisions."""
    ref = comparison("aletofp3216", 1.0, "reference")
    cells = [
        cell("alexnet", "torch", "bf16", 31.9, comparison("", 1.02, "cannot tell", 0.035, 4)),
        cell("alexnet", "torch", "fp32", 31.2, ref, noise=0.006),
        cell("alexnet", "jax", "fp32", 25.1, comparison("", 0.80, "slower"), noise=0.008),
        cell("alexnet", "jax", "bf16", 17.6, comparison("", 0.56, "slower"), noise=0.009),
        cell("tinycnn", "torch", "fp32", 5210.0, ref, noise=0.012),
        cell("tinycnn", "torch", "bf16", 5100.0, comparison("", 0.985, "same", 0.012)),
        cell("tinycnn", "jax", "fp32", 3977.0, comparison("", 0.77, "slower"), gate="not checked"),
    ]
    first = cells[2]
    disturbed = dataclasses.replace(
        first.trials[3],
        counted=False,
        verdict="contended",
        rate=21.0,
        evidence=("another process used 0.9 cores for 3 s",),
    )
    again = dataclasses.replace(first.trials[3], attempt=2)
    cells[2] = dataclasses.replace(
        first, trials=(*first.trials[:3], disturbed, again, *first.trials[4:])
    )
    return Results(
        title="Quick start",
        question="",
        runs=(run_info(),),
        cells=tuple(cells),
        holes=(Hole("tinycnn · jax · bf16", "jax has no bf16 convolution on this CPU"),),
        varied=("workload", "framework", "precision"),
        warnings=("The worker shares a core with the observer: 2 cores are all there are.",),
    )


def big(cells: int, trials: int = 6) -> Results:
    """A study of very many cells in one workload."""
    reference = comparison("", 1.0, "reference")
    made = []
    for index in range(cells):
        compared = reference if index == 0 else comparison("", 1 - index / (2 * cells), "slower")
        rate, batch = 100 - index * 0.05, index + 1
        one = cell("resnet50", f"fw{index % 6}", "fp32", rate, compared, batch=batch)
        made.append(dataclasses.replace(one, trials=one.trials[:trials]))
    return dataclasses.replace(
        demo(), cells=tuple(made), varied=("framework", "batch"), warnings=(), holes=()
    )


def factorial(
    frameworks: int = 3, batches: int = 5, threads: int = 6, noise: float = 0.02
) -> Results:
    """A study of four factors: bf16 is far faster, but in fw2, and more threads help a little."""
    draw = random.Random(7)
    cells = []
    for name in (f"fw{index}" for index in range(frameworks)):
        for precision in ("fp32", "bf16"):
            for batch in (2**index for index in range(3, 3 + batches)):
                for count in range(1, threads + 1):
                    speed = 100.0 * (1.0 if name == "fw0" else 0.96) * (1 + 0.05 * (count - 1))
                    speed *= {"fp32": 1.0, "bf16": 3.0 if name == "fw2" else 7.9}[precision]
                    is_first = (name, precision, batch, count) == ("fw0", "fp32", 8, 1)
                    told = comparison("", 1.0, "reference") if is_first else None
                    one = cell("resnet50", name, precision, speed, told, batch=batch)
                    key = f"{name}{precision}{batch}x{count}"
                    trials = tuple(
                        dataclasses.replace(
                            t, cell_key=key, rate=speed * (1 + draw.gauss(0, noise))
                        )
                        for t in one.trials
                    )
                    rates = [t.rate for t in trials if t.rate]
                    rate = Estimate(
                        statistics.geometric_mean(rates),
                        one.unit,
                        6,
                        interval(min(rates), max(rates)),
                    )
                    if told is None:
                        ratio = speed / 100
                        answer = "faster" if ratio > 1.02 else "slower" if ratio < 0.98 else "same"
                        told = comparison("", ratio, answer)
                    cells.append(
                        dataclasses.replace(
                            one,
                            key=key,
                            rate=rate,
                            comparison=told,
                            trials=trials,
                            factors={**one.factors, "threads": count},
                        )
                    )
    cells.sort(key=lambda one: -(one.rate.value if one.rate else 0))
    varied = ("framework", "precision", "batch", "threads")
    return dataclasses.replace(demo(), cells=tuple(cells), varied=varied, warnings=(), holes=())


def two_runs() -> Results:
    """The same study on two machines."""
    here = demo()
    name = "quickstart-minna"
    there = tuple(
        dataclasses.replace(
            c,
            run=name,
            rate=Estimate(
                c.rate.value * 2.4, c.unit, 6, interval(c.rate.value * 2.3, c.rate.value * 2.5)
            )
            if c.rate
            else None,
            trials=tuple(
                dataclasses.replace(t, run=name, rate=t.rate * 2.4 if t.rate else None)
                for t in c.trials
            ),
        )
        for c in here.cells
        if c.workload == "alexnet"
    )
    return dataclasses.replace(
        here,
        runs=(here.runs[0], run_info(name, "minna, 2 × 28 cores")),
        cells=(*(c for c in here.cells if c.workload == "alexnet"), *there),
        holes=(),
        warnings=(),
    )


def failures() -> Results:
    """One cell computes something else, one never ended, one is alone with three trials."""
    here = demo()
    cells = list(here.cells[:4])
    cells[0] = dataclasses.replace(cells[0], gate=Gate("differs", "logits differ by 3e-2"))
    failed = tuple(
        dataclasses.replace(
            t,
            outcome="out-of-memory",
            reason="out of memory in your cgroup, limit 64 GiB, peak 63.9",
            verdict=None,
            rate=None,
            p50_s=None,
            p95_s=None,
            p99_s=None,
            counted=False,
        )
        for t in cells[3].trials
    )
    cells[3] = dataclasses.replace(
        cells[3], rate=None, comparison=None, epoch_s=None, trials=failed
    )
    return dataclasses.replace(here, cells=tuple(cells))


def many_failures() -> Results:
    """A large study of which some cells failed."""
    return with_failures(factorial())


def with_failures(here: Results) -> Results:
    """Let fw1's largest batches time out, and fw2's run out of memory in fp32."""
    kinds = {
        "fw1": ("timed-out", "no end after 30 min", "bf16"),
        "fw2": ("out-of-memory", "out of memory in your cgroup, limit 64 GiB, peak 63.9", "fp32"),
    }
    cells = []
    for one in here.cells:
        outcome, reason, precision = kinds.get(one.framework, ("ok", "", ""))
        if one.factors["batch"] == 128 and one.factors["precision"] == precision:
            trials = tuple(
                dataclasses.replace(
                    t, outcome=outcome, reason=reason, verdict=None, rate=None, counted=False
                )
                for t in one.trials
            )
            one = dataclasses.replace(one, rate=None, comparison=None, epoch_s=None, trials=trials)
        cells.append(one)
    return dataclasses.replace(here, cells=tuple(cells))


HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m"


def hostile() -> Results:
    """Every name and text is an attack."""
    here = demo()
    cells = tuple(
        dataclasses.replace(
            c,
            label=HOSTILE,
            workload=HOSTILE,
            framework=HOSTILE + c.framework,
            run=HOSTILE,
            unit=HOSTILE,
            gate=Gate("differs" if c.framework == "jax" else "not checked", HOSTILE),
            factors={**c.factors, "precision": HOSTILE},
            versions={HOSTILE: HOSTILE},
            trials=tuple(
                dataclasses.replace(
                    t, reason=HOSTILE, evidence=(HOSTILE,), counted=False, run=HOSTILE
                )
                for t in c.trials
            ),
        )
        for c in here.cells[:4]
    )
    run = dataclasses.replace(
        here.runs[0],
        name=HOSTILE,
        title=HOSTILE,
        directory=HOSTILE,
        platform={"name": HOSTILE, HOSTILE: HOSTILE},
        provenance={"host": HOSTILE},
    )
    return dataclasses.replace(
        here,
        title=HOSTILE,
        question=HOSTILE,
        runs=(run,),
        cells=cells,
        holes=(Hole(HOSTILE, HOSTILE),),
        warnings=(HOSTILE,),
    )


def scaled() -> Results:
    """One to eight devices under two strategies."""
    cells = []
    for strategy, loss in (("ddp", 0.04), ("horovod", 0.09)):
        for devices in (1, 2, 4, 8):
            rate = 400 * devices * (1 - loss) ** (devices.bit_length() - 1)
            one = cell("resnet50", "torch", "bf16", rate, None, noise=0.01)
            name = strategy if devices > 1 else "none"
            if devices == 1 and strategy == "horovod":
                continue
            cells.append(
                dataclasses.replace(
                    one,
                    key=f"{one.key}{strategy}{devices}",
                    strategy=name,
                    factors={**one.factors, "strategy": name, "nodes": devices},
                    scale=dataclasses.replace(one.scale, nodes=devices),
                )
            )
    return dataclasses.replace(
        demo(), cells=tuple(cells), varied=("strategy", "nodes"), warnings=(), holes=()
    )


def timeline(
    devices: int = 8, seconds: float = 60.0, rate_hz: float = 10.0, *, whole: bool = True
) -> Timeline:
    """GPUs that start, train in waves, and are not read for a while; in whole per cents or not."""
    draw = random.Random(devices)
    count = round(seconds * rate_hz)
    channels = []
    for index in range(devices):
        times = [i / rate_hz for i in range(count)]
        values = [
            0.0
            if t < 0.1 * seconds
            else min(100.0, max(0.0, 90 + 8 * math.sin(t + index) + draw.gauss(0, 3)))
            for t in times
        ]
        values = [float(round(value)) if whole else value for value in values]
        gap = ((0.4 * seconds, 0.5 * seconds),) if index == 2 else ()
        channels.append(Channel(f"node{index // 4} gpu{index % 4}", times, values, gap))
    return Timeline(
        title="GPU utilisation",
        unit="%",
        low=0.0,
        high=100.0,
        channels=tuple(channels),
        interval_s=1 / rate_hz,
        marks=(
            Mark("start-up", 0.0, 0.1 * seconds),
            Mark("warm-up", 0.1 * seconds, 0.2 * seconds),
            Mark("steady", 0.2 * seconds, seconds),
            *(Mark("step", s, s, "step") for s in range(0, int(seconds), 5)),
        ),
        clock_bound_s=0.002,
        source="Share of the last second in which any kernel ran.",
    )


def versus() -> Versus:
    """The second of two runs against the first: one clear change, one doubt, one hole."""
    both = two_runs()
    before = [c for c in both.cells if c.run == both.runs[0].name]
    after = [c for c in both.cells if c.run == both.runs[1].name]
    told = (
        Change(2.41, 2.30, 2.52, 0.95, 0.002, "faster", 6, 6, "relabelled"),
        Change(0.93, 0.91, 0.95, 0.95, 0.002, "slower", 6, 6, "relabelled"),
        Change(1.004, 0.99, 1.02, 0.95, 0.4, "same", 6, 6, "relabelled"),
        Change(1.03, 0.94, 1.12, 0.95, 0.3, "cannot tell", 6, 5, "relabelled"),
    )
    pairs = tuple(
        Pair(a.key, a.label, a.workload, a, b, change)
        for a, b, change in zip(before, after, told, strict=True)
    )
    return Versus(
        metric="rate",
        before=both.runs[0],
        after=both.runs[1],
        pairs=pairs,
        not_compared=(("tinycnn · torch · fp32", "only in the first run"),),
        differences=(("host.kernel", "6.1.0", "6.8.0"),),
        warnings=("The two runs were not measured together.",),
    )


SAVED = CheckpointResult(
    saver="torch.save",
    count=5,
    state_bytes=600_000_000,
    blocking_s=0.5,
    saved_s=0.5,
    durable_s=8.0,
    restore_s=6.0,
    restore_bytes=600_000_100,
    restore_cache="cold",
    inflation=1.25,
    blocked_share=0.04,
)


def everything() -> Results:
    """A study that has something for every section: exchange, files, checkpoints, meters."""
    here = scaled()
    last = here.cells[3]
    apart = dataclasses.replace(
        last,
        key="apart",
        comparison=None,
        rate=last.rate
        and dataclasses.replace(last.rate, value=last.rate.value * 1.12, interval=None),
        factors={**last.factors, "communicate": False},
        trials=tuple(
            dataclasses.replace(one, rate=one.rate and one.rate * 1.12) for one in last.trials
        ),
    )
    saving = dataclasses.replace(
        here.cells[0],
        trials=tuple(dataclasses.replace(one, checkpoints=SAVED) for one in here.cells[0].trials),
    )
    platform = {
        **here.runs[0].platform,
        "ceilings": {
            "cpu-bf16": {"compute": 19.5e12, "tag": "declared"},
            "memory-8-cores": {"bandwidth": 1.4e11, "tag": "measured"},
        },
    }
    metered = tuple(map(with_facts, map(with_power, (saving, *here.cells[1:]))))
    return dataclasses.replace(
        here,
        runs=(dataclasses.replace(here.runs[0], platform=platform),),
        cells=(*metered, apart, *reading()),
        varied=("workload", "strategy", "nodes", "communicate", "reader"),
    )


def with_power(of: CellResult) -> CellResult:
    """Meter a cell's GPU and processors."""
    power = (
        Reading("vm", "gpu:0", "power, from its energy counter", "W", 281.0),
        Reading("vm", "rapl/package-0", "power", "W", 94.0),
    )
    return dataclasses.replace(of, unit="images", readings=power, utilisation={"power_w": 375.0})


def with_facts(of: CellResult) -> CellResult:
    """Say of a cell all that a framework can say of what it ran."""
    facts = {
        "computed": {"bfloat16": 0.91, "float32": 0.09},
        "computed_by": "convolutions and products of oneDNN, by the time that each took",
        "threads": 8,
        "interop_threads": 2,
        "busy_threads": 8 + len(of.strategy),
        "layout": "channels-last",
        "onednn_isa": "Intel AVX-512 with AVX512BW, AVX512VL, and AVX512DQ extensions",
        "onednn_primitives": {"convolution": 159.0, "inner_product": 3.0},
        "onednn_reorders": 12.0,
        "compiler": "inductor",
        "compiled_graphs": 1,
        "graph_breaks": 0,
        "fusions": 53,
        "deterministic": False,
        "variables": {
            "ATEN_CPU_CAPABILITY": "avx512",
            "OMP_NUM_THREADS": "8",
            "KMP_AFFINITY": "granularity=fine,compact,1,0",
        },
    }
    asked = Contradiction("bf16", "ran float32 kernels", "9 % of the time")
    ran = WhatRan(facts, "watched", 14.2, 11.8, (asked,) if of.strategy else ())
    return dataclasses.replace(of, ran=ran)


def reading() -> tuple[CellResult, ...]:
    """Two readers of the same files, the second with the format to parse."""
    files = {"format": "raw", "samples": 256, "cache": "cold", "batch": 32, "tier": "hdd"}
    told = InputResult(cache="cold", cold_fraction=1.0, bytes_per_s=1.5e6, busy_cores=1.9, cpus=2.0)
    made = []
    for reader, rate in (("pread", 2400.0), ("threads", 1300.0)):
        one = cell(
            "read-small-pictures", "null", "", rate, None, batch=32, unit="samples/s", noise=0
        )
        trials = tuple(dataclasses.replace(each, input=told) for each in one.trials)
        factors = {**files, "reader": reader, "reader_threads": 2}
        made.append(
            dataclasses.replace(
                one, key=reader, content="small-pictures", factors=factors, trials=trials
            )
        )
    return tuple(made)


def evidence() -> Evidence:
    """What is gathered beside the results: a timeline, and a question of a paper."""
    asked = {
        "question": "Do eight devices do more than one?",
        "paper": "7.1 times as much",
        "of": {"workload": "resnet50", "nodes": 8, "strategy": "ddp"},
        "over": {"workload": "resnet50", "nodes": 1},
    }
    return Evidence(
        recordings=Recordings(timelines=(timeline(),)),
        questions={run_info().name: (asked,)},
    )
