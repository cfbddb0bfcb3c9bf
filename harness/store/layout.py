"""The only map of a run directory: every name in it is formed here.

RUN/
  run.json                     identity of the run: version, study name, seed, when, by what
  study.toml                   the study's text as it was read
  plan.json                    resolved study and platform, cells with keys and scale, holes, order
  provenance.json              the host: versions, git, CPU, memory, kernel, redacted environment
  lock                         held (flock) by the one bakeoff process that writes here
  log.jsonl                    what the session did and why: starts, stops, re-runs, resumes
  environments/NAME.json       what each framework environment is: interpreter, versions, edits,
                               a digest of each package's files, variables that steer it
  gate/                        results of the equivalence gate; of one that failed, KEY.log
  payload/                     the worker side exactly as it ran
  payload.2/ …                 another: after `resume --mix`, or of a side of `compare --now`, whose
                               cells name it in plan.json (and the cell that they are held against)
  report.html                  the page; its raw readings lie in report-data/
  results.json                 what the page says of the cells, as data; see docs/results.md
  cells/KEY/TRIAL/             one trial; TRIAL is ``trial-3`` or, re-run, ``trial-3.2``
    job.json                   what the ranks were asked to do
    events.R.jsonl             what rank R said
    meeting.R                  that rank R came to the ends of epochs; only of ranks that read
    rank.R.out, rank.R.err     what rank R printed, capped, without secrets
    starter.out, starter.err   what mpirun or srun printed, where one started the ranks
    samples.NODE.bin           what the collector read on one node
    samples.NODE.parquet       the same as a table: a cache, written anew where it is missing
    proved/                    what the timed activity made of its examination; removed when judged
    outcome.json               written last, atomically: its absence means "run me again"
  cells/KEY/cold/              the one extra trial that starts with empty compile caches
  cells/KEY/probe/             the one untimed job that says what really ran
  cells/KEY/attribution/       the one untimed job that says which layer took which share of a step
    traced.json                some of the traced steps, operation by operation
  cells/KEY/ceilings/          the one untimed job that measures what kernels reach here at most,
                               and layers alone, of the first cell of each framework, device,
                               precision, threads, network and batch
  ceilings.json                what kernels reached at most, here or in earlier runs on this machine
  caches/KEY/                  the private compile caches that this cell's trials share
  jobs.json                    the queue's jobs that this run was handed over as, with their cells
  jobs/N.sh, jobs/N.log        what such a job runs, and what it printed; 0.log is of
                               a session on this machine without a terminal
  agent.err                    what the agent itself complained of; there only if it did
  interrupted/                 trials cut off, traces disturbed: kept as evidence
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from harness.store.contained import Contained
from harness.store.paths.names import path_part

PILOT = 0
"""The block that chooses a reference where none was declared, and is then discarded."""

_TRIAL = re.compile(r"trial-([0-9]{1,9})(?:\.([0-9]{1,9}))?")


@dataclass(frozen=True, order=True)
class TrialName:
    """Which block a trial belongs to, and which attempt at it this is."""

    block: int
    attempt: int = 1

    def __str__(self) -> str:
        if self.attempt == 1:
            return f"trial-{self.block}"
        return f"trial-{self.block}.{self.attempt}"

    @staticmethod
    def parse(text: str) -> TrialName | None:
        """Read a directory name back; None if it is no trial's."""
        match = _TRIAL.fullmatch(text)
        return TrialName(int(match[1]), int(match[2] or 1)) if match else None


@dataclass(frozen=True)
class TrialPaths:
    """Where the files of one trial lie."""

    root: Path
    run: Path | None = None
    """The run directory that it is a part of."""

    @property
    def files(self) -> Contained:
        """Open them; no link below the run directory is followed."""
        return Contained(self.run or self.root)

    @property
    def job(self) -> Path:
        """What the ranks were asked to do."""
        return self.root / "job.json"

    @property
    def outcome(self) -> Path:
        """How the trial ended; only a complete trial has it."""
        return self.root / "outcome.json"

    def events(self, rank: int) -> Path:
        """A rank's events."""
        return self.root / f"events.{rank}.jsonl"

    @property
    def proved(self) -> Path:
        """What the timed activity made of its examination; removed once it is judged."""
        return self.root / "proved"

    def stdout(self, rank: int) -> Path:
        """A rank's stdout."""
        return self.root / f"rank.{rank}.out"

    def stderr(self, rank: int) -> Path:
        """A rank's stderr."""
        return self.root / f"rank.{rank}.err"

    @property
    def starter_output(self) -> Path:
        """Stdout of an engine's start command."""
        return self.root / "starter.out"

    @property
    def starter_errors(self) -> Path:
        """Stderr of an engine's start command."""
        return self.root / "starter.err"

    @property
    def traced(self) -> Path:
        """Some of the steps that were traced, operation by operation."""
        return self.root / "traced.json"

    def samples(self, node: str) -> Path:
        """What the collector read on a node."""
        return self.root / f"samples.{node}.bin"

    def all_samples(self) -> list[Path]:
        """Find what collectors read on all nodes."""
        before, after = self.samples("*").name.split("*")
        return [
            self.root / name
            for name in self.files.files(self.root)
            if name.startswith(before) and name.endswith(after)
        ]

    def sample_table(self, node: str) -> Path:
        """The same as a table; a cache that can be written anew."""
        return self.root / f"samples.{node}.parquet"


@dataclass(frozen=True)
class RunPaths:
    """Where the files of one run lie."""

    root: Path

    @property
    def files(self) -> Contained:
        """Open them; no link in the directory is followed."""
        return Contained(self.root)

    @property
    def run(self) -> Path:
        """Identity of the run."""
        return self.root / "run.json"

    @property
    def study(self) -> Path:
        """The study's text as it was read."""
        return self.root / "study.toml"

    @property
    def plan(self) -> Path:
        """Cells, holes and the order of trials."""
        return self.root / "plan.json"

    @property
    def provenance(self) -> Path:
        """The host this run was started on."""
        return self.root / "provenance.json"

    @property
    def lock(self) -> Path:
        """Held by the one process that writes here."""
        return self.root / "lock"

    @property
    def log(self) -> Path:
        """The session's log: what it did and why."""
        return self.root / "log.jsonl"

    @property
    def payload(self) -> Path:
        """The worker side exactly as it ran."""
        return self.root / "payload"

    @property
    def gate(self) -> Path:
        """Results of the equivalence gate."""
        return self.root / "gate"

    @property
    def cells(self) -> Path:
        """One folder per cell."""
        return self.root / "cells"

    @property
    def agent_errors(self) -> Path:
        """Stderr of the agent itself."""
        return self.root / "agent.err"

    @property
    def jobs(self) -> Path:
        """The queue's jobs that this run was handed over as."""
        return self.root / "jobs.json"

    def job_script(self, number: int) -> Path:
        """The batch script of one queue job."""
        return self.root / "jobs" / f"{number}.sh"

    def job_log(self, number: int) -> Path:
        """The output of one queue job."""
        return self.root / "jobs" / f"{number}.log"

    @property
    def interrupted(self) -> Path:
        """Trials that were cut off."""
        return self.root / "interrupted"

    def cell(self, cell_key: str) -> Path:
        """Everything of one cell."""
        return self.cells / path_part(cell_key, "cell's key")

    def cold(self, cell_key: str) -> TrialPaths:
        """The extra trial of a cell that starts with empty compile caches."""
        return self.trial(cell_key, "cold")

    def probe(self, cell_key: str) -> TrialPaths:
        """The untimed job that says what really ran."""
        return self.trial(cell_key, "probe")

    def attribution(self, cell_key: str) -> TrialPaths:
        """The untimed job that says which layer took which share of a step."""
        return self.trial(cell_key, "attribution")

    def ceilings_of(self, cell_key: str) -> TrialPaths:
        """The untimed job that measures what kernels reach here at most."""
        return self.trial(cell_key, "ceilings")

    @property
    def ceilings(self) -> Path:
        """What kernels reached at most on this machine."""
        return self.root / "ceilings.json"

    @property
    def caches(self) -> Path:
        """The private compile caches of all cells."""
        return self.root / "caches"

    def cache(self, cell_key: str) -> Path:
        """The private compile caches of a cell."""
        return self.caches / path_part(cell_key, "cell's key")

    @property
    def report(self) -> Path:
        """The page."""
        return self.root / "report.html"

    @property
    def results(self) -> Path:
        """What the page says of the cells, as data."""
        return self.root / "results.json"

    def environment(self, name: str) -> Path:
        """What a framework environment is."""
        return self.root / "environments" / f"{path_part(name, 'environment')}.json"

    def trial(self, cell_key: str, trial: TrialName | str) -> TrialPaths:
        """One trial of one cell."""
        return TrialPaths(self.cell(cell_key) / str(trial), self.root)
