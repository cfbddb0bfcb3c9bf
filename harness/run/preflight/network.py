"""Hold what a platform claims of its network to what was measured of it last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from harness.doctor.finding import DoctorFinding
from harness.errors import BakeoffError
from harness.plan.plan import Plan
from harness.store.run_directory.find_runs import RUNS, newest_first, runs_in
from harness.units import per_cent, scaled, size_text
from harness.verdicts.results import CellResult

_LOOKED_AT = 50
"""So many of the runs here are looked at, the latest."""
_ENOUGH = 0.5
"""Of the claim: less than that is worth a look before hours are spent."""


def look(plan: Plan) -> Iterator[DoctorFinding]:
    """Look for the latest messages between nodes of this platform, where cells send some."""
    network, name = plan.platform.network, plan.platform.name
    if network is None or network.bandwidth is None or max(c.scale.nodes for c in plan.cells) < 2:
        return
    claimed = network.bandwidth * (network.adapters or 1)
    best = max(_measured(name), key=lambda one: _bus(one), default=None)
    again = f"bakeoff run network-check --platform {name}"
    if best is None:
        seen = f"{scaled(claimed, 'B/s')} claimed of a node, and no run here has measured it"
        yield DoctorFinding("network", "unknown", seen, f"{again}: minutes, before hours.")
        return
    share = _bus(best) / claimed
    seen = (
        f"{per_cent(share)} of the {scaled(claimed, 'B/s')} that are claimed of a node: "
        f"{best.workload} of {size_text(best.factors['message_bytes'])} on {best.scale.nodes} "
        f"nodes, {best.run}"
    )
    if share >= _ENOUGH:
        yield DoctorFinding("network", "fine", seen)
    else:
        remedy = f"{again} once more; its page says which interfaces carried the messages."
        yield DoctorFinding("network", "warning", seen, remedy)


def _measured(platform: str) -> list[CellResult]:
    """Give the cells of the latest run that sent messages between nodes of a platform."""
    from harness.analysis.read import read_results
    from harness.store.record_readers.run_reader import read_run

    for place in islice(newest_first(runs_in(RUNS)), _LOOKED_AT):
        with suppress(BakeoffError):  # a damaged run tells nothing here
            record = read_run(place)
            sends = any(
                one.scale.nodes > 1 and one.factors.get("message_bytes") is not None
                for one in record.cells
            )
            if record.info.platform.get("name") != platform or not sends:
                continue
            found = [one for one in read_results([place]).cells if one.scale.nodes > 1]
            told = [one for one in found if one.rate and one.factors.get("message_bytes")]
            if told:
                return told
    return []


def _bus(cell: CellResult) -> float:
    """Give what a link carried a second."""
    from harness.analysis.scaling.messages import bus_factor

    assert cell.rate is not None, "only such cells are looked at"
    return cell.rate.value * bus_factor(cell.workload, cell.scale.ranks)
