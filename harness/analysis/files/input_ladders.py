"""Make the input's ladders: how fast files are read, rung by rung, and the bottleneck.

A ladder's rungs read the same files from the same tier in the same kind of order, with the same
caches, by as many ranks: bytes alone, then the file format parsed, then a loader, then the loader
feeding a model, or what stands for one; a model that is fed decoded pictures stands on their
decoding. Of several settings on a rung the fastest stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis import numbers
from harness.analysis.files.bottleneck import (
    BYTES,
    DECODED,
    LOADER,
    MODEL,
    PARSED,
    LadderStep,
    bottleneck,
)
from harness.analysis.files.goodput import ComputeOnly, compute_only
from harness.analysis.files.input import FedCell, fed_cells
from harness.analysis.files.ladder import Ladder, Rung
from harness.analysis.results import Results
from harness.worker.input.evidence.page_cache import COLD_HERE

_RUNGS = {
    BYTES: "bytes read",
    PARSED: "format parsed",
    LOADER: "loader",
    DECODED: "pictures decoded",
    MODEL: "loader and model",
}
_SHUFFLED = {"global": "shuffled", "file": "shuffled by file"}
_FEWEST = 2
"""Rungs that a chain needs at least to be a ladder."""
_NOT_PROVED = (
    "Nobody counts what lies beneath this file system: the pages were not in this kernel's memory, "
    "but may have been in another cache."
)
_BENEATH = "A hypervisor's or a disk's own cache is beyond sight: cold means cold to this kernel."


@dataclass(frozen=True)
class LadderKey:
    """The factors that all rungs of a ladder have in common."""

    run: str
    content: str
    own_files: str | None
    format: str
    samples: int
    tier: str | None
    stripe_count: int | None
    stripe_mb: int | None
    ranks: int
    is_contained: bool
    shuffle: str
    cache: str

    def __str__(self) -> str:
        """Title its ladder."""
        what = f"{self.samples} {self.content}"
        if self.own_files is not None:
            what = f"{self.samples} samples under {self.own_files}"
        words = [f"{what} in {self.format} files"]
        words += [f"on {self.tier}"] if self.tier else []
        words += [f"over {self.stripe_count} servers"] if self.stripe_count else []
        words += [f"in stripes of {self.stripe_mb} MiB"] if self.stripe_mb else []
        words += [f"by {self.ranks} ranks"] if self.ranks > 1 else []
        words += ["in a container"] if self.is_contained else []
        words += [_SHUFFLED[self.shuffle]] if self.shuffle in _SHUFFLED else []
        return " ".join(words)


def ladders(results: Results) -> tuple[Ladder, ...]:
    """Build a ladder of each set of files and each model on it, cold apart from warm."""
    return tuple(_ladder(chain, best, lower, results) for chain, best, lower in _climbed(results))


def bottlenecks(results: Results) -> dict[tuple[str, str], str]:
    """Name the bottleneck of each trained cell that ends a ladder, by its run and key."""
    return {
        (best[MODEL].cell.run, best[MODEL].cell.key): _bottleneck(chain, best, lower, results)
        for chain, best, lower in _climbed(results)
        if MODEL in best
    }


_Climbed = tuple[LadderKey, dict[int, FedCell], list[FedCell]]
"""What a ladder's rungs have in common, the cell of each rung, and all of the lower rungs."""


def _climbed(results: Results) -> list[_Climbed]:
    groups: dict[LadderKey, list[FedCell]] = {}
    for one in fed_cells(results):
        groups.setdefault(_chain(one), []).append(one)
    made: list[_Climbed] = []
    for chain, some in groups.items():
        lower = [one for one in some if one.rung < DECODED]
        tops: dict[tuple[int, str], list[FedCell]] = {}
        for one in some:
            if one.rung >= DECODED:
                tops.setdefault((one.rung, one.cell.task), []).append(one)
        decoded = [one for one in some if one.rung == DECODED]
        for top in tops.values() or ([],):
            beneath = decoded if any(one.cell.factors.get("decode") for one in top) else []
            made.append((chain, _best([*lower, *beneath, *top]), lower))
    return [one for one in made if len(one[1]) >= _FEWEST]


def _chain(one: FedCell) -> LadderKey:
    factors = one.cell.factors
    return LadderKey(
        run=one.cell.run,
        content=str(one.cell.content),
        own_files=one.cell.own_files,
        format=factors["format"],
        samples=factors["samples"],
        tier=factors.get("tier"),
        stripe_count=factors.get("stripe_count"),
        stripe_mb=factors.get("stripe_mb"),
        ranks=one.cell.scale.ranks,
        is_contained=factors.get("container") or False,
        shuffle=factors.get("shuffle") or "none",
        cache=one.cache,
    )


def _best(some: Sequence[FedCell]) -> dict[int, FedCell]:
    """Choose the cell shown for each rung, from the device upwards."""
    best: dict[int, FedCell] = {}
    for one in some:
        if one.rung not in best or one.rate > best[one.rung].rate:
            best[one.rung] = one
    return dict(sorted(best.items()))


def _ladder(
    chain: LadderKey, best: dict[int, FedCell], lower: Sequence[FedCell], results: Results
) -> Ladder:
    batches = {one.cell.scale.batch_per_rank for one in best.values()}
    rungs = tuple(
        Rung(
            f"{_RUNGS[rung]}: {_named(one)}{_batch(one, batches)}",
            one.cell.rate,
            one.input.cpu_s_per_gb,
        )
        for rung, one in best.items()
        if one.cell.rate is not None
    )
    computing = compute_only(best[MODEL].cell, results) if MODEL in best else None
    beneath = _NOT_PROVED if chain.cache == COLD_HERE else _BENEATH
    notes = [note for note in (_busy(best), beneath) if note]
    if computing is not None:
        notes.insert(0, _said(computing))
    disturbed = next((note for one in best.values() if (note := one.disturbed)), "")
    if disturbed:
        notes.insert(0, f"Meanwhile, in one of the trials: {disturbed}.")
    return Ladder(
        title=f"{chain}{_end(best)}",
        state=chain.cache,
        rungs=rungs,
        bottleneck=_bottleneck(chain, best, lower, results),
        source=" ".join(notes),
    )


def _bottleneck(
    chain: LadderKey, best: dict[int, FedCell], lower: Sequence[FedCell], results: Results
) -> str:
    steps = {rung: _step(one, lower) for rung, one in best.items()}
    computing = compute_only(best[MODEL].cell, results) if MODEL in best else None
    return bottleneck(steps, computing, is_cold=chain.cache in ("cold", COLD_HERE))


def _end(best: dict[int, FedCell]) -> str:
    """Say what a ladder ends in, where there may be several on the same files."""
    if MODEL in best:
        return f" for {_model(best[MODEL])}"
    return ", decoded" if DECODED in best else ""


def _model(one: FedCell) -> str:
    """Name what is fed: a network, or what stands for one."""
    return one.cell.task.rpartition(" + ")[2]


def _said(computing: ComputeOnly) -> str:
    said = f"With input that costs nothing the model reaches {numbers.number(computing.rate)}"
    if computing.disturbed:
        return f"{said} or more: that was itself disturbed ({computing.disturbed})."
    return f"{said}."


def _step(one: FedCell, some: Sequence[FedCell]) -> LadderStep:
    """Give a rung as the verdict needs it; ``some`` are all that read the same files."""
    threads = one.threads
    alike = [other.rate for other in some if other.rung == BYTES and other.threads <= threads]
    return LadderStep(one.rate, one.busy, bool(one.disturbed), max(alike, default=None))


def _busy(best: dict[int, FedCell]) -> str:
    """Say of the highest rungs how busy they kept the processors."""
    known = [one for one in best.values() if one.rung > BYTES and one.busy is not None]
    shares = [f"{_RUNGS[one.rung]} {numbers.share(one.busy or 0.0)}" for one in known[-2:]]
    return f"Busy of the processors that it could use: {', '.join(shares)}." if shares else ""


def _batch(one: FedCell, batches: set[int]) -> str:
    """Say how many samples were read at once, where a ladder's rungs differ in that."""
    return f", batches of {one.cell.scale.batch_per_rank}" if len(batches) > 1 else ""


def _named(one: FedCell) -> str:
    factors = one.cell.factors
    words = [one.cell.framework] if one.cell.framework != "null" else []
    words.append(factors["reader"])
    if (factors.get("reader_threads") or 1) > 1:
        words.append(f"× {factors['reader_threads']}")
    if one.rung == MODEL:
        words.append(f"+ {_model(one)}")
    return " ".join(words)
