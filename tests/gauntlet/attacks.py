"""Plant in a copy of a run what somebody who sends it might: one attack at a time."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

FIRED = "fired"
"""The file beside a run that planted code makes."""
URL = "BAKEOFF_GAUNTLET_URL"
"""Names the variable with what planted pages ask for."""
CELL = "cells/CELL"
TRIAL = f"{CELL}/trial-1"
_AIMED_AT = (
    *("run.json", "plan.json", "provenance.json", "study.toml", "log.jsonl", "lock", "agent.err"),
    *("report.html", ".report.html.new", "results.json", ".results.json.new", "jobs.json"),
    *("environments/null.json", "gate/CELL.json", f"{TRIAL}/job.json", f"{TRIAL}/outcome.json"),
    *(f"{TRIAL}/events.0.jsonl", f"{TRIAL}/rank.0.out", f"{TRIAL}/rank.0.err"),
    *(f"{TRIAL}/samples.NODE.bin", f"{TRIAL}/samples.NODE.parquet"),
    *(f"{TRIAL}/.samples.NODE.parquet.new", f"{TRIAL}/.outcome.json.new", "jobs/1.sh"),
    *(f"{CELL}/attribution/events.0.jsonl", f"{CELL}/attribution/traced.json", "ceilings.json"),
    f"{CELL}/ceilings/events.0.jsonl",
)
_FOLDERS = (
    *("report-data", "cells", "gate", "environments", "payload", "caches", "interrupted", "jobs"),
    *(CELL, TRIAL, f"{CELL}/trial-9", f"{CELL}/attribution", f"{CELL}/ceilings", "caches/CELL"),
    *(".payload.new", f"{CELL}/.trial-3.new"),
)
_READ = (
    *("run.json", "plan.json", "log.jsonl", f"{TRIAL}/outcome.json", f"{TRIAL}/events.0.jsonl"),
    *(f"{CELL}/attribution/events.0.jsonl", f"{CELL}/attribution/traced.json", "ceilings.json"),
    f"{CELL}/ceilings/events.0.jsonl",
)
WORDS = (
    "\x1b]0;taken\x07\x1b[2J\x1b[31m<script>fetch('URL')</script>",
    '"><img src=URL onerror="window.fired=1"><svg onload=\'window.fired=1\'>',
    "=cmd|' /C touch FIRED'!A0",
    "</script><script>window.fired=1;new Image().src='URL'</script>",
    "{{ fired }}${FIRED}`touch FIRED`$(touch FIRED)",
    "\ud800\u202e\u2028\x9b31m",
    "../../outside",
    "\\input{/etc/passwd}\\immediate\\write18{touch FIRED}%$&#_^~",
    "x" * 20_000,
)
_NUMBERS = (2**63, -(2**63) - 1, 10**400, 1e308, float("nan"), float("-inf"), True, "7", None)


@dataclass(frozen=True)
class Attack:
    """One thing planted."""

    name: str
    plant: Callable[[Path], None]
    """Takes the run's copy; ``outside`` lies beside it."""


def _place(run: Path, name: str) -> Path:
    """Find a name's place in this run, whose cells and nodes have names of their own."""
    if "CELL" in name:
        name = name.replace("CELL", min(run.glob("cells/*")).name)
    if "NODE" in name:
        node = min(run.glob("cells/*/*/samples.*.bin")).name.split(".")[1]
        name = name.replace("NODE", node)
    return run / name


def _cleared(run: Path, name: str) -> Path:
    place = _place(run, name)
    if place.is_dir():
        place.rename(run.parent / "aside")
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _link(run: Path, name: str, aim: str) -> None:
    _cleared(run, name).symlink_to(run.parent / "outside" / aim)


def _pipe(run: Path, name: str) -> None:
    os.mkfifo(_cleared(run, name))


def _zeros(run: Path, name: str) -> None:
    place = _cleared(run, name)
    try:
        os.mknod(place, 0o644 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:  # only root makes devices
        place.symlink_to("/dev/zero")


def _sparse(run: Path, name: str) -> None:
    with _place(run, name).open("ab") as file:
        file.truncate(1 << 42)


def _deep(run: Path, name: str) -> None:
    _place(run, name).write_bytes(b"[" * 200_000)


def _long_line(run: Path, name: str) -> None:
    with _place(run, name).open("ab") as file:
        file.write(b'{"what": "' + b"y" * (64 << 20))


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _each(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [_each(one, change) for one in value]
    return change(value)


def _rewrite(run: Path, change: Callable[[str, Any], Any]) -> None:
    """Change the values of every JSON file and of every line of events."""
    for file in sorted(run.rglob("*.json*")):
        if "payload" in file.parts or file.is_symlink() or not file.is_file():
            continue
        lines = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
        changed = [json.dumps(change(file.name, json.loads(line))) for line in lines]
        file.write_text("\n".join(changed) + "\n")


_STRUCTURE = ("version", "key", "cell", "cell_key", "trial", "event", "what", "order", "phase")


def say_everywhere(run: Path, words: str) -> None:
    """Say something else in each text that is only told, wherever it stands."""
    words = words.replace("FIRED", str(run.parent / FIRED))
    words = words.replace("URL", os.environ.get(URL, "http://127.0.0.1:9/x"))

    def told(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: told(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return value if name in _STRUCTURE else [told(one, name) for one in value]
        is_told = name in _TOLD and isinstance(value, str)
        return words if is_told else value

    _rewrite(run, lambda _, value: told(value))
    (_place(run, TRIAL) / "rank.0.err").write_text(words, errors="surrogatepass")


_TOLD = (
    *("title", "question", "label", "reason", "message", "text", "why", "host", "model", "kernel"),
    *("hostname", "unit", "name", "note", "detail", "marks", "notes", "cpu_model", "command"),
    *("python", "null", "version_text", "bakeoff", "commit", "lower", "study"),
)


def _with_numbers(run: Path, number: Any) -> None:
    def change(value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return number if is_number and value not in (0, 1, 2) else value

    _rewrite(run, lambda _, value: _each(value, change))


def _edit(run: Path, name: str, **fields: Any) -> None:
    place = _place(run, name)
    place.write_text(json.dumps({**json.loads(place.read_text()), **fields}))


def _cell_key(run: Path, key: str) -> None:
    """Call a cell by a name that leads out of the run."""
    cell = min(run.glob("cells/*")).name
    for name in ("plan.json", "run.json", TRIAL + "/outcome.json"):
        place = _place(run, name)
        place.write_text(place.read_text().replace(cell, key))


def _code(run: Path, name: str, *, is_owed: bool = True) -> None:
    """Have a file of the payload leave a trace when it runs."""
    file = run / "payload" / name
    trace = f"open({str(run.parent / FIRED)!r}, 'w').close()\n"
    text = file.read_text()
    file.unlink()  # the copies share it
    head, mark, rest = text.partition("from __future__ import annotations\n")
    file.write_text(head + mark + trace + rest if mark else trace + text)
    if is_owed:
        _owe(run)


def _owe(run: Path) -> None:
    """Leave a trial to be run, so that a resume would run something."""
    (_place(run, TRIAL) / "outcome.json").unlink()


def _program(run: Path) -> str:
    program = run.parent / "outside" / "program"
    program.write_text(f"#!/bin/sh\ntouch {run.parent / FIRED}\nexit 1\n")
    program.chmod(0o755)
    return str(program)


def _interpreter(run: Path) -> None:
    """Name another interpreter in the plan."""
    place = run / "plan.json"
    plan = json.loads(place.read_text())
    plan["platform"]["frameworks"] = {"null": {"interpreter": _program(run)}}
    place.write_text(json.dumps(plan))
    _owe(run)


def _launcher(run: Path) -> None:
    """Have ranks reached through a program of the sender's."""
    program = _program(run)
    place = run / "plan.json"
    plan = json.loads(place.read_text())
    platform = plan["platform"]
    platform["launcher"] = {"name": "ssh", "settings": {"hosts": "h1", "program": program}}
    platform["container"] = {"engine": "bwrap", "image": program}
    place.write_text(json.dumps(plan))
    _owe(run)


def _jobs(run: Path) -> None:
    """Name options and other people's jobs as this run's."""
    job = {"number": 1, "job": "--user=root", "nodes": 1, "minutes": 1, "keys": [], "parts": 1}
    (run / "jobs.json").write_text(json.dumps({"version": 1, "jobs": [job]}))


def _texts(run: Path, sequence: Any) -> None:
    """Say that every cell trained a network on texts that have no such length."""
    place = _place(run, "plan.json")
    plan = json.loads(place.read_text())
    for cell in plan["cells"]:
        cell |= {"workload": "tinybert", "unit": "tokens"}
        cell["factors"]["sequence"] = sequence
    place.write_text(json.dumps(plan))


def _switch(run: Path, value: Any) -> None:
    """Say that every cell computed blocks twice, or did not, by what is neither."""
    place = _place(run, "plan.json")
    plan = json.loads(place.read_text())
    for cell in plan["cells"]:
        cell["factors"]["recompute"] = value
    place.write_text(json.dumps(plan))


def _host(run: Path) -> None:
    """Call a rank's host by a path."""
    place = _place(run, f"{TRIAL}/outcome.json")
    outcome = json.loads(place.read_text())
    for rank in outcome["ranks"]:
        rank["host"] = "../../../../../outside/host"
    place.write_text(json.dumps(outcome))


def _many(run: Path) -> None:
    """Lay the droppings of desktops everywhere."""
    for folder in [run, *(one for one in run.rglob("*") if one.is_dir())]:
        for name in (".DS_Store", "._x.json", "._outcome.json", "._trial-1"):
            (folder / name).write_bytes(b"\x00\x05\x16\x07")


def attacks() -> Iterator[Attack]:
    """Give every attack."""
    for name in _AIMED_AT:
        for aim in ("victim", "nothing-there"):
            yield Attack(f"{name} is a link to {aim}", partial(_link, name=name, aim=aim))
    for name in _FOLDERS:
        yield Attack(f"{name} is a link to a folder", partial(_link, name=name, aim="folder"))
    for how in (_pipe, _zeros, _sparse, _deep, _long_line):
        for name in _READ:
            yield Attack(f"{name}: {how.__name__[1:]}", partial(how, name=name))
    for number, words in enumerate(WORDS):
        yield Attack(f"words {number}", partial(say_everywhere, words=words))
    for number in _NUMBERS:
        yield Attack(f"numbers are {number!r:.20}", partial(_with_numbers, number=number))
    for length in (None, 0, -3, 0.5, "64", 65, 10**9):
        yield Attack(f"texts of {length!r} tokens", partial(_texts, sequence=length))
    for value in ("yes", 2, [True], {"blocks": True}):
        yield Attack(f"recompute is {value!r}", partial(_switch, value=value))
    for key in ("..", "../..", "../../outside/folder", "/etc", "", "-x", ".hidden"):
        yield Attack(f"a cell called {key!r}", partial(_cell_key, key=key))
    for name in ("harness/worker/__main__.py", "harness/worker/loop.py", "workloads/tinycnn.py"):
        yield Attack(f"{name} is edited", partial(_code, name=name))
        edit = partial(_code, name=name, is_owed=False)
        yield Attack(f"{name} is edited in a finished run", edit)
    for place in ("../outside/folder", "/tmp", "payload/../../outside", 7):
        edit = partial(_edit, name="run.json", payload=place)
        yield Attack(f"the payload is {place!r}", edit)
    yield Attack("another interpreter", _interpreter)
    yield Attack("another launcher", _launcher)
    yield Attack("other people's jobs", _jobs)
    yield Attack("a host called ../", _host)
    yield Attack("desktops' droppings", _many)
