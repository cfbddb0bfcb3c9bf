"""Say what the comparison assumes, and how to need less of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.analysis import numbers
from harness.analysis.between_runs.repeated_runs import Session
from harness.stats.between_runs.sessions import Scatter
from harness.stats.estimate import median
from harness.store.records import RunInfo
from harness.units import counted, duration

_LONGER = 2.0
"""Two runs lie far apart beside repeated ones where their distance is so many times as long."""


def assumptions(
    before: RunInfo,
    after: RunInfo,
    known: Mapping[str, Scatter | None],
    repeats: Sequence[Session],
) -> Iterator[str]:
    """Say it in sentences."""
    told = [one for one in known.values() if one is not None]
    if len(told) < len(known):
        which = "" if not told else f"Of {counted(len(known) - len(told), 'cell')}: "
        yield (
            f"{which}The two runs were not measured together. Without runs that repeat these cells "
            "it is not known how far two sessions of this machine differ by themselves, so no cell "
            "is called faster or slower. Measure both in one session: bakeoff compare --now "
            f"{before.name} {after.name}; or repeat one of them, five times or more, on several "
            "days: runs of the same cells beside these two are found, others named by --repeats."
        )
    if told:
        moments = [one.run.started_wall_ns for one in repeats] + [
            before.started_wall_ns,
            after.started_wall_ns,
        ]
        span = (max(moments) - min(moments)) / 1e9
        reach = median([one.reach for one in told])
        yield (
            f"The two runs were not measured together. By {counted(len(repeats), 'repeated run')} "
            f"over {duration(span)}, two sessions of this machine differ by up to "
            f"{numbers.share(reach)} while nothing changes (95 %, the median cell); the intervals "
            "hold that. This assumes that both sessions are like the repeated runs. Measured "
            f"together (bakeoff compare --now {before.name} {after.name}), they need no such "
            "assumption."
        )
        apart = abs(before.started_wall_ns - after.started_wall_ns)
        between = [one.run.started_wall_ns for one in repeats]
        if apart > _LONGER * max(1, max(between) - min(between)) and len(between) > 1:
            days, learnt = duration(apart / 1e9), duration((max(between) - min(between)) / 1e9)
            yield (
                f"The two lie {days} apart and the repeated runs {learnt}: what changes more "
                "slowly than that is not in the intervals."
            )
