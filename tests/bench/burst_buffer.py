"""Ask what a burst buffer gains: how long training stands still, with it and without.

``python -m tests.bench.burst_buffer [SLOW [PAIRS]]``, as root: the same state goes straight to a
throttled tier (``tests/storage/throttles.toml``) and through this disk to it, turn about. Between
two checkpoints the drain has time to end, as it has where training takes longer than draining.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness.stats.estimate import median_interval
from harness.worker.checkpoints.plain import PlainState
from harness.worker.checkpoints.request import Asked
from harness.worker.checkpoints.series import Series
from harness.worker.place import Place
from tests.storage.slow_tier import missing, slow_tier

STATE_BYTES = 96 << 20
GOAL = 2.6


def main(kind: str, pairs: int) -> int:
    """Print both times and their ratio, pair by pair and as a median; 1 if the goal is missed."""
    lacking = missing()
    if lacking is not None:
        print(f"not measured: {lacking}")
        return 0
    with slow_tier(kind) as tier, tempfile.TemporaryDirectory() as fast:
        tier.enter()
        state = PlainState(STATE_BYTES, 1, {})
        ways = {
            "straight": _series(state, str(tier.folder / "straight"), None),
            "through": _series(state, str(tier.folder / "through"), str(Path(fast) / "buffer")),
        }
        ratios = []
        for pair in range(1, pairs + 1):
            order = list(ways)[:: 1 if pair % 2 else -1]
            times = {name: _blocked(state, ways[name], pair) for name in order}
            ratios.append(times["straight"] / times["through"])
            said = ", ".join(f"{name} {times[name]:.2f} s" for name in ways)
            print(f"pair {pair}: {said}: {ratios[-1]:.1f} times shorter", flush=True)
        for series in ways.values():
            series.close()
        tier.leave()
    told = median_interval(ratios)
    spread = f" [{told.low:.1f}, {told.high:.1f}], {told.level:.1%}" if told else ""
    middle = statistics.median(ratios)
    print(f"{kind}: training stands still {middle:.1f} times shorter{spread}; goal {GOAL}")
    return int(told is None or told.low < GOAL)


def _series(state: PlainState, to: str, through: str | None) -> Series:
    asked = Asked(1, to, through, is_the_work=False)
    return Series(asked, state, Place(0, 1, 0, 1, "here", "none"))


def _blocked(state: PlainState, series: Series, step: int) -> float:
    state.step()
    start = time.monotonic()
    series.save(step)
    blocked = time.monotonic() - start
    series.finish()
    return blocked


if __name__ == "__main__":
    kinds, counts = sys.argv[1:2] or ["hdd"], sys.argv[2:3] or ["8"]
    sys.exit(main(kinds[0], int(counts[0])))
