"""Give every parser damaged input: it reads it or refuses it by name, soon and in little memory."""

from __future__ import annotations

import mmap
import os
import pickle
import random
import resource
import select
import signal
import struct
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tests.gauntlet.mutations import damaged
from tests.gauntlet.parsers.every import PARSERS
from tests.gauntlet.parsers.parser import ROOT, Parser
from tests.gauntlet.part import Part, Stage

INPUTS = 1_000_000
"""Of the long form, to all parsers together."""
INPUTS_OF_A_PART = 5_000
LONGEST_S = 5.0
MOST_BYTES = 1 << 30
_ADDRESSES = 8 << 30
"""What may be mapped: a sparse file's size costs nothing."""
_PROGRESS = struct.Struct("<q")
_STUCK_S = 30.0
_WHOLE = sum(parser.share for parser in PARSERS)


@dataclass
class _Asked:
    inputs: int = INPUTS


_asked = _Asked()


def ask_for(inputs: int) -> None:
    """Choose how many inputs there are in all."""
    _asked.inputs = inputs


def _chunks() -> list[tuple[Parser, int, int]]:
    """Cut each parser's share of the inputs into parts: which of it, and how many inputs."""
    found = []
    for parser in PARSERS:
        count = max(1, round(_asked.inputs * parser.share / _WHOLE))
        starts = range(0, count, INPUTS_OF_A_PART)
        found += [
            (parser, number, min(INPUTS_OF_A_PART, count - start))
            for number, start in enumerate(starts)
        ]
    return found


def parts() -> int:
    """Count the parts."""
    return len(_chunks())


def make(seed: int, number: int, folder: Path) -> Part:
    """Give one parser a part of its inputs."""
    parser, chunk, count = _chunks()[number]
    return fuzz(parser, seed, chunk, count, folder)


def fuzz(parser: Parser, seed: int, chunk: int, count: int, folder: Path) -> Part:
    """Give a parser inputs in a process of its own, and another where that one dies of one."""
    part = Part()
    seeds = parser.examples(folder)
    progress = mmap.mmap(-1, _PROGRESS.size)
    first = 0
    while first < count:
        progress[:] = _PROGRESS.pack(first)
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(reader)
                made = _feed(
                    parser, seeds, f"{seed}/{chunk}", range(first, count), folder, progress
                )
                with os.fdopen(writer, "wb") as pipe:
                    pickle.dump(made, pipe)
                code = 0
            except BaseException:  # noqa: BLE001  a fault of the gauntlet's own: said, then dead
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(writer)
        said = _heard(reader, progress)
        if not said:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if said:
            part.add(pickle.loads(said))
            break
        (at,) = _PROGRESS.unpack(progress)
        part.counts["inputs"] += at - first + 1
        how = os.waitstatus_to_exitcode(status)
        part.found("death", parser=parser.name, input=f"{seed}/{chunk}/{at}", code=how)
        first = at + 1
    return part


def _heard(reader: int, progress: mmap.mmap) -> bytes:
    """Read what a process says at its end; nothing if it makes no progress any more."""
    said, before = b"", b""
    with os.fdopen(reader, "rb") as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], _STUCK_S)
            if not ready:
                if (now := progress[:]) == before:
                    return b""
                before = now
                continue
            chunk = os.read(pipe.fileno(), 1 << 16)
            if not chunk:
                return said
            said += chunk


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"longer than {LONGEST_S:.0f} s")


def _feed(
    parser: Parser,
    seeds: object,
    name: str,
    numbers: range,
    folder: Path,
    progress: mmap.mmap,
) -> Part:
    assert isinstance(seeds, list | tuple)
    part, known = Part(), set[tuple[str, ...]]()
    signal.signal(signal.SIGALRM, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for example in seeds:
        try:
            parser.parse(example, folder)
        except Exception as problem:  # noqa: BLE001  then nothing is learnt from damaging it
            part.found("refuses what is valid", parser=parser.name, error=repr(problem)[:300])
    least = _peak()
    for number in numbers:
        progress[:] = _PROGRESS.pack(number)
        chance = random.Random(f"{parser.name}/{name}/{number}")
        data = damaged(seeds, chance, is_json=parser.is_json)
        began = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
        try:
            parser.parse(data, folder)
            part.counts["read"] += 1
        except parser.refuses as problem:
            part.counts["refused"] += 1
            if not str(problem).strip():
                part.found("no words", parser=parser.name, input=f"{name}/{number}")
        except Exception as problem:  # noqa: BLE001  this is what is looked for
            where = _place(problem)
            part.counts["tracebacks"] += 1
            if (kind := (type(problem).__name__, *where)) not in known:
                known.add(kind)
                part.found(
                    "traceback",
                    parser=parser.name,
                    input=f"{name}/{number}",
                    error=f"{type(problem).__name__}: {problem}"[:300],
                    where=list(where),
                    data=repr(data[:200]),
                )
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        part.counts["inputs"] += 1
        part.saw("seconds of an input", time.perf_counter() - began)
        if (grown := _peak() - least) > MOST_BYTES:
            part.found("memory", parser=parser.name, input=f"{name}/{number}", bytes=grown)
            least = _peak()
    part.saw("bytes of a parser", _peak() - least)
    return part


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _place(problem: BaseException) -> tuple[str, ...]:
    """Name the innermost of our lines in a stack trace, and the one that called it."""
    ours = [
        f"{Path(frame.filename).relative_to(ROOT)}:{frame.lineno}"
        for frame in traceback.extract_tb(problem.__traceback__)
        if frame.filename.startswith(str(ROOT / "harness"))
    ]
    return tuple(ours[-2:])


STAGE = Stage("parsers", "damaged input to parsers", parts, make, "inputs")
