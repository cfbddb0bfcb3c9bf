"""The verb `collect`: observe any command, and say what the hardware did meanwhile."""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.output import emit_json, note
from harness.errors import RunError, UsageError, nearest

if TYPE_CHECKING:
    from harness.collect.collector import RecordingResult
    from harness.store.samples.recording import Recording
    from harness.verdicts.results import Reading

_NOT_FOUND = 127
_BY_SIGNAL = 128


@dataclass(frozen=True)
class Observation:
    """What the hardware did while a command ran."""

    samples: Path
    table: Path | None
    """The samples as Parquet; None where that could not be written."""
    seconds: float
    stand_ins: Sequence[str]
    """Devices of which nothing below was measured."""
    unavailable: Mapping[str, str]
    """What could not be read, and why."""
    readings: Sequence[Reading]


@click.command("collect", context_settings={"ignore_unknown_options": True})
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to record (samples.NODE.TIME-PID.bin here).",
)
@click.option(
    "--rate",
    "rates",
    multiple=True,
    metavar="SOURCE=HZ",
    help="Readings per second of a source, or of all; 0 switches it off.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the readings as JSON.")
@click.argument("command_line", metavar="COMMAND…", nargs=-1, required=True)
def command(
    command_line: tuple[str, ...], *, output: Path | None, rates: tuple[str, ...], as_json: bool
) -> int:
    """Observe any command, and say what the hardware did meanwhile.

    Put -- before the command. Its input and output stay its own, and its exit code becomes ours.
    """
    from harness.collect.collector import Collector
    from harness.collect.sampler import Observed

    node = socket.gethostname()
    moment = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    name = f"samples.{node}.{moment}-{os.getpid()}.bin"
    path = (output or Path(name)).resolve()
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path}: nothing can be written into that folder. Name another: --output")
    chosen = dict(_rate(text) for text in rates)
    collector = Collector()
    stops = _Stops()
    began = time.monotonic_ns()
    try:
        process = subprocess.Popen(command_line)
    except OSError as problem:
        stops.restore()
        note(f"{command_line[0]}: {problem.strerror}")
        return _NOT_FOUND
    stops.begun(process)
    cpus = {0: sorted(os.sched_getaffinity(0))}
    devices = {0: os.environ.get("CUDA_VISIBLE_DEVICES")}
    collector.begin(path, Observed({0: process.pid}, cpus, devices, path.parent), chosen)
    try:
        # The process is left unreaped until its last figures are read.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        ended = time.monotonic_ns()
        seen = collector.end()
    finally:
        code = process.wait()
        stops.restore()
    _tell(path, seen, (began, ended), as_json=as_json)
    return code if code >= 0 else _BY_SIGNAL - code


class _Stops:
    """Who is asked to stop is the command: it decides, and what it did until then is recorded.

    A request that comes while it is being started waits for it; else it would be left alone.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._kept: dict[int, Any] = {}
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # the command ignores it as well
                self._kept[number] = signal.signal(number, self._heard)

    def _heard(self, number: int, _: object) -> None:
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)

    def begun(self, process: subprocess.Popen[bytes]) -> None:
        """Pass on what came, and what comes."""
        # A terminal's Ctrl-C reaches the command without us; not sooner, or it would ignore it too.
        self._kept[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._process = process
        for number in self._early:
            process.send_signal(number)

    def restore(self) -> None:
        """Let signals do what they did."""
        for number, handler in self._kept.items():
            signal.signal(number, handler)


def _rate(text: str) -> tuple[str, float]:
    from harness import plugins

    source, _, hertz = text.partition("=")
    known = ["all", *plugins.modules("samplers")]
    if source not in known:
        raise UsageError(f"--rate {text}: no source is called '{source}'.{nearest(source, known)}")
    try:
        rate = float(hertz)
    except ValueError:
        rate = math.nan
    if not math.isfinite(rate) or rate < 0:
        raise UsageError(
            f"--rate {text}: write SOURCE=HZ, for example --rate nvml=1 or --rate all=2"
        )
    return source, rate


def _tell(path: Path, seen: RecordingResult, span: tuple[int, int], *, as_json: bool) -> None:
    from harness.store.samples.recording import read_recording
    from harness.verdicts.hardware_use import NodeUse, Span, readings

    recording = read_recording(path) if path.is_file() else None
    if recording is None:
        note(f"Nothing was recorded: {seen.problem or 'the file is gone'}.")
        return
    if seen.problem:
        note(f"Recorded in part only: {seen.problem}.")
    table = _table(path, recording)
    node = str(recording.facts["node"])
    use = NodeUse(node, recording, (0,), Span(*span))
    figures = readings([use])
    if not as_json:
        note(f"Observed for {use.steady.seconds:.3g} s: {path}")
        for line in _in_words(seen.stand_ins, figures):
            note(line)
        return
    unread = dict(recording.unread())
    emit_json(Observation(path, table, use.steady.seconds, seen.stand_ins, unread, figures))


def _in_words(stand_ins: Sequence[str], figures: Sequence[Reading]) -> Iterator[str]:
    for device in stand_ins:
        yield f"  ! {device}: nothing below that is said of it was measured."
    if not figures:
        yield "  That was too short to tell anything."
    for one in figures:
        if one.mean or one.peak:
            yield _line(one)


def _table(path: Path, recording: Recording) -> Path | None:
    """Keep the samples as Parquet beside the raw file, for DuckDB and whatever else reads it."""
    from harness.store.files import write_whole
    from harness.store.samples import sample_parquet

    table = path.with_name(path.name.removesuffix(".bin") + ".parquet")
    try:
        write_whole(table, sample_parquet.as_parquet(recording, str(recording.facts["node"])))
    except RunError as problem:
        note(str(problem))
        return None
    return table


def _line(reading: Reading) -> str:
    from harness.analysis import numbers
    from harness.analysis.timelines.hardware_use import in_units

    scope = "command" if reading.scope == "rank:0" else reading.scope
    begin = f"  {scope:<20} {reading.name:<32} "
    if reading.unit == "bytes":
        amount, unit = numbers.size(reading.mean).split()
        most = "" if reading.peak is None else f"  (highest {numbers.size(reading.peak)})"
        return f"{begin}{amount:>10} {unit}{most}"
    mean, peak, unit = in_units(reading)
    most = "" if peak is None else f"  (highest {peak:.4g})"
    return f"{begin}{mean:>10.4g} {unit}{most}"
