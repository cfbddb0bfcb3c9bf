"""Give how long a trial's ranks took to start, and its first step to end."""

from __future__ import annotations

from collections.abc import Sequence

from harness.store.events.rank_streams import Stream
from harness.store.records import TrialRecord
from harness.verdicts.results import Start


def first_step_s(streams: Sequence[Stream]) -> float | None:
    """Give the first step's time on the slowest rank, compilation included."""
    firsts = [int(stream.warm_up_ns[0]) / 1e9 for stream in streams if len(stream.warm_up_ns)]
    return max(firsts, default=None)


def starts(record: TrialRecord, streams: Sequence[Stream]) -> tuple[Start, ...]:
    """Give the start-up times of each rank; nothing where one of them is unknown."""
    ranks = {rank.rank: rank for rank in record.outcome.ranks}
    found = []
    for one in streams:
        began, entered, opened = ranks[one.rank].started_ns, one.first_word_ns, one.opened_ns
        if began is None or entered is None or opened is None:
            return ()
        host = ranks[one.rank].host
        found.append(Start(host, (entered - began) / 1e9, (opened - entered) / 1e9))
    return tuple(found)
