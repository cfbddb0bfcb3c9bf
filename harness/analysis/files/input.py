"""Summarise the cells that read files: what was read, where from, and how long was waited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from harness.analysis.files.bottleneck import BYTES, DECODED, LOADER, MODEL, PARSED
from harness.analysis.files.goodput import Goodput, computes, disturbed, goodput
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.verdicts.io_results import InputResult
from harness.verdicts.results import CellResult
from harness.worker.input.files import samples_of

_ONLY_NAMES = "open"
"""The reader that reads nothing of the files."""


@dataclass(frozen=True)
class FedCell:
    """A cell that waited for input, with the medians of its counted trials."""

    cell: CellResult
    input: InputResult

    @property
    def rung(self) -> int:
        """Where it stands on a ladder."""
        if computes(self.cell):
            return MODEL
        reader = str(self.cell.factors.get("reader"))
        if self.cell.factors.get("decode"):
            return DECODED
        if reader in ("pread", "mmap", "direct"):
            return BYTES
        is_ahead = bool(self.cell.factors.get("prefetch"))
        is_plain = reader == "threads" and self.cell.framework == "null" and not is_ahead
        return PARSED if is_plain else LOADER

    @property
    def rate(self) -> float:
        """How many samples a second it reads."""
        return 0.0 if self.cell.rate is None else self.cell.rate.value

    @property
    def threads(self) -> int:
        """How many threads or processes its loader has."""
        return self.cell.factors.get("reader_threads") or 1

    @property
    def busy(self) -> float | None:
        """Share of the processors that it could use which were busy; a loader has its threads."""
        if self.input.busy_cores is None or self.input.cpus is None:
            return None
        alone = self.input.cpus if self.rung == MODEL else min(self.input.cpus, self.threads)
        return min(1.0, self.input.busy_cores / alone)

    @property
    def disturbed(self) -> str:
        """What disturbed its counted trials, if anything did."""
        return disturbed(one for one in self.cell.trials if one.counted)

    @property
    def cache(self) -> str:
        """What the caches held: proved, or for want of a whole epoch what was asked for."""
        if self.input.cache != "unknown":
            return self.input.cache
        return f"{self.cell.factors.get('cache')}, not proved"


def fed_cells(results: Results) -> list[FedCell]:
    """Give the cells that read files and have a rate."""
    found = []
    for cell in results.cells:
        inputs = [trial.input for trial in cell.trials if trial.counted and trial.input is not None]
        reads = cell.content is not None and cell.factors.get("reader") != _ONLY_NAMES
        if inputs and reads and cell.rate is not None:
            found.append(FedCell(cell, _joined(inputs)))
    return found


def input_table(results: Results) -> Table:
    """Make the table of input: what each cell read, where from, and how long it waited."""
    columns = (
        Column("cell", "cell", "name"),
        Column("cache", "caches, proved"),
        Column("cold", "from storage", "share"),
        Column("rate", "MB/s", "number"),
        Column("epoch", "epoch", "seconds"),
        Column("waited", "waited for input", "share"),
        Column("utilisation", "accelerator utilisation", "share"),
        Column("goodput", "goodput", "share"),
        Column("goodput_why", "why no goodput", "long"),
        Column("cpu", "CPU-s per GB", "number"),
        Column("calls", "reads per epoch", "count"),
        Column("call_bytes", "bytes per read", "bytes"),
        Column("left_out", "left out of an epoch", "count"),
    )
    rows, called = [], results.names
    for one in fed_cells(results):
        medians, share = one.input, goodput(one.cell, results) or Goodput(None)
        rows.append(
            (
                called[one.cell.run, one.cell.key],
                one.cache,
                medians.cold_fraction,
                None if medians.bytes_per_s is None else medians.bytes_per_s / 1e6,
                medians.epoch_s,
                medians.wait_share,
                _utilisation(one),
                share.share,
                share.why,
                medians.cpu_s_per_gb,
                None if medians.calls_per_epoch is None else round(medians.calls_per_epoch),
                medians.bytes_per_call,
                _left_out(one),
            )
        )
    return Table(
        "input", "What was read, where from, and how long was waited", columns, tuple(rows)
    )


def _utilisation(one: FedCell) -> float | None:
    """Give the classic figure: time not spent waiting over all time; it flatters a busy CPU."""
    waited = one.input.wait_share
    return 1 - waited if computes(one.cell) and waited is not None else None


def _left_out(one: FedCell) -> int | None:
    """Count the samples of an epoch that fill no batch of a training."""
    if one.input.delivered is None:
        return None
    return samples_of(one.cell.factors) - round(one.input.delivered)


def _joined(inputs: Sequence[InputResult]) -> InputResult:
    def middle(name: str) -> float | None:
        known = [value for one in inputs if (value := getattr(one, name)) is not None]
        return median(known) if known else None

    return InputResult(
        cache=inputs[0].cache,
        cold_fraction=middle("cold_fraction"),
        epochs=min(one.epochs for one in inputs),
        bytes_per_s=middle("bytes_per_s"),
        epoch_s=middle("epoch_s"),
        wait_share=middle("wait_share"),
        cpu_s_per_gb=middle("cpu_s_per_gb"),
        calls_per_epoch=middle("calls_per_epoch"),
        bytes_per_call=middle("bytes_per_call"),
        delivered=middle("delivered"),
        busy_cores=middle("busy_cores"),
        cpus=middle("cpus"),
    )
