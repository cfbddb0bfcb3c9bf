"""Open planted runs with every verb: nothing outside is written, run or fetched."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import random
import re
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from tests.gauntlet import small_run
from tests.gauntlet.attacks import FIRED, URL, Attack, attacks
from tests.gauntlet.command import Ended, run
from tests.gauntlet.parsers.traces import TRACED
from tests.gauntlet.part import Part, Stage
from tests.outcomes import seal_all
from tests.screened_runs import screened

PATIENCE_S = 60.0
MOST_BYTES = 1 << 30
_RUN = f"runs/{small_run.NAME}"
VERBS = (
    ("show", _RUN),
    ("list", "runs"),
    ("status", _RUN),
    ("watch", _RUN, "--once"),
    ("sql", _RUN, "SELECT * FROM trials"),
    ("sql", _RUN, "SELECT count(*) FROM samples"),
    ("export", _RUN, "--to", "csv", "--table", "trials"),
    ("export", _RUN, "--to", "json"),
    ("export", _RUN, "--to", "junit"),
    ("export", _RUN, "--to", "trace"),
    ("export", _RUN, "--to", "svg"),
    ("export", _RUN, "--to", "latex"),
    ("export", _RUN, "--to", "methods"),
    ("export", _RUN, "--to", "bibtex"),
    ("export", _RUN, "--to", "markdown", "--table", "trials"),
    ("explain", _RUN, "null", "other"),
    ("compare", _RUN, "other"),
    ("compare", "--now", _RUN, "other"),
    ("predict", _RUN, "--nodes", "2"),
    ("report", _RUN),
    ("cancel", _RUN),
    ("resume", _RUN),
    ("resume", _RUN, "--more", "1"),
)
VERBS_OF_SCREENS = (
    ("screen", "--of", _RUN),
    ("screen", "--of", _RUN, "--json"),
    ("export", _RUN, "--to", "csv", "--table", "nodes"),
    ("report", _RUN),
)
_RECORDED = Path(__file__).parents[1] / "store" / "recorded"
_COMMANDS = re.compile(r"\\(input|write18|immediate|openout)\b")


def _scratch() -> Path:
    return Path(os.environ.get("TMPDIR", "/tmp")) / f"bakeoff-hostile-{os.getpid()}"


@cache
def _small() -> Path:
    """Make the run that copies are taken from, once."""
    place = small_run.write(_scratch(), cells=1, blocks=2)
    run(*small_run.RUN, cwd=_scratch(), told=_scratch() / "told")
    _lay_untimed_jobs(place)
    return place


@cache
def _screen() -> Path:
    """Make a screen of nodes that copies are taken from, once."""
    return screened(_scratch() / "screens" / small_run.NAME, slow=3)


def _lay_untimed_jobs(run_folder: Path) -> None:
    """Add what other frameworks leave of where their steps' time goes, and of the machine."""
    (cell,) = (run_folder / "cells").iterdir()
    for kind, job in (("attributed", "attribution"), ("ceilings", "ceilings")):
        found = min((_RECORDED / kind).glob(f"cells/*/{job}"))
        shutil.copytree(found, cell / job, dirs_exist_ok=True)
    (cell / "attribution" / "traced.json").write_text(json.dumps(TRACED))
    shutil.copy(_RECORDED / "ceilings" / "ceilings.json", run_folder)


def make(seed: int, number: int, folder: Path) -> Part:
    """Plant one attack, and open it with each verb, in an order of chance."""
    part = Part()
    attack = list(attacks())[number]
    chance = random.Random(f"{seed}/hostile/{number}")
    with _listener(part, attack) as url:
        os.environ[URL] = url
        for verb in chance.sample(VERBS, len(VERBS)):
            _open(part, attack, verb, _small(), folder / "lane")
            part.counts["openings"] += 1
        for verb in VERBS_OF_SCREENS:
            try:
                _open(part, attack, verb, _screen(), folder / "lane")
            except (OSError, ValueError, LookupError):
                # It was planted in the run above, so what it aims at is not in a screen.
                part.counts["openings that no screen has"] += 1
            else:
                part.counts["openings"] += 1
    part.counts["attacks"] += 1
    return part


@contextmanager
def _listener(part: Part, attack: Attack) -> Iterator[str]:
    """Listen where what is planted points to; record whoever asks."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield f"http://127.0.0.1:{server.getsockname()[1]}/x"
        try:
            server.accept()[0].close()
            part.found("fetched", attack=attack.name)
        except BlockingIOError:
            pass


def plant(attack: Attack, base: Path, here: Path) -> Path:
    """Lay out a copy of the run with an attack in it, beside what it aims at."""
    shutil.rmtree(here, ignore_errors=True)
    place = here / _RUN
    no_code = shutil.ignore_patterns("payload")
    for copy in (place, here / "other"):
        shutil.copytree(base, copy, ignore=no_code)
    shutil.copytree(_small() / "payload", place / "payload", copy_function=os.link)
    outside = place.parent / "outside"
    (outside / "folder").mkdir(parents=True)
    for name in ("victim", "folder/victim", "folder/outcome.json"):
        (outside / name).write_text("do not touch")
    attack.plant(place)
    seal_all(place)
    return place


def _open(part: Part, attack: Attack, verb: tuple[str, ...], base: Path, here: Path) -> None:
    place = plant(attack, base, here)
    (here / "home").mkdir()
    os.environ["HOME"] = str(here / "home")
    before = _seen(here, place)
    ended = run(*verb, cwd=here, told=here / "told", patience_s=PATIENCE_S)
    where = {"attack": attack.name, "verb": " ".join(verb[:4])}
    _judge(part, ended, verb, where)
    now = _seen(here, place)
    for path, was in before.items():
        if now.get(path) != was:
            part.found("written outside", path=path, became=str(now.get(path)), **where)
    new = {one for one in now.keys() - before.keys() if not one.startswith("home/")}
    if new:
        part.found("made outside", paths=sorted(new)[:5], **where)
    if (place.parent / FIRED).exists():
        part.found("ran", **where)
    shutil.rmtree(here)


def _judge(part: Part, ended: Ended | None, verb: tuple[str, ...], where: dict[str, str]) -> None:
    if ended is None:
        part.found("hang", **where)
        return
    part.saw("seconds of a verb", ended.seconds)
    part.saw("bytes of a verb", ended.memory_bytes)
    if ended.has_traceback:
        part.found("traceback", said=ended.last_words[-700:], **where)
    elif ended.code not in (0, 1, 2):
        part.found("exit code", code=ended.code, said=ended.last_words[-300:], **where)
    elif ended.code and not (ended.errors + ended.output).strip():
        part.found("silent failure", **where)
    if ended.memory_bytes > MOST_BYTES:
        part.found("memory", bytes=ended.memory_bytes, **where)
    if any(one in ended.output + ended.errors for one in ("\x1b", "\x9b", "\x07")):
        part.found("escape sequence", **where)
    if "svg" in verb and ended.code == 0:
        drawn = list(ElementTree.fromstring(ended.output).iter())
        active = [one.tag for one in drawn if one.tag.endswith(("script", "foreignObject"))]
        active += [name for one in drawn for name in one.attrib if name.lower().startswith("on")]
        if active:
            part.found("active drawing", what_is=active[:3], **where)
    if verb[-1] in ("latex", "methods", "bibtex") and _COMMANDS.search(ended.output):
        part.found("command of TeX", said=ended.output[-700:], **where)
    if "csv" in verb:
        cells = [cell for row in csv.reader(io.StringIO(ended.output)) for cell in row]
        if bad := [one for one in cells if one.startswith(("=", "@", "+"))]:
            part.found("formula", cells=bad[:2], **where)


def _seen(here: Path, run_folder: Path) -> dict[str, str]:
    """Give what lies beside the run: each file's digest, each folder."""
    found = {}
    for parent, folders, names in os.walk(here):
        folders[:] = [one for one in folders if Path(parent, one) != run_folder]
        for name in folders + names:
            path = Path(parent, name)
            if path.parent == here and path.stem == "told":
                continue
            mode = path.lstat().st_mode
            content = path.read_bytes() if stat.S_ISREG(mode) else b""
            digest = hashlib.sha256(content).hexdigest()[:12]
            found[str(path.relative_to(here))] = f"{mode:o} {digest}"
    return found


STAGE = Stage(
    "hostile", "planted runs opened by every verb", lambda: len(list(attacks())), make, "openings"
)
