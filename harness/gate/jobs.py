"""Run untimed jobs of workers, one at a time, through the agent as trials are run.

So an examination that hangs is ended, one that forks leaves nothing behind, and its interpreter,
environment and payload are exactly those of the cell's trials, but for how idle threads wait: no
result depends on that, and spinning on a busy machine took three quarters of torch's CPU seconds.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.environments.worker_python import Interpreter
from harness.gate.processes import separate_process
from harness.launch.contract import Worker
from harness.launch.placement import lay_out
from harness.plan.cell import Cell
from harness.platform.platform import Platform
from harness.platform.starting import Observer
from harness.ranks.commands import Assignment, carry_out
from harness.ranks.failure_reasons import Judgement
from harness.ranks.interrupts import Interrupts
from harness.ranks.nodes import Nodes
from harness.ranks.rank_environment import environment
from harness.store.layout import TrialPaths
from harness.study.framework import framework_info
from harness.study.matrix import adapter_of
from harness.worker import job as jobs
from harness.worker.job import Job, Span
from harness.worker.scale import Scale

_ALONE: Mapping[str, Any] = {
    "strategy": "none",
    "input": "synthetic",
}
"""One rank stands for all: a strategy changes who adds gradients, not what a layer computes.

What a strategy does change is examined apart (``ranks.py``)."""

# What decides how a layer is lowered; threads, batches and the like do not.
_LOWERING = ("device", "layout", "onednn", "deterministic", "compile", "attention", "recompute")
_TIMED = (*_LOWERING, "precision")
_MICRO_BATCHES = 2
"""Two tell what more would: an examined batch has two samples where no batch norm couples them.
The proof in a trial takes as many as were timed."""
_WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Unless the platform or the user says otherwise."""

Go = Callable[[Job], Judgement]
"""Run one job to its end."""

_PRINTED = ("starter.err", "rank.*.err", "rank.*.out", "starter.out")


class Examiner:
    """One agent for all examinations; a context, because the agent has to be ended."""

    def __init__(self, platform: Platform, scratch: Path) -> None:
        # Nothing is timed here: no core is kept for the observer, and ranks may share theirs.
        binding = platform.binding.model_copy(update={"oversubscribe": True})
        self._platform = platform.model_copy(
            update={"observer": Observer(cores=0), "binding": binding}
        )
        self._scratch = scratch
        self._interrupts = Interrupts()
        self._installed = self._interrupts.installed()
        self._nodes = Nodes(self._platform, scratch / "agent.err")
        self._count = 0
        self._last: TrialPaths | None = None

    def __enter__(self) -> Examiner:
        self._installed.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._nodes.close()
        self._installed.__exit__(kind, fault, trace)
        if fault is None and self._interrupts.count:  # after the last job, while it was judged
            raise SystemExit(self._interrupts.exit_code)

    def compute(self, function: Callable[..., object], *given: Any) -> None:
        """Call a function in a process of its own; SIGINT or SIGTERM ends it and this process."""
        separate_process.call(self._interrupts, function, *given)

    def go(self, job: Job, interpreter: Interpreter, payload: Path, timeout_s: float) -> Judgement:
        """Run one job to its end; SIGINT or SIGTERM ends it and this process."""
        self._count += 1
        trial = TrialPaths(self._scratch / f"job-{self._count}")
        trial.root.mkdir()
        self._last = trial
        job = replace(job, directory=str(trial.root))
        trial.job.write_text(jobs.text(job), encoding="utf-8")
        own = framework_info(adapter_of(job.framework)).rank_variables(job.strategy, job.factors)
        token = f"door-{secrets.token_hex(8)}"
        caches = self._scratch / "caches"
        caches.mkdir(exist_ok=True)  # a container can be given only what is there
        variables = environment(interpreter.env, caches, own.caches, allocator=None)
        worker = Worker(
            argv=interpreter.argv,
            env={**_WAITING, **variables},
            payload=str(payload),
            token=token,
            nodes=self._nodes.gather(1, job.scale.ranks_per_node),
        )
        launch = lay_out(str(trial.job), job, self._platform, worker)
        _, judged = carry_out(
            Assignment(trial, worker, launch, timeout_s),
            self._nodes,
            interrupts=self._interrupts,
            on_tick=lambda: None,
        )
        if self._interrupts.count:
            raise SystemExit(self._interrupts.exit_code)
        return replace(judged, reason=self._without_place(judged.reason))

    def _without_place(self, reason: str) -> str:
        """Take out where a log lies that is removed with this folder; what it says is kept."""
        return re.sub(rf"\s*Log: {re.escape(str(self._scratch))}/\S+", "", reason)

    def log(self) -> str:
        """Give what the ranks of the last job printed."""
        if self._last is None:
            return ""
        files = (file for pattern in _PRINTED for file in sorted(self._last.root.glob(pattern)))
        printed = ((file.name, file.read_text("utf-8", errors="replace")) for file in files)
        return "".join(f"== {name}\n{text}\n" for name, text in printed if text)


def examination_job(
    cell: Cell, purpose: str, factors: Mapping[str, Any], paths: Mapping[str, Path]
) -> Job:
    """Make an untimed job of a cell, such as an examination: one rank alone."""
    return Job(
        purpose=purpose,
        cell_key=cell.key,
        trial=purpose,
        workload=cell.workload,
        workload_module=cell.workload_module,
        framework=cell.framework,
        adapter_module=cell.adapter_module,
        environment=cell.environment,
        strategy="none",
        scale=Scale(),
        factors={**cell.other_factors, **_ALONE, **factors},
        options=dict(cell.options),
        warmup=Span(steps=1),
        until=Span(steps=1),
        seed=0,
        directory="",
        paths={name: str(path) for name, path in paths.items()},
    )


def examined_factors(cell: Cell, precision: str | None) -> dict[str, Any]:
    """Choose the factors that matter; in float64 no precision does."""
    chosen = {name: cell.factors.get(name) for name in (*_LOWERING, *_TIMED)}
    if precision is None:
        info = framework_info(cell.adapter)
        chosen |= {name: info.default(name) for name in _TIMED if name not in _LOWERING}
    if cell.factors.get("accumulate", 1) not in (None, 1):
        chosen["accumulate"] = _MICRO_BATCHES
    return chosen | {"threads": None, "interop_threads": None, "allocator": None}
