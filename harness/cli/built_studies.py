"""Run the studies that Bakeoff makes itself: ceilings, and sweeps of threads and affinity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.output import note

if TYPE_CHECKING:
    from harness.analysis.results import Results
    from harness.doctor.ceilings import Session


def carry_out(sessions: Iterable[Session], root: Path) -> Iterator[tuple[Session, Results]]:
    """Run each below a folder, and give what it came to; one that cannot run is said and left out.

    An interruption ends the command as it ends any run.
    """
    from harness.analysis.read import read_results
    from harness.cli.session_progress import watching
    from harness.plan.holes import NothingLeft
    from harness.plan.plan import make_plan
    from harness.run import session

    for one in sessions:
        try:
            plan = make_plan(one.study, one.platform)
        except NothingLeft as refusal:
            note(str(refusal))
            continue
        for hole in plan.holes:
            note(f"Left out: {hole.label}: {hole.why}")
        with watching() as observer:
            result = session.start(
                plan, root=root / one.name, study_text=one.study.text, observer=observer
            )
        if result.interrupted:
            raise click.exceptions.Exit(result.interrupted)
        if result.ok:
            yield one, read_results([result.run])
