"""This file is the verb `collect`: observe any command, and say what the hardware did meanwhile."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.collect.collector import Seen
    from harness.store.results import Reading

_NOT_FOUND = 127
_BY_SIGNAL = 128
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("collect", context_settings={"ignore_unknown_options": True})
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to record (samples.NODE.TIME.bin here).",
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
    path = (output or Path(f"samples.{node}.{moment}.bin")).resolve()
    chosen = dict(_rate(text) for text in rates)
    collector = Collector()
    began = time.monotonic_ns()
    try:
        process = subprocess.Popen(command_line)
    except OSError as problem:
        click.echo(f"{command_line[0]}: {problem.strerror}", err=True)
        return _NOT_FOUND
    cpus = {0: sorted(os.sched_getaffinity(0))}
    devices = {0: os.environ.get("CUDA_VISIBLE_DEVICES")}
    observed = Observed({0: process.pid}, cpus, devices, path.parent)
    # Who is asked to stop is the command: it decides, and what it did until then is recorded. A
    # terminal's Ctrl-C reaches it without us.
    keep = {number: signal.getsignal(number) for number in _STOPS}
    for number in _STOPS:
        signal.signal(number, lambda number, _: process.send_signal(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collector.begin(path, observed, chosen)
    try:
        # The process is left unreaped until its last figures are read.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        ended = time.monotonic_ns()
        seen = collector.end()
    finally:
        for number, handler in keep.items():
            signal.signal(number, handler)
        code = process.wait()
    _tell(path, seen, (began, ended), as_json=as_json)
    return code if code >= 0 else _BY_SIGNAL - code


def _rate(text: str) -> tuple[str, float]:
    source, _, hertz = text.partition("=")
    try:
        return source, float(hertz)
    except ValueError:
        raise UsageError(
            f"--rate {text}: write SOURCE=HZ, for example --rate nvml=1 or --rate all=2"
        ) from None


def _tell(path: Path, seen: Seen, span: tuple[int, int], *, as_json: bool) -> None:
    from harness.store.recording import read_recording
    from harness.store.usage import NodeUse, Span, readings

    recording = None if seen.problem else read_recording(path)
    if recording is None:
        click.echo(f"Nothing was recorded: {seen.problem}.", err=True)
        return
    node = str(recording.facts["node"])
    use = NodeUse(node, recording, (0,), Span(*span))
    told = readings([use])
    unread = {note["source"]: note["reason"] for note in recording.noted("unavailable")}
    if as_json:
        facts = {
            "samples": str(path),
            "seconds": use.steady.seconds,
            "stand_ins": list(seen.stand_ins),
            "unavailable": unread,
            "readings": [vars(one) for one in told],
        }
        click.echo(json.dumps(facts, indent=1))
        return
    click.echo(f"Observed for {use.steady.seconds:.3g} s: {path}", err=True)
    for one in told:
        if one.mean or one.peak:
            click.echo(_line(one), err=True)


def _line(reading: Reading) -> str:
    from reports import numbers
    from reports.usage import in_units

    scope = "command" if reading.scope == "rank:0" else reading.scope
    begin = f"  {scope:<20} {reading.name:<32} "
    if reading.unit == "bytes":
        amount, unit = numbers.size(reading.mean).split()
        most = "" if reading.peak is None else f"  (highest {numbers.size(reading.peak)})"
        return f"{begin}{amount:>10} {unit}{most}"
    mean, peak, unit = in_units(reading)
    most = "" if peak is None else f"  (highest {peak:.4g})"
    return f"{begin}{mean:>10.4g} {unit}{most}"
