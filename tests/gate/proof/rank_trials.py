"""Run whole trials of ranks that train together, as trials are run, and judge them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from harness.environments import worker_python
from harness.gate.jobs import Examiner
from harness.gate.proof import judging, request
from harness.gate.proof.judging import Proved
from harness.gate.tensors import folders
from harness.plan.norm_parts import norm_parts
from harness.platform.platform import load_platform
from harness.store.contained import Contained
from harness.store.outcome import Ended
from harness.study.framework import framework_info
from harness.worker.job import Job, Span
from harness.worker.scale import Scale
from tests.gate.conftest import Change, changed
from tests.needs import compiled, framework

PLATFORM = load_platform("local")
interpreter = cache(lambda environment: worker_python.resolve(environment, PLATFORM))


class RankTrials:
    """Runs trials of several ranks, from payloads that tests may change."""

    def __init__(self, examiner: Examiner, fresh: Callable[[str], Path]) -> None:
        self._examiner = examiner
        self._fresh = fresh
        self._given: dict[tuple[str, int, int, int], Path] = {}

    def prove(
        self,
        name: str,
        strategy: str,
        network: ModuleType,
        changes: Mapping[str, Change] | None = None,
        *,
        scale: Scale,
        precision: str = "fp32",
        seed: int = 1,
    ) -> Proved:
        """Run a trial and judge its updates."""
        own = framework_info(name).strategy(strategy)
        parts = norm_parts(network.WORKLOAD, scale.devices, sync_batch_norm=own.sync_batch_norm)
        start = self._start(network, scale.batch_per_step, seed, parts, scale.devices)
        place, environment = self._fresh("ranks"), name
        if own.environment is None:
            framework(name)
        else:
            environment = f"{name}@{own.environment}"
            compiled(environment)
        source = place / "payload"
        changed(source, changes or {}, network)
        job = Job(
            purpose="trial",
            cell_key="proved",
            trial="trial-1",
            workload="gated",
            workload_module="workloads.gated",
            framework=name,
            adapter_module=framework_info(name).module,
            environment=environment,
            strategy=strategy,
            scale=scale,
            factors={"device": "cpu", "precision": precision, "layout": "default", "threads": 1},
            options={},
            warmup=Span(steps=3),
            until=Span(steps=8),
            seed=seed,
            directory="",
            paths={"proof": str(start), "proved": str(place / "proved")},
        )
        judged = self._examiner.go(job, interpreter(environment), source, 240.0)
        assert judged.ended is Ended.OK, f"{judged.reason}\n{self._examiner.log()}"
        asked, files = folders.open_folder(start), Contained(place)
        made, *further = [
            folders.open_made(files, place / "proved" / (str(number) if number else ""))
            for number in range(scale.devices)
        ]
        called = "rank" if scale.devices_per_rank == 1 else "device"
        return judging.judge(
            network.WORKLOAD, precision, asked, made, further=further, called=called
        )

    def _start(self, network: ModuleType, batch: int, seed: int, parts: int, shares: int) -> Path:
        key = (network.__name__, batch, seed, parts, shares)
        if key not in self._given:
            place = self._fresh("given")
            request.write_given(network.WORKLOAD, batch, seed, place, parts=parts, shares=shares)
            self._given[key] = place
        return self._given[key]
