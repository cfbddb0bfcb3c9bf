"""Let each modifying call below a run's directory fail, one a session; a resume completes the run.

The calls of one undisturbed run are written down first, in their order: its first is part 0. What
differs from that run after a fault and its resume is a finding, and so is whatever a person would
complain of: a stack trace, silence, or more than one message about one fault.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.store.files import write_whole
from tests.gauntlet import small_run
from tests.gauntlet.command import MARK, Ended, left_over, run
from tests.gauntlet.injector import CONTROL, TRACE, Call, Counted, Fault, Injector, told_apart
from tests.gauntlet.messages import problems
from tests.gauntlet.part import Part, Stage

BLOCKS = 2
PATIENCE_S = 120.0
_OTHERS = (errno.EIO, errno.EDQUOT, errno.EINTR)
_EVERY = 10
"""Of so many calls one also fails with another error, and one with all that follow it."""
_TIMES = 3
"""How often a call that does not come up is waited for: readings are as many as time allows."""
_AS_TIME_ALLOWS = re.compile(r"report-data(/timeline-\d+\.csv\.gz)?$")
"""Files that are as many as there were readings, and their folder."""
_EVIDENCE = re.compile(r"(interrupted(/|$)|agent\.err$)")
"""What may be there only after a fault."""


@dataclass
class _Reference:
    """The undisturbed run: the calls that it made, and what it left."""

    folder: Path | None = None
    calls: tuple[Call, ...] = ()
    contents: frozenset[str] = frozenset()
    marks: frozenset[str] = frozenset()


_reference = _Reference()


def keep_in(folder: Path) -> None:
    """Keep the calls of the undisturbed run beside the parts that are numbered by them."""
    _reference.folder = folder


def _undisturbed() -> _Reference:
    """Make the undisturbed run, or take what an earlier lane wrote down of it."""
    if _reference.calls:
        return _reference
    here = Path(os.environ.get("TMPDIR", "/tmp")) / f"bakeoff-faults-{os.getpid()}"
    kept = (_reference.folder or here) / "calls.txt"
    here.mkdir(parents=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    try:
        with kept.with_name("calls.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.environ[TRACE] = str(here / "trace")
            place, ended, _ = _session(here / "undisturbed", None)
            del os.environ[TRACE]
            if ended is None or ended.code != 0:
                raise RuntimeError(f"a run that nothing disturbs ends badly: {ended}")
            if not kept.exists():
                write_whole(kept, (here / "trace").read_bytes())
        _reference.calls = tuple(told_apart(kept.read_text().splitlines()))
        _reference.contents = small_run.contents(place)
        _reference.marks = frozenset(mark for _, mark in _marks(place))
    finally:
        shutil.rmtree(here)
    return _reference


def parts() -> int:
    """Count the modifying calls of the undisturbed run."""
    return len(_undisturbed().calls)


def faults_of(number: int) -> list[Fault]:
    """Give the faults of one part: a full disk at this call, at some also something else."""
    call = _undisturbed().calls[number]
    faults = [Fault(call)]
    if number % _EVERY == 0:
        faults.append(Fault(call, _OTHERS[number // _EVERY % len(_OTHERS)]))
    if number % _EVERY == 5:
        faults.append(Fault(call, stays=True))
    return faults


def make(seed: int, number: int, folder: Path) -> Part:
    """Let one call fail in each of this part's ways."""
    del seed  # every call is tried
    part = Part()
    for index, fault in enumerate(faults_of(number)):
        here = folder / str(index)
        if not any(_suffer(part, fault, here) for _ in range(_TIMES)):
            part.counts["calls that did not come up"] += 1
        shutil.rmtree(here, ignore_errors=True)
    return part


def _session(here: Path, fault: Fault | None) -> tuple[Path, Ended | None, Counted]:
    shutil.rmtree(here, ignore_errors=True)
    place = small_run.write(here, cells=1, blocks=BLOCKS)
    injector = Injector(os.environ[CONTROL])
    injector.arm(place.parent, fault)
    ended = run(*small_run.RUN, cwd=here, told=here / "told", patience_s=PATIENCE_S)
    return place, ended, injector.disarm()


def _suffer(part: Part, fault: Fault, here: Path) -> bool:
    """Run with a fault, look at what was said, and go on without it; tell whether it happened."""
    place, ended, counted = _session(here, fault)
    if not counted.failed:
        return False
    part.counts["faults"] += 1
    if fault.error == errno.ENOSPC and not fault.stays:
        part.counts["calls of the undisturbed run"] += 1
    part.counts[f"of {fault.call.name}"] += 1
    where = {"fault": str(fault), "call": str(fault.call)}
    _judge(part, ended, place, where)
    before = small_run.finished(place)
    again = _go_on(part, place, here / "told")
    if again is None:
        part.found("hang of the resume", **where)
    elif again.code != 0 or again.has_traceback or problems(again.errors):
        part.found("resume failed", code=again.code, said=again.last_words[-600:], **where)
    small_run.compare(part, before, small_run.finished(place), **where)
    small_run.check_whole(part, place, trials=BLOCKS, **where)
    _compare(part, place, where)
    if left := left_over(os.environ[MARK], 10.0):
        part.found("processes left", lines=left, **where)
    return True


def _judge(part: Part, ended: Ended | None, place: Path, where: dict[str, str]) -> None:
    """Record what a person would complain of: a stack trace, silence, or too many words."""
    if ended is None:
        part.found("hang", **where)
        return
    part.saw("seconds of a run", ended.seconds)
    shown = " ".join(ended.output.split())
    said = problems(ended.errors) + [mark for _, mark in _new_marks(place) if mark in shown]
    part.counts[f"{len(said)} messages, ended with {ended.code}"] += 1
    if ended.has_traceback:
        part.found("traceback", said=ended.last_words, **where)
    elif ended.code not in (0, 1, 2):
        part.found("exit code", code=ended.code, said=ended.last_words[-300:], **where)
    elif len(said) > 1:
        part.found("more than one message", said=said, **where)
    elif not said and (ended.code or _lacks(place)):
        part.found("silent", code=ended.code, lacks=_lacks(place), **where)


def _lacks(place: Path) -> list[str]:
    """Name what the undisturbed run has and this one has not, but for readings that it says of."""
    missing = _undisturbed().contents - small_run.contents(place)
    unread = tuple(f"{trial}/samples." for trial, _ in _new_marks(place))
    return sorted(
        one for one in missing if not _AS_TIME_ALLOWS.match(one) and not one.startswith(unread)
    )


def _new_marks(place: Path) -> list[tuple[str, str]]:
    """Give the marks that the undisturbed run's trials have not, each after its trial."""
    return [(trial, mark) for trial, mark in _marks(place) if mark not in _reference.marks]


def _marks(place: Path) -> list[tuple[str, str]]:
    return [
        (f"cells/{cell}/{trial.partition('.')[0]}", mark)
        for (cell, trial), one in small_run.outcomes(place).items()
        for mark in one["marks"]
    ]


def _go_on(part: Part, place: Path, told: Path) -> Ended | None:
    """Go on as the messages say: resume, begin anew, or try failed trials again."""
    resume = small_run.RESUME
    small_run.age(place)
    if not (place / "plan.json").is_file():
        part.counts["begun anew, nothing was there to resume"] += 1
        shutil.rmtree(place, ignore_errors=True)
        return run(*small_run.RUN, cwd=told.parent, told=told, patience_s=PATIENCE_S)
    again = run(*resume, cwd=told.parent, told=told, patience_s=PATIENCE_S)
    if again is None or again.code != 1 or "--retry-failed" not in again.errors:
        return again
    part.counts["resumed with failed trials tried again"] += 1
    more = (*resume, "--retry-failed")
    return run(*more, cwd=told.parent, told=told, patience_s=PATIENCE_S)


def _compare(part: Part, place: Path, where: dict[str, str]) -> None:
    """Record what a completed run lacks, or has more, than the undisturbed one."""
    if lacks := _lacks(place):
        part.found("lacks after the resume", lacks=lacks[:5], **where)
    more = small_run.contents(place) - _undisturbed().contents
    expected = (_AS_TIME_ALLOWS, _EVIDENCE)
    if odd := sorted(one for one in more if not any(each.match(one) for each in expected)):
        part.found("more after the resume", more=odd[:5], **where)


STAGE = Stage("faults", "input and output that fails", parts, make, "faults")
