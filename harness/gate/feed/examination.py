"""Examine what feeds a cell's network: a small set of files is made, fetched and compared.

The adapter's own activity, with the cell's reader, format and shuffle, fetches two epochs of a set
whose every sample the host knows; what its next step would take is compared with that, in the
numbers, the targets and the order. Two ranks, or two devices, stand for all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import data
from harness.data import create
from harness.data.catalogue import CONTENTS, Content
from harness.data.sets import DataSetSpec
from harness.errors import BakeoffError, Unavailable
from harness.gate.feed import judging, known_samples
from harness.gate.feed.known_samples import KnownSamples
from harness.gate.feed.orders import Asked
from harness.gate.jobs import Go, examination_job
from harness.gate.result import GatePart, Result, record
from harness.gate.semantics import TensorComparison
from harness.gate.tensors import folders
from harness.plan.cell import Cell
from harness.store.outcome import Ended
from harness.store.records import DIFFERS, EQUIVALENT, EXAMINATION_FAILED, IN_PART, NAMED
from harness.study.framework import ALONE, framework_info
from harness.study.framework_file import Reader
from harness.worker.gate.rank_equality import path_of
from harness.worker.gate.tensors import Folder
from harness.worker.input.dataset import UINT16, Dataset
from harness.worker.input.order import epoch_order
from harness.worker.job import Job
from harness.worker.network.workload import Training
from harness.worker.scale import Scale

OWN = "small-pictures"
EPOCHS = 2
SEED = 1
THIN = 1 << 14
_RANKS = 2
_LARGE_BYTES = 1 << 20
_FEW_THREADS = 2
_UNTOLD = ("threads", "interop_threads", "allocator", "cache", "tier", "accumulate", "recompute")
"""Factors that decide how fast a batch comes, not what it holds."""


def content_of(cell: Cell) -> str:
    """Name what the set holds; a user's own files that are trained on are pictures in folders, or
    tokens, for which made ones stand.
    """
    is_own = cell.own_data is not None and cell.factors["format"] != UINT16
    return OWN if is_own else str(cell.content)


def chosen(cell: Cell) -> dict[str, Any]:
    """Choose the factors of the examination; numbers are fed in fp32, which rounds nothing."""
    factors = dict(cell.other_factors)
    batch, _ = _sizes(CONTENTS[content_of(cell)])
    for name in ("reader_threads", "prefetch"):
        if factors.get(name):
            factors[name] = min(_FEW_THREADS, factors[name])
    if factors.get("buffer_samples"):
        factors["buffer_samples"] = 2 * batch
    precision = framework_info(cell.adapter).default("precision")
    plain = {"input": "files", "compile": False, "precision": precision, "samples": None}
    return {**factors, **dict.fromkeys(_UNTOLD), **plain}


def examine(cell: Cell, workload: Training, place: Path, go: Go) -> GatePart:
    """Examine the feed of a cell on this machine, in an empty folder."""
    ranks = min(_RANKS, cell.scale.ranks)
    length = workload.network.input[0]
    spec = spec_of(content_of(cell), str(cell.factors["format"]), ranks, length)
    try:
        create.create(spec, place / "set", doing=lambda _: None)
    except Unavailable as problem:
        return GatePart(None, str(problem), is_unsupported=True)
    except BakeoffError as problem:  # its disk is full, for example
        return GatePart(None, str(problem))
    given = place / "given"
    folders.write(given, {}, {"epochs": EPOCHS, "thin": THIN, "precision": "timed"})
    found: list[list[Folder]] = []
    asked = asked_of(cell, Dataset(str(place / "set"), length), ranks)
    is_repeated = asked.shuffle != "none" and not asked.keeps_order
    for attempt in range(1 + is_repeated):
        made = place / f"made-{attempt}"
        paths = {"given": given, "made": made, "data": place / "set"}
        judged = go(_job(cell, paths, ranks, asked.batch))
        if judged.ended is not Ended.OK:
            return GatePart(None, judged.reason, judged.ended is Ended.UNSUPPORTED)
        found.append([folders.open_folder(Path(path_of(str(made), one))) for one in range(ranks)])
    resizing = _reader(cell).resizes if cell.factors.get("decode") else None
    known = KnownSamples(spec, tuple(workload.network.input), resizing, THIN)
    try:
        finding = _judged(known, asked, found)
    finally:
        known_samples.forget()
    samples = ranks * len(asked.orders[0][0])
    return GatePart(finding, facts={"samples": samples, "epochs": EPOCHS})


def _judged(
    known: KnownSamples, asked: Asked, found: Sequence[Sequence[Folder]]
) -> TensorComparison:
    """Judge what came, and whether it came alike again, where it was asked for twice."""
    worst = 0.0
    for made in found:
        finding = judging.judge(known, asked, made)
        if finding.differs is not None:
            return finding
        worst = max(worst, finding.error or 0.0)
    if len(found) > 1:
        first, again = ([judging.order_of(known, one) for one in made] for made in found)
        if first != again:
            return TensorComparison(worst, "the same seed gives another order each time")
    return TensorComparison(worst)


def spec_of(content: str, form: str, ranks: int, text_length: int = 0) -> DataSetSpec:
    """Describe the set: three batches for each rank, one sample that fills none, several files; of
    texts, one file, which ends amid one.
    """
    batch, per_file = _sizes(CONTENTS[content])
    samples = 3 * batch * ranks + 1
    if CONTENTS[content].is_text:
        samples = samples * text_length + 1 + text_length // 2
    return DataSetSpec(content, form, samples, SEED, per_file)


def asked_of(cell: Cell, dataset: Dataset, ranks: int) -> Asked:
    """State the order that every rank is to be fed in."""
    factors = chosen(cell)
    batch, _ = _sizes(CONTENTS[content_of(cell)])
    shuffle = str(factors.get("shuffle") or "none")
    epochs = [
        [
            epoch_order(
                dataset.held,
                shuffle=shuffle,
                seed=SEED,
                epoch=epoch,
                rank=rank,
                size=ranks,
                buffer_samples=factors.get("buffer_samples") or 0,
            )
            for epoch in range(EPOCHS)
        ]
        for rank in range(ranks)
    ]
    # Ranks take equally many steps, and what fills no batch is left out.
    whole = [min(map(len, shares)) // batch * batch for shares in zip(*epochs, strict=True)]
    orders = [[one[:most] for one, most in zip(rank, whole, strict=True)] for rank in epochs]
    is_own_order = factors["format"] in _reader(cell).own_order
    return Asked(batch, shuffle, orders, keeps_order=not is_own_order)


def joined(result: Result, part: GatePart, cell: Cell) -> Result:
    """Join what was found of the network with what was found of its feed."""
    whole = replace(result, feed=record(part))
    if result.state == DIFFERS:
        return whole
    if part.has_failed:
        return replace(
            whole, state=EXAMINATION_FAILED, detail=f"its feed: {part.why}", log=part.log
        )
    if part.finding is None:
        state = IN_PART if result.state in (EQUIVALENT, NAMED) else result.state
        why = f"what it is fed: {part.why}"
        detail = f"{result.detail}; not {why}"
        return replace(whole, state=state, detail=detail, not_shown=(*result.not_shown, why))
    if part.finding.differs is not None:
        words = f"its feed ({cell.factors['reader']}): {part.finding.differs}"
        return replace(whole, state=DIFFERS, detail=words)
    error = part.finding.error
    fed = f"fed what the files hold within {error:.0e}" if error else "fed exactly the files"
    return replace(whole, detail=f"{result.detail}; {fed}")


def code_digest() -> str:
    """Digest the host's code that decides a result."""
    whole = hashlib.sha256()
    for folder in (Path(data.__file__ or "").parent, Path(__file__).parent):
        for file in sorted(folder.rglob("*.py")):
            whole.update(file.read_bytes())
    return whole.hexdigest()


def _reader(cell: Cell) -> Reader:
    return framework_info(cell.adapter).reader(str(cell.factors["reader"]))


def _sizes(content: Content) -> tuple[int, int]:
    """Give samples in a batch and at most in a file."""
    return (4, 3) if content.most_bytes < _LARGE_BYTES else (2, 1)


def _job(cell: Cell, paths: Mapping[str, Path], ranks: int, batch: int) -> Job:
    job = examination_job(cell, "examine", chosen(cell), paths)
    devices = min(_RANKS, cell.scale.devices_per_rank)
    strategy = cell.strategy if ranks * devices > 1 else ALONE
    return replace(
        job,
        strategy=strategy,
        scale=Scale(
            ranks_per_node=ranks, devices_per_rank=devices, batch_per_device=batch // devices
        ),
        factors={**job.factors, "strategy": strategy},
        seed=SEED,
    )
