"""Judge from a trial's first losses whether what was timed learned anything.

A batch that is trained on again and again has another loss after every step. One that stays as it
is, or is no number, says that the step did not do what its time is shown for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.store.events.rank_streams import Losses, Stream
from harness.verdicts.results import LastLoss
from harness.verdicts.thresholds import THRESHOLDS, Finding
from harness.worker.gate.losses import are_equal, is_narrow
from harness.worker.network.precisions import precision_of

_FEWEST = 3
"""Losses that can tell."""
_OVERFLOWS = 25
"""Steps that a loss scale may take, in fp16, before the first update is made."""
_MOVED = 1e-3
"""Of a loss: what learns ever more slowly does not move by so much after it seemed to stand."""


def judge_losses(streams: Sequence[Stream], precision: object, rate: float | None) -> list[Finding]:
    """Find the ranks whose loss is no number, or stands still, within the first steps.

    ``rate`` is the optimiser's; None where it is unknown.
    """
    found = []
    for stream in streams:
        first = _limit("first steps")
        # A program that steps by itself says few losses, each of a batch of its own.
        says_few = stream.facts.get("clock") == "external"
        early = [(step, loss) for step, loss in stream.losses if says_few or step < first]
        whose = f"rank {stream.rank}'s loss" if len(streams) > 1 else "the loss"
        wrong = next(((step, loss) for step, loss in early if not math.isfinite(loss)), None)
        if wrong is not None:
            what = "not a number" if math.isnan(wrong[1]) else "infinite"
            found.append(f"{whose} is {what} after step {wrong[0] + 1}")
        elif _stands_still(early, precision, rate):
            last, loss = early[-1]
            found.append(f"{whose} is {loss:.6g} after each of the first {last + 1} steps")
    return [Finding("untrained", f"{words}: what was timed does not train") for words in found]


def judge_pauses(streams: Sequence[Stream], precision: object, rate: float | None) -> list[Finding]:
    """Mark the ranks whose loss stands still for a while amid the trial, and moves again.

    What trains can come to such a rest by itself, and leave it, so nothing is rejected for it.
    """
    found = []
    for stream in streams:
        end = stream.last_losses[-1][1] if stream.last_losses else math.nan
        for some in stream.amid_losses:
            if not _stands_still(some, precision, rate):
                continue
            (first, loss), (last, _) = some[0], some[-1]
            if abs(end - loss) > _MOVED * abs(loss):
                whose = f"rank {stream.rank}'s loss" if len(streams) > 1 else "the loss"
                found.append(
                    f"{whose} is {loss:.6g} from step {first + 1} to {last + 1}, and {end:.6g} at "
                    "the end: what was timed may have done nothing for a while"
                )
                break
    return [Finding("valid", words) for words in found]


def last_loss(streams: Sequence[Stream]) -> LastLoss | None:
    """Give the first rank's loss as its trial ended; None if it said none, or one is no number."""
    last = streams[0].last_losses if streams else ()
    if not last or not all(math.isfinite(loss) for _, loss in last):
        return None
    return LastLoss(math.fsum(loss for _, loss in last) / len(last), last[-1][0])


def judge_masks(streams: Sequence[Stream]) -> list[Finding]:
    """Find dropouts that drop nothing, or the same: a step that is taken again has the same loss.

    It is taken two to eight times (``worker/gate/timed_updates.py``): more than twice where two
    losses are the same, or there are several ranks. Taken by every rank from the same weights and
    samples, it has another loss in each.
    """
    found = []
    for stream in streams:
        losses = _restarts(stream)
        if len(losses) > 1 and are_equal(losses) and not all(map(is_narrow, losses)):
            text = (
                f"{len(losses)} steps from the same weights and batch have the loss "
                f"{losses[0]:.7g}: dropout is off where it is timed, or drops the same at "
                "every step"
            )
            found.append(Finding("untrained", text))
    return found or [
        Finding(
            "untrained",
            f"a step from the same weights and samples has the loss {_restarts(other)[0]:.7g} in "
            f"rank {streams[0].rank} and in rank {other.rank}: dropouts drop the same in both",
        )
        for other in streams[1:]
        if _drop_alike(streams[0], other)
    ]


def _drop_alike(one: Stream, other: Stream) -> bool:
    """Tell whether two ranks have the same losses where only their masks can differ."""
    early = dict(other.losses)
    trained = [(loss, early[step]) for step, loss in one.losses if step in early]
    if all(map(are_equal, trained)):  # on samples of their own: they say the mean of all ranks
        return False
    pairs = list(zip(_restarts(one), _restarts(other), strict=False))
    return bool(pairs) and all(map(are_equal, pairs)) and not all(map(is_narrow, _restarts(one)))


def _restarts(stream: Stream) -> list[float]:
    return list(stream.facts.get("restarts") or ())


def _stands_still(early: Losses, precision: object, rate: float | None) -> bool:
    """Tell whether losses stay the same where those of an honest step could not."""
    if len(early) < _FEWEST or (rate is not None and rate < _limit("learning rate")):
        return False
    if precision == "fp16" and early[-1][0] < _OVERFLOWS:
        return False
    values: list[float] = [loss for _, loss in early]
    if precision_of(precision).activation_bytes == 2 and all(map(is_narrow, values)):
        return False
    return are_equal(values)


def _limit(name: str) -> float:
    return THRESHOLDS[name].value
