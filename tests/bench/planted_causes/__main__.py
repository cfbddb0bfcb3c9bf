"""Plant causes into real runs, and hold what `bakeoff explain` says of them to what was planted.

    python -m tests.bench.planted_causes DIRECTORY [FRAMEWORK/CAUSE …] [--runs 5]

Each run times two cells by turns, whole as `bakeoff run` does it: gate, proofs, blocks, then the
jobs that trace steps. One has the code that is installed, the other a copy in which one thing is
slow. Every plant trains the same network: what changes training the gate and the proofs refuse, and
what multiplies more is refused for its multiplications. `FRAMEWORK/nothing` is the same cell twice;
`FRAMEWORK/label` computes in float32 what is called bf16, which JAX does on a CPU anyhow, and
`FRAMEWORK/threads` uses one thread of the two that were asked for. `FRAMEWORK/exchange` and
`torch/horovod` are of two ranks, which exchange a message more.

Named first: the planted part is the largest one of the account, and told from noise. Its size is
held to the sleep that was planted, and where something computes more, to the whole difference of
the timed steps, which no trace decides. Of each run's blocks more are drawn with replacement
(``drawn_blocks.py``), which are held to the same. A run that was cut off goes on; one that is
finished is read, once its disturbed steps were traced again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.analysis.explain.cells import explained
from harness.analysis.explain.explanation import Explanation
from harness.analysis.explain.words import causes, part_name
from harness.analysis.read import read_results
from harness.gate.gate import ensure
from harness.plan.plan import Plan, make_plan
from harness.plan.two_sides import Side, two_sided
from harness.platform.platform import load_platform
from harness.ranks.payload import Payload, gather
from harness.run import session
from harness.run.progress import Progress, SessionResult
from harness.run.setup import survey
from harness.run.trust import Trust
from harness.sections.contract.gather import gather_limits
from harness.store.outcome import Outcome
from harness.study.study import load_study
from harness.verdicts.ended_trial import doubt
from tests.adapters.test_planted_causes import ADAPTERS, ALLOWED, Edit
from tests.bench.planted_causes.drawn_blocks import drawn_pairs
from tests.bench.planted_causes.plants import CAUSES, Cause

RUNS = 5
DRAWN = 100
"""Sets of blocks for each run."""
OWN_CODE = "payload.2"
STUDY = """title = "Planted causes"
[matrix]
workload = "tinycnn"
framework = "{framework}"
batch = 16
precision = "{precision}"
threads = {threads}
{ranks}[measure]
trials = 6
warmup = "3 steps"
until = "2 s"
tolerate = ["contended", "throttled", "stalled"]
"""


class Quiet:
    """Say only what is out of the ordinary."""

    def progressed(self, progress: Progress) -> None:
        """Draw nothing."""

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        """Name a trial that failed."""
        if not outcome.is_ok:
            print(f"    {progress.trial}: {outcome.ended}: {outcome.reason}", flush=True)

    def doing(self, text: str) -> None:
        """Draw nothing."""

    def noted(self, text: str) -> None:
        """Draw nothing."""


def planted(folder: Path, edits: tuple[Edit, ...]) -> Payload:
    """Give the payload with one thing made slow in it; the files that differ lie in a folder."""
    payload = gather()
    files = dict(payload.files)
    for place, old, new in edits:
        inside = f"{ADAPTERS}/{place}"
        source = files[inside]
        assert source is not None
        text = source.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{place} has changed: {old}"
        files[inside] = folder / inside
        (folder / inside).parent.mkdir(parents=True, exist_ok=True)
        (folder / inside).write_text(text.replace(old, new), encoding="utf-8")
    return replace(payload, files=files)


def measure(run: Path, framework: str, cause: Cause) -> SessionResult:
    """Measure both cells, or go on where an earlier session was cut off."""
    if (run / "run.json").exists():
        return session.resume(
            run, observer=Quiet(), rejects=doubt, ensure=ensure, trust=Trust(payload=True)
        )
    file = run.parent / f"{run.name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    strategy = cause.strategies.get(framework)
    ranks = "" if strategy is None else f'ranks_per_node = 2\nstrategy = "{strategy}"\n'
    study = STUDY.format(
        framework=framework, precision=cause.precision, threads=cause.threads, ranks=ranks
    )
    file.write_text(study, encoding="utf-8")
    plan, own = _two_sided(file, cause)
    return session.start(
        plan,
        root=run,
        study_text=file.read_text(encoding="utf-8"),
        observer=Quiet(),
        rejects=doubt,
        ensure=ensure,
        basis=survey(plan, own),
        is_trusted=True,
    )


def _two_sided(file: Path, cause: Cause) -> tuple[Plan, dict[str, Payload]]:
    plan = make_plan(load_study(file), load_platform())
    edits = cause.edits[file.parent.name]
    folder = OWN_CODE if edits else None
    sides = Side("installed", plan, None), Side("planted", plan, folder)
    return two_sided(file.stem, *sides), (
        {OWN_CODE: planted(file.with_suffix(".code"), edits)} if edits else {}
    )


def accounts(run: Path, drawn: int) -> Iterator[Explanation]:
    """Explain the difference between a run's two cells, then of so many sets of drawn blocks."""
    results = read_results([run])
    clean, slow = sorted(results.cells, key=lambda one: one.label)
    evidence = gather_limits(results)
    yield explained(results, evidence, clean, slow)
    for pair in drawn_pairs((clean, slow), drawn, seed=results.runs[0].seed):
        yield explained(results, evidence, *pair)


def verdict(told: Explanation, cause: Cause) -> tuple[bool, float | None, str]:
    """Say whether the cause was named first, by how much its size missed, and what was said."""
    if cause.refused_as:
        return told.is_refused and cause.refused_as in told.refusal, None, told.refusal
    if cause.said_first:
        said = next(causes(told, "A", "B"), told.refusal)
        return cause.said_first in said, None, said
    if told.refusal:
        return not cause.part and not told.is_refused, None, told.refusal
    if not cause.part:
        names = ", ".join(part_name(one) for one in told.causes)
        return not names, None, f"the steps differ, by {names or 'no part that can be told'}"
    first = told.terms[0]
    wanted = cause.seconds or told.difference_s
    parts = {cause.part, cause.with_it}
    size_s = sum(one.difference_s for one in told.terms if part_name(one) in parts)
    miss = size_s / wanted - 1
    said = (
        f"{part_name(first)} first, {1e3 * size_s:.2f} ms told, "
        f"{1e3 * wanted:.2f} planted; the steps differ by {1e3 * told.difference_s:.2f}"
    )
    is_named = part_name(first) in parts and told.first.label.endswith("B")
    if not first.is_told:
        said += "; not told from noise"
    return is_named and first.is_told, miss, said


def asked(pairs: list[str]) -> Iterator[tuple[str, str]]:
    """Give framework and cause of what is to be planted; everything where nothing is named."""
    known = [f"{framework}/{name}" for name, one in CAUSES.items() for framework in one.edits]
    for one in pairs or known:
        if one not in known:
            raise SystemExit(f"{one}: known are {', '.join(known)}")
        framework, _, cause = one.partition("/")
        yield framework, cause


def main() -> None:
    """Measure what is missing, and print what was told of each run, and one line a cause."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("pairs", nargs="*", metavar="FRAMEWORK/CAUSE")
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    lines = []
    for framework, name in asked(given.pairs):
        cause, answers, drawn = CAUSES[name], [], []
        sets = DRAWN if cause.part else 0
        for number in range(1, given.runs + 1):
            run = given.directory.resolve() / framework / f"{name}-{number}"
            if measure(run, framework, cause).interrupted:
                raise SystemExit(f"{run}: cut off; the same command goes on")
            first, *more = (verdict(one, cause) for one in accounts(run, sets))
            answers.append(first)
            drawn.extend(more)
            print(f"{framework}/{name} {number}: {first[2]}", flush=True)
        right, of_drawn = (sum(one[0] for one in told) for told in (answers, drawn))
        near = sum(miss is not None and abs(miss) <= ALLOWED for _, miss, _ in answers)
        named = f"{cause.part} first" if cause.part else "nothing explained"
        word = cause.refused_as or cause.said_first
        what = f"“{word}”" if word else named
        size = f", its size within {ALLOWED:.0%} in {near}" if cause.part else ""
        lines.append(f"{framework}/{name}: {what} in {right} of {len(answers)}{size}")
        if cause.part:
            lines[-1] += f"; of drawn blocks in {of_drawn} of {len(drawn)}"
    print("\n".join(lines))


if __name__ == "__main__":
    main()
