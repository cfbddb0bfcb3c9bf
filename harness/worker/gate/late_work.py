"""Refuse a sync that returns while most of the work is still to be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from harness.worker.contracts import Refused

if TYPE_CHECKING:
    from harness.worker.contracts import Activity

REPEATS, CHANCES = 4, 3
MOST_STEPS = 8
"""Some frameworks queue no more than a few dozen steps."""
MOST_AFTER = 0.25
"""Share of the time of some steps that may pass after sync; an honest one leaves nothing."""


class SyncTooEarly(Refused):
    """Say that the steps were not done when ``sync`` returned."""


def refuse(activity: Activity, size: int, steps: int, clock: Callable[[], int]) -> None:
    """Take steps as a window of so many does, by all ranks together, and see what comes after sync.

    Refused is what is late every second time or oftener: a neighbour may delay what is looked at
    once.
    """
    share = 1.0
    for _ in range(CHANCES):
        share = sorted(_share_after_sync(activity, steps, clock) for _ in range(REPEATS))[-2]
        if size > 1:  # ranks step together, or wait for each other
            share = activity.agree(share)
        if share <= MOST_AFTER:
            return
    raise SyncTooEarly(
        "sync returned before the steps were done: {:.0f} % of their time came after it. "
        "What was timed is how fast steps are queued, not how fast they are computed"
        "".format(100 * share)
    )


def _share_after_sync(activity: Activity, steps: int, clock: Callable[[], int]) -> float:
    start = clock()
    for _ in range(min(steps, MOST_STEPS)):
        activity.step()
    activity.sync()
    synced = clock()
    _look(activity)
    looked = clock()
    _look(activity)  # once more, when certainly nothing runs: what looking itself takes
    idle = clock() - looked
    return (looked - synced - idle) / max(1, looked - start)


def _look(activity: Any) -> None:
    activity.values()
    next(iter(activity.state()))
