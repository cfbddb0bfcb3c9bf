"""This file makes the input's ladders and table: how fast files are read, and who is waited for.

A ladder's rungs read the same files from the same tier with the same caches: bytes alone, then the
file format parsed, then a loader, then the loader feeding a model. Of several settings on a rung
the fastest stands for it. The bottleneck follows from which rung loses most; within a tenth two
rungs are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from harness import providers
from harness.node.workload import Reading, Training
from harness.store.results import CellResult, InputResult, Results
from reports.evidence import Ladder, Rung
from reports.ranking import names
from reports.tables import Column, Table

BYTES, PARSED, LOADER, MODEL = range(4)
_RUNGS = ("bytes read", "file format parsed", "loader", "loader and model")
_SAME = 0.9
_NO_MODEL = 2
"""Rungs that a chain without a model needs at least to be a ladder."""
_BENEATH = "A hypervisor's or a disk's own cache is beyond sight: cold means cold to this kernel."


@dataclass(frozen=True)
class Fed:
    """A cell that waited for input, with the medians of its counted trials."""

    cell: CellResult
    content: str
    input: InputResult

    @property
    def rung(self) -> int:
        """Where it stands on a ladder."""
        if _is_training(self.cell):
            return MODEL
        reader = str(self.cell.factors.get("reader"))
        if reader in ("pread", "mmap", "direct"):
            return BYTES
        return PARSED if reader == "threads" and self.cell.framework == "null" else LOADER

    @property
    def cache(self) -> str:
        """What the caches held: proved, or for want of a whole epoch what was asked for."""
        if self.input.cache != "unknown":
            return self.input.cache
        return f"{self.cell.factors.get('cache')}, not proved"


def fed(results: Results) -> list[Fed]:
    """Give the cells that read files and have a rate."""
    found = []
    for cell in results.cells:
        told = [trial.input for trial in cell.trials if trial.counted and trial.input is not None]
        content = _content(cell.workload)
        if told and content and cell.rate is not None:
            found.append(Fed(cell, content, _joined(told)))
    return found


def ladders(results: Results) -> tuple[Ladder, ...]:
    """Build a ladder of each set of files, cold apart from warm."""
    groups: dict[tuple[str, ...], list[Fed]] = {}
    for one in fed(results):
        if one.cell.factors.get("compute", "none") == "none":
            factors = one.cell.factors
            key = [one.content, *(str(factors.get(k)) for k in ("format", "samples", "tier"))]
            groups.setdefault((one.cell.run, *key, one.cache), []).append(one)
    made = (_ladder(key, some, results) for key, some in groups.items())
    return tuple(one for one in made if len(one.rungs) >= _NO_MODEL)


def _ladder(key: tuple[str, ...], some: Sequence[Fed], results: Results) -> Ladder:
    _, content, form, samples, tier, cache = key
    where = "" if tier == "None" else f" on {tier}"
    best: dict[int, Fed] = {}
    for one in some:
        if one.rung not in best or _rate(one) > _rate(best[one.rung]):
            best[one.rung] = one
    rungs = tuple(
        Rung(f"{_RUNGS[rung]}: {_named(best[rung])}", rate, best[rung].input.cpu_s_per_gb)
        for rung in sorted(best)
        if (rate := best[rung].cell.rate) is not None
    )
    rates = {rung: _rate(one) for rung, one in best.items()}
    compute = _synthetic(best[MODEL].cell, results) if MODEL in best else None
    return Ladder(
        title=f"{samples} {content} in {form} files{where}",
        kind="input",
        state=cache,
        rungs=rungs,
        bottleneck=bottleneck(rates, compute, is_cold=cache == "cold"),
        source=_BENEATH,
    )


def bottleneck(rates: dict[int, float], compute: float | None, *, is_cold: bool) -> str:
    """Say what holds the top rung back; empty where the rungs cannot tell.

    ``compute`` is the model's rate with input that costs nothing.
    """
    top = max(rates)
    lower = [rung for rung in sorted(rates) if rung < top]
    if top == MODEL:
        if compute is not None and rates[MODEL] >= _SAME * compute:
            return "compute-bound"
        if not lower:
            return ""
        if rates[MODEL] < _SAME * min(rates[rung] for rung in lower):
            # alone each of them is faster than both together: they fight for the same cores
            return "CPU-bound" if compute is not None else ""
        top = lower.pop()
    if BYTES not in rates or top == BYTES or _SAME * rates[top] > rates[BYTES]:
        return ""  # nothing is faster than what it stands on: something disturbed that
    is_storage = is_cold and rates[top] >= _SAME * rates[BYTES]
    return "storage-bound" if is_storage else "CPU-bound"


def _rate(one: Fed) -> float:
    return 0.0 if one.cell.rate is None else one.cell.rate.value


def _named(one: Fed) -> str:
    factors = one.cell.factors
    words = [one.cell.framework] if one.rung >= LOADER else []
    words.append(str(factors.get("reader")))
    if (factors.get("reader_threads") or 1) > 1:
        words.append(f"× {factors['reader_threads']}")
    return " ".join(words)


def input_table(results: Results) -> Table:
    """Lay out what every cell read, where from, and how long was waited."""
    columns = (
        Column("cell", "cell", "name"),
        Column("cache", "caches, proved"),
        Column("cold", "from storage", "share"),
        Column("rate", "MB/s", "number"),
        Column("epoch", "epoch", "seconds"),
        Column("waited", "waited for input", "share"),
        Column("utilisation", "accelerator utilisation", "share"),
        Column("goodput", "goodput", "share"),
        Column("cpu", "CPU-s per GB", "number"),
        Column("calls", "reads per epoch", "count"),
        Column("call_bytes", "bytes per read", "bytes"),
    )
    rows, called = [], names(results)
    for one in fed(results):
        told = one.input
        rows.append(
            (
                called[one.cell.run, one.cell.key],
                one.cache,
                told.cold_fraction,
                None if told.bytes_per_s is None else told.bytes_per_s / 1e6,
                told.epoch_s,
                told.wait_share,
                _utilisation(one),
                goodput(one.cell, results),
                told.cpu_s_per_gb,
                None if told.calls_per_epoch is None else round(told.calls_per_epoch),
                told.bytes_per_call,
            )
        )
    return Table(
        "input", "What was read, where from, and how long was waited", columns, tuple(rows)
    )


def _utilisation(one: Fed) -> float | None:
    """Give the classic figure: time not spent waiting over all time; it flatters a busy CPU."""
    computes = _is_training(one.cell) or one.cell.factors.get("compute", "none") != "none"
    return 1 - one.input.wait_share if computes and one.input.wait_share is not None else None


def goodput(cell: CellResult, results: Results) -> float | None:
    """Give the time that computing takes undisturbed over the time that all of it took."""
    if cell.rate is None:
        return None
    if _is_training(cell):
        alone = _synthetic(cell, results)
        return None if alone is None else cell.rate.value / alone
    length_ms = cell.factors.get("compute_ms")
    if cell.factors.get("compute", "none") == "none" or not length_ms:
        return None
    ranks = int(cell.factors.get("nodes") or 1) * int(cell.factors.get("ranks_per_node") or 1)
    return float(length_ms) / 1e3 * cell.rate.value / (int(cell.factors["batch"]) * ranks)


_INPUT = frozenset(
    ("input", "format", "samples", "reader", "reader_threads", "prefetch", "buffers")
) | {"buffer_samples", "shuffle", "decode", "tier", "cache", "container"}


def _synthetic(cell: CellResult, results: Results) -> float | None:
    """Find the same training on batches that cost nothing, in the same run."""
    for other in results.cells:
        same = all(
            other.factors.get(name) == value
            for name, value in cell.factors.items()
            if name not in _INPUT
        )
        if (
            same
            and other.run == cell.run
            and other.workload == cell.workload
            and other.framework == cell.framework
            and other.factors.get("input") == "synthetic"
            and other.rate is not None
        ):
            return other.rate.value
    return None


def _joined(told: Sequence[InputResult]) -> InputResult:
    def middle(name: str) -> float | None:
        known = [value for one in told if (value := getattr(one, name)) is not None]
        return median(known) if known else None

    return InputResult(
        cache=told[0].cache,
        cold_fraction=middle("cold_fraction"),
        epochs=min(one.epochs for one in told),
        bytes_per_s=middle("bytes_per_s"),
        epoch_s=middle("epoch_s"),
        wait_share=middle("wait_share"),
        cpu_s_per_gb=middle("cpu_s_per_gb"),
        calls_per_epoch=middle("calls_per_epoch"),
        bytes_per_call=middle("bytes_per_call"),
    )


def _content(workload: str) -> str | None:
    value = _workload(workload)
    return value.content if isinstance(value, Reading | Training) and value.content else None


def _is_training(cell: CellResult) -> bool:
    return isinstance(_workload(cell.workload), Training)


def _workload(name: str) -> object:
    return providers.workload(name) if name in providers.workload_names() else None
