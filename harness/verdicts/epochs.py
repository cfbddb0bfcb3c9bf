"""Judge a trial's input from its ranks' epochs: rate, page cache, waiting, completeness.

The rate of a trial that only reads is that of whole epochs whose caches held the same: cold ones
are never averaged with warm ones. Where a trial has several kinds, the most frequent one counts.

A training's phases do not end with epochs: one that began while it warmed up counts only where no
other ended later, and then with all its time, that of its warm-up included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness.store.events.epoch_events import Epoch, RankInput
from harness.verdicts.io_results import InputResult
from harness.worker.input.evidence.audit import digest
from harness.worker.input.evidence.page_cache import CHARGED, COLD_HERE, label

_ASKED = 0.9
"""Share of the bytes that requests must have brought to be what reading consists of: mapped memory
is read without any."""


def judge_epochs(ranks: Sequence[RankInput]) -> InputResult | None:
    """Summarise the epochs of all ranks; without whole epochs only the waiting time is known.

    Only epochs with the most frequent state of the page cache count, so that cold reading is never
    averaged with warm; every rank must have one. The rate is known only where each rank's windows
    are exactly its epochs. Requests are reported only where they account for the bytes: mapped
    files are read without any.
    """
    if not ranks or not all(rank.epochs for rank in ranks):
        return _without_epochs(ranks)
    proved = {number: _proved(events) for number, events in _by_number(ranks).items()}
    labels = Counter(proved[one.number][0] for rank in ranks for one in rank.epochs)
    cache = labels.most_common(1)[0][0]
    chosen = [[one for one in rank.epochs if proved[one.number][0] == cache] for rank in ranks]
    every = [one for some in chosen for one in some]
    if not all(chosen) or any(one.elapsed_s <= 0 for one in every):
        return None
    total = sum(one.event["bytes"] for one in every)
    shares = [proved[one.number][1] for one in every]
    calls, asked = (sum(one.event[name] for one in every) for name in ("calls", "call_bytes"))
    cpus = [float(one.event["cpus"]) for one in every if one.event.get("cpus")]
    is_asked = asked >= _ASKED * total
    return InputResult(
        cache=cache,
        cold_fraction=_least(shares),
        epochs=min(map(len, chosen)),
        other_epochs=sum(labels.values()) - len(every),
        rate=_per_second(chosen, "samples") if all(rank.is_whole for rank in ranks) else None,
        bytes_per_s=_per_second(chosen, "bytes"),
        epoch_s=max(sum(one.elapsed_s for one in some) / len(some) for some in chosen),
        wait_share=sum(one.waited_s for one in every) / sum(one.elapsed_s for one in every),
        cpu_s_per_gb=sum(one.event["cpu_s"] for one in every) / (total / 1e9) if total else None,
        calls_per_epoch=calls / min(map(len, chosen)) if is_asked else None,
        bytes_per_call=asked / calls if calls and is_asked else None,
        delivered=sum(_mean(some, "samples") for some in chosen),
        busy_cores=sum(one.event["cpu_s"] for one in every) / sum(one.elapsed_s for one in every),
        cpus=sum(cpus) / len(cpus) if cpus else None,
        faults=_faults(ranks),
    )


def _by_number(ranks: Sequence[RankInput]) -> dict[int, list[Mapping[str, Any]]]:
    """Group the ranks' events by epoch."""
    events: dict[int, list[Mapping[str, Any]]] = {}
    for rank in ranks:
        for one in rank.epochs:
            events.setdefault(one.number, []).append(one.event)
    return events


def _proved(events: Sequence[Mapping[str, Any]]) -> tuple[str, float | None]:
    """Name the state of the page cache in one epoch of all ranks, and the share read from storage.

    Ranks share pages: one reads from storage what another then finds in memory. So bytes that the
    kernel charged to them are added up; what one rank's sample weighs is known from any rank that
    read less than its part. Where that cannot be told, the mean of their shares stands for it.
    """
    shares = [one["cold_fraction"] for one in events]
    labels = {one["cache"] for one in events}
    if len(labels) == 1 or None in shares:
        return (labels.pop() if len(labels) == 1 else "unknown"), _least(shares)
    weights = [
        one["read_bytes"] / one["cold_fraction"] / one["samples"]
        for one in events
        if one.get("witness") == CHARGED and one["read_bytes"] and one["cold_fraction"] < 1
    ]
    share = sum(shares) / len(shares)
    if weights:
        read = sum(one["read_bytes"] for one in events)
        share = min(1.0, read / (max(weights) * sum(one["samples"] for one in events)))
    called = label(share)
    return (COLD_HERE if called == "cold" and COLD_HERE in labels else called), share


def _least(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return min(known) if len(known) == len(shares) else None


def _mean(epochs: Sequence[Epoch], what: str) -> float:
    total: float = sum(one.event[what] for one in epochs)
    return total / len(epochs)


def _without_epochs(ranks: Sequence[RankInput]) -> InputResult | None:
    """Give the waiting time alone, for a training that did not reach an epoch's end."""
    elapsed_s = sum(rank.elapsed_s for rank in ranks)
    if not elapsed_s:
        return None
    waited_s = sum(rank.waited_s for rank in ranks)
    return InputResult(cache="unknown", wait_share=waited_s / elapsed_s)


def _per_second(ranks: Sequence[Sequence[Epoch]], what: str) -> float:
    total = 0.0
    for epochs in ranks:
        total += sum(one.event[what] for one in epochs) / sum(one.elapsed_s for one in epochs)
    return total


def _faults(ranks: Sequence[RankInput]) -> tuple[str, ...]:
    """Check that all ranks together delivered each sample of the set once in each epoch."""
    faults = []
    for number, events in _by_number(ranks).items():
        if len(events) < len(ranks):
            faults.append(f"epoch {number}: {len(events)} of {len(ranks)} ranks read it")
            continue
        if not all(rank.is_whole for rank in ranks):
            continue  # trainings leave samples out, several ranks of older runs without saying so
        if any(one.get("left_out") for one in events):
            continue  # what fills no batch of a training; each rank held its own share to the order
        samples = sum(one["samples"] for one in events)
        total = sum(int(one["digest"], 16) for one in events) % 2**64
        if total != digest(range(samples)):
            faults.append(f"epoch {number}: the ranks did not read each sample exactly once")
    return tuple(faults)
