"""Read what Caffe prints: glog lines of BVLC's and of Intel's flavour.

    [rank] I20261121 11:03:08.100050 21012 solver.cpp:239] Iteration 1 (…), loss = 1.58419

The rank is there under ``mpiexec -l`` only; the date has 4 or 8 digits; times are local, so the
program is run in UTC. Lines are read one by one and in any order: a log may be cut anywhere, mixed
with other output, or shuffled by what carried it. Traps, each met in a real log:

- the printed rate is garbage at first, and rounds to 1 iter/s for short steps: it is not read;
- the last "Iteration N, loss" is a forward pass without a step. A step's iteration also prints its
  learning rate, so an iteration counts where both lines were seen. Intel prints no rate otherwise;
- ``caffe time`` rounds its iterations to whole milliseconds: the two averages are read instead;
- an interrupted training prints "Optimization Done." and ends with code 0.

An iteration's line comes after its backward pass and before its update.
"""

from __future__ import annotations

import calendar
import re
import time
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from harness.worker.last_words import last_words

_LINE = re.compile(
    r"^(?:\[(?P<rank>\d{1,9})\] ?)?(?P<level>[IWEF])(?P<date>\d{8}|\d{4}) +"
    r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)\.(?P<us>\d{6}) +\d+ +(?P<file>[\w.+-]+):\d+\] ?"
    r"(?P<text>.*)$",
    re.ASCII,
)
_COUNT = r"(\d{1,18})"
_NUMBER = r"([-+]?(?:nan|inf|(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[-+]?\d{1,4})?))"
_LOSS = re.compile(r"^Iteration " + _COUNT + r"(?: \([^)]*\))?, loss = " + _NUMBER + r"$", re.ASCII)
_RATE = re.compile(r"^Iteration " + _COUNT + ", lr = " + _NUMBER + r"$", re.ASCII)
_PASS = re.compile(r"^Average (Forward|Backward) pass: " + _NUMBER + r" ms\.$", re.ASCII)
_LAYER = re.compile(r"^ *(\S+)\t(forward|backward): " + _NUMBER + r" ms\.$", re.ASCII)
_SETUP = re.compile(r"^Setting up (\S+)$")
_FIELD = re.compile(r"^(?:\[\d+\] ?)?\s*(?:\}|[a-z]\w* \{|[a-z]\w*: (?:\"[^\"]*\"|[-\w.+]+))\s*$")
"""A line of a prototxt: Caffe prints each net that it sets up."""
_ENGINE = re.compile(r'^engine: "([A-Z0-9]{1,16})"\s*$')
"""Of a whole net, which Intel's flavour prints as it sets it up; a layer's own is indented."""
_SHAPE = re.compile(r"^Top shape: ((?:\d{1,18} +)*)\(\d+\)$", re.ASCII)


class Line(NamedTuple):
    """One glog line."""

    rank: int
    level: str
    wall_ns: int
    file: str
    text: str


class Step(NamedTuple):
    """An iteration whose backward pass ended at a time."""

    iteration: int
    wall_ns: int
    loss: float


def parse(text: str, near_ns: int) -> Optional[Line]:
    """Read a line, or None if it is not glog's; a year that is not printed is the nearest."""
    match = _LINE.match(text.rstrip("\r\n"))
    if match is None:
        return None
    date = match["date"]
    clock = [int(match[part]) for part in ("h", "m", "s")]
    month, day = int(date[-4:-2]), int(date[-2:])
    if len(date) == 8 and int(date[:4]) < 1970:
        return None
    if not (1 <= month <= 12 and 1 <= day <= 31 and clock < [24] and max(clock) < 62):
        return None

    def wall_ns(year: int) -> int:
        seconds = calendar.timegm((year, month, day, *clock))
        return seconds * 10**9 + int(match["us"]) * 1000

    if len(date) == 8:
        when = wall_ns(int(date[:4]))
    else:
        now = time.gmtime(near_ns // 10**9).tm_year
        when = min(map(wall_ns, (now - 1, now, now + 1)), key=lambda ns: abs(ns - near_ns))
    return Line(int(match["rank"] or 0), match["level"], when, match["file"], match["text"])


def is_time_of_a_pass(text: str) -> bool:
    """Tell a line that says what a pass takes from one that says a password: "pass: 4.2 ms"."""
    line = parse(text, 0)
    return line is not None and _PASS.match(line.text) is not None


class Log:
    """What the lines so far come to, of one rank."""

    def __init__(self, near_ns: int, rank: int = 0) -> None:
        self._near_ns = near_ns
        self._rank = rank
        self._losses: Dict[int, Tuple[int, float]] = {}
        self._rates: Set[int] = set()
        self._setting_up = ""
        self.began_ns: Optional[int] = None
        """When the first iteration began."""
        self.passes: Dict[str, float] = {}
        """Mean seconds of "forward" and "backward", as ``caffe time`` counts them."""
        self.layers: Dict[str, Dict[str, float]] = {}
        """Mean seconds of each layer in both directions."""
        self.shapes: Dict[str, Tuple[int, ...]] = {}
        """Each layer's first top, where lines came in order."""
        self.engine: Optional[str] = None
        """Whose layers a net is set up with, where the program says so."""
        self.fatal: List[str] = []
        self.complaints: List[str] = []
        """Error lines, and what is neither glog's nor of a net or a stack: the end of it."""
        self.is_empty = True
        self.is_done = False
        self.is_stopped = False

    def add(self, text: str) -> Optional[Step]:
        """Take one line in; give the step that it completes, if any."""
        line = parse(text, self._near_ns)
        self.is_empty = self.is_empty and not text.strip()
        if line is None:
            named = _ENGINE.match(text)
            if named:
                self.engine = named[1]
            if not _FIELD.match(text):
                self.complaints = last_words([*self.complaints, text], 10)
        elif line.level == "F":
            self.fatal.append(line.text)
        elif line.rank == self._rank:
            if line.level == "E":
                self.complaints = [*self.complaints, line.text][-10:]
            return self._take(line)
        return None

    def steps(self) -> List[Step]:
        """Give the iterations that were steps, in order; time never stands still between two."""
        found = [self._step(iteration) for iteration in sorted(self._losses)]
        ordered: List[Step] = []
        for step in found:
            if step is not None and (not ordered or step.wall_ns > ordered[-1].wall_ns):
                ordered.append(step)
        return ordered

    def _step(self, iteration: int) -> Optional[Step]:
        if iteration not in self._rates or iteration not in self._losses:
            return None
        return Step(iteration, *self._losses[iteration])

    def _take(self, line: Line) -> Optional[Step]:
        text = line.text
        loss, rate = _LOSS.match(text), _RATE.match(text)
        if loss:
            heard = (line.wall_ns, float(loss[2]))
            # Of a repeated iteration the first counts, in whatever order the lines come.
            self._losses[int(loss[1])] = min(heard, self._losses.get(int(loss[1]), heard))
            return self._step(int(loss[1]))
        if rate:
            self._rates.add(int(rate[1]))
            return self._step(int(rate[1]))
        if text.startswith("Learning Rate Policy"):
            self.began_ns = line.wall_ns
        elif text.startswith("Optimization stopped early"):
            self.is_stopped = True
        elif text.startswith("Optimization Done"):
            self.is_done = True
        else:
            self._take_timing(text)
        return None

    def _take_timing(self, text: str) -> None:
        average, layer = _PASS.match(text), _LAYER.match(text)
        setup, shape = _SETUP.match(text), _SHAPE.match(text)
        if average:
            self.passes[average[1].lower()] = float(average[2]) / 1e3
        elif layer:
            self.layers.setdefault(layer[1], {})[layer[2]] = float(layer[3]) / 1e3
        elif setup:
            self._setting_up = setup[1]
        elif shape and self._setting_up:
            self.shapes.setdefault(self._setting_up, tuple(map(int, shape[1].split())))
