"""A host in a process of its own, to be interrupted and killed; it tells all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.run.progress import Progress
from harness.run.session import resume, start
from harness.run.trust import Trust
from harness.store.outcome import Outcome
from harness.study.study import load_study


class Teller:
    """Observer that prints what it hears."""

    def progressed(self, progress: Progress) -> None:
        self.say("progressed", trial=progress.trial, phase=progress.phase, done=progress.done)

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        self.say("ended", trial=outcome.trial, outcome=outcome.ended, done=progress.done)

    def doing(self, text: str) -> None:
        self.say("doing", text=text)

    def noted(self, text: str) -> None:
        self.say("noted", text=text)

    def say(self, what: str, **fields: object) -> None:
        print(json.dumps({"what": what, **fields}), flush=True)


def main(folder: Path) -> None:
    """Start the study in a folder, or go on with its run."""
    run, teller = folder / "run", Teller()
    if run.exists():
        # Tests change the plan between sessions.
        result = resume(run, trust=Trust(plan=True), observer=teller)
    else:
        study = load_study(folder / "study.toml")
        plan = make_plan(study, load_platform(str(folder / "platform.toml")))
        result = start(plan, root=run, study_text=study.text, observer=teller)
    teller.say("result", done=result.done, total=result.total, interrupted=result.interrupted)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
