"""Put the times of a trial's nodes on one axis, with a bound of its error.

The axis is the host's monotonic clock. An outcome keeps, for each node, the exchanges that its
agent and the host made before, in and after the trial; a node that reads the host's own clock needs
none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.stats.clock import ClockLine, RoundTrip, fit, too_early_ns
from harness.store.typed import read


@dataclass(frozen=True)
class Clocks:
    """The line of each node's clock against the host's; a clock never compared is absent."""

    lines: Mapping[str, ClockLine | None]
    """None: it is the host's own clock."""
    bounds_ns: Mapping[str, float]
    """How far each node's line may be wrong, from its first exchange to its last."""

    def host_ns(self, node: str, there_ns: float) -> float:
        """Convert a node's time into the host's; unchanged where the node's clock is unknown."""
        line = self.lines.get(node)
        return there_ns if line is None else line.here_ns(there_ns)

    def node_ns(self, node: str, host_ns: float) -> float:
        """Convert the host's time into a node's; unchanged where the node's clock is unknown."""
        line = self.lines.get(node)
        return host_ns if line is None else host_ns + line.ahead_ns(host_ns)

    def bound_s(self, nodes: Iterable[str]) -> float | None:
        """Bound the error of a time difference between these nodes.

        0 where all read one clock; None where a node's clock was never compared.
        """
        wanted = set(nodes)
        if len(wanted) < 2:
            return 0.0
        if not wanted <= set(self.lines):
            return None
        return sum(sorted(self.bounds_ns[node] for node in wanted)[-2:]) / 1e9

    def contradicted_s(
        self, windows: Mapping[int, tuple[str, Iterable[int], Iterable[int]]]
    ) -> float | None:
        """Check the axis by the ranks' windows: each begins after all ranks ended the one before.

        ``windows`` gives a rank's node, when its windows began there, and when they ended. None:
        the clocks were never compared, or say nothing that could not be.
        """
        nodes = {node for node, _, _ in windows.values()}
        bound_s = self.bound_s(nodes)
        if len(nodes) < 2 or bound_s is None:
            return None
        begins, ends = (
            {
                rank: [self.host_ns(node, float(moment)) for moment in moments[which]]
                for rank, (node, *moments) in windows.items()
            }
            for which in (0, 1)
        )
        early_s = too_early_ns(begins, ends) / 1e9
        return early_s if early_s > bound_s else None


@dataclass(frozen=True)
class _Exchanges:
    """The exchanges of one node's clock with the host's."""

    own: bool
    """Whether it is the host's own clock."""
    exchanges: tuple[tuple[int, int, int, int], ...]


_BY_NODE: Any = Mapping[str, _Exchanges]


def read_clocks(told: Mapping[str, Any]) -> Clocks:
    """Fit what an outcome keeps of clocks; ValueError where it keeps something else."""
    lines: dict[str, ClockLine | None] = {}
    bounds: dict[str, float] = {}
    for node, one in read(_BY_NODE, dict(told), "clocks").items():
        exchanges = [RoundTrip(*times) for times in one.exchanges]
        if one.own:
            lines[node], bounds[node] = None, 0.0
        elif exchanges:
            line = fit([[exchange] for exchange in exchanges])
            ends = (exchanges[0].middle_ns, exchanges[-1].middle_ns)
            lines[node], bounds[node] = line, max(map(line.bound_at_ns, ends))
    return Clocks(lines, bounds)
