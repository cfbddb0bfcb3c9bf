"""Measure what a machine can do at most, as ordinary runs, and put it into its profile.

Each session is a study of workloads of kind ``ceiling``; each memory, which needs ranks to start
otherwise, gets a session of its own. A ceiling is the median over trials that nothing
disturbed; where every trial was disturbed, it is the best one, and its source says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from harness import units
from harness.analysis.results import Results
from harness.errors import UsageError
from harness.platform.hardware import FAST
from harness.platform.platform import Platform
from harness.store.outcome import Ended
from harness.study.study import Study, built_study
from harness.verdicts.results import CellResult, TrialResult

_PRECISIONS = {"cpu": ("fp32", "bf16"), "gpu": ("fp32", "tf32", "bf16", "fp16")}
_COMPUTE = ("gemm", "convolution")
_COPIES = ("copy-to-device", "copy-from-device")
_STORAGE = ("storage-read", "storage-write")
_NAMES = {
    "copy-to-device": "host-to-device",
    "copy-from-device": "device-to-host",
    "storage-read": "read",
    "storage-write": "write",
}


@dataclass(frozen=True)
class Session:
    """One study to run, on the platform as it has to be for it."""

    name: str
    study: Study
    platform: Platform
    suffix: str = ""
    """What tells this session's ceilings from others': the device, a memory's kind."""


@dataclass(frozen=True)
class Measured:
    """One ceiling."""

    name: str
    value: float
    unit: str
    trials: int
    disturbed: str | None
    """What disturbed every trial; None: at least one was undisturbed."""
    kernel: str = ""
    """Which kernel reached it, where the name does not say."""

    def table(self, where: str) -> Mapping[str, str]:
        """Give it as a profile writes it."""
        key, text = ("compute", "FLOP/s") if self.unit == "FLOP/s" else ("bandwidth", "B/s")
        kernel = f"{self.kernel}: " if self.kernel else ""
        words = f"{kernel}{where}, {self.trials} trial{'s' * (self.trials != 1)}"
        if self.disturbed is not None:
            words += f"; the best of them, as all were {self.disturbed}: at least so much"
        return {key: units.scaled(self.value, text), "tag": "measured", "source": words}


def sessions(
    platform: Platform, *, framework: str, device: str, trials: int, until: str
) -> Iterator[Session]:
    """Plan what to run: kernels, then each memory of its own, then the storage tiers."""
    if platform.launcher.name != "local":
        raise UsageError(
            f"{platform.name} starts jobs through {platform.launcher.name}; a calibration runs on "
            "this machine.\n    Run it on a compute node, with a profile whose launcher is local."
        )

    def session(
        name: str,
        workloads: Sequence[str],
        there: Platform = platform,
        suffix: str = "",
        **factors: Sequence[str],
    ) -> Session:
        matrix = {"workload": workloads, "framework": framework, "device": device, **factors}
        measure = {"trials": trials, "warmup": "1 s", "until": until, "timeout": "10 min"}
        measure["turns"] = False  # a ceiling is what a machine can do at most, for one alone
        data = {"title": f"Ceilings: {name}", "matrix": matrix, "measure": measure}
        return Session(name, built_study(name, data), there, suffix)

    yield session("kernels", _COMPUTE, suffix=device, precision=_PRECISIONS[device])
    if device == "gpu":
        yield session("device", ("triad", *_COPIES), suffix="gpu", precision=("fp32",))
    else:
        for kind, policy in _memories(platform):
            bound = platform.binding.model_copy(update={"memory": policy})
            there = platform.model_copy(update={"binding": bound})
            yield session(f"memory-{kind}", ("triad",), there, kind, precision=("fp32",))
    if platform.storage and device == "cpu":
        tiers = tuple(platform.storage)
        yield session("storage", _STORAGE, precision=("fp32",), tier=tiers)


def measured(results: Results, session: Session) -> list[Measured]:
    """Read a session's ceilings from its results."""
    found = []
    for cell in results.cells:
        trials = [one for one in cell.trials if one.outcome == Ended.OK and one.rate is not None]
        if not trials:
            continue
        quiet = [one.rate for one in trials if one.counted and one.rate is not None]
        value = median(quiet) if quiet else max(one.rate or 0.0 for one in trials)
        words = None if quiet else _disturbances(trials)
        count = len(quiet) if quiet else len(trials)
        found.append(Measured(_name(cell, session), value, f"{cell.unit}/s", count, words))
    return found


def with_ceilings(text: str, ceilings: Mapping[str, Mapping[str, str]]) -> str:
    """Put ceilings into a profile's text: those of the same names are replaced, the rest stays."""
    for name in ceilings:
        table = rf'^\[ceilings\.(?:{re.escape(name)}|"{re.escape(name)}")\]\n(?:(?!\[).*\n?)*'
        text = re.sub(table, "", text, flags=re.MULTILINE)
    parts = [text.rstrip() + "\n"]
    for name, table_of in ceilings.items():
        lines = "".join(f'{key} = "{value}"\n' for key, value in table_of.items())
        parts.append(f"\n[ceilings.{name}]\n{lines}")
    return "".join(parts)


def _memories(platform: Platform) -> Iterator[tuple[str, str]]:
    """Name each memory that ranks can be bound to, and the policy that does it."""
    kinds = [tier.kind for tier in platform.node.memory if tier.mode != "cache"]
    slow = [kind for kind in kinds if kind not in FAST] or ["DDR"]
    fast = [kind for kind in kinds if kind in FAST]
    yield slow[0], "local" if fast else platform.binding.memory
    for kind in fast:
        yield kind, "fast-only"


def peaks(found: Iterable[Measured]) -> list[Measured]:
    """Give the most that was computed at each precision: cpu-fp32, gpu-bf16 …, by any kernel."""
    best: dict[str, Measured] = {}
    for one in found:
        device, _, rest = one.name.partition("-")
        kernel, _, precision = rest.partition("-")
        if kernel not in _COMPUTE:
            continue
        name = f"{device}-{precision}"
        if name not in best or one.value > best[name].value:
            best[name] = replace(one, name=name, kernel=kernel)
    return list(best.values())


def _name(cell: CellResult, session: Session) -> str:
    """Name a ceiling: cpu-gemm-bf16, memory-MCDRAM, gpu-memory, read-scratch, host-to-device."""
    name = _NAMES.get(cell.workload, cell.workload)
    if cell.workload in _COPIES:
        return name
    if cell.workload in _COMPUTE:
        return f"{session.suffix}-{name}-{cell.factors['precision']}"
    if cell.workload == "triad":
        return "gpu-memory" if session.suffix == "gpu" else f"memory-{session.suffix}"
    return f"{name}-{cell.factors['tier']}"


def _disturbances(trials: Iterable[TrialResult]) -> str:
    words = {one.verdict for one in trials if one.verdict is not None}
    return " or ".join(sorted(words)) or "disturbed"
