"""Say which data sets of a plan are missing, before anything is proved or run."""

from __future__ import annotations

from pathlib import Path

from harness.data import user_data
from harness.data.sets import is_finished
from harness.plan.plan import Plan
from harness.run.storage.tiers import create_command, data_sets


def missing_data(plan: Plan) -> list[str]:
    """Report missing data sets with the command that makes them, and changes of a user's own."""
    missing = []
    for cell, folder in () if plan.platform.is_simulated else data_sets(plan):
        if cell.own_files is None:
            if not is_finished(folder):
                how = create_command(plan, cell)
                missing.append(
                    f"{folder} is not there, or not finished. To make it: {how}\n"
                    "    To read files of your own instead: add --data PATH"
                )
        elif not is_finished(folder):
            missing.append(f"{folder} is gone, which described {cell.own_files}; run it anew.")
        elif (why := user_data.changed(folder, Path(cell.own_files))) is not None:
            missing.append(f"{why} since this run was planned; run it anew.")
    return missing
