"""A GPU day: the interpreter that is asked, the folder that is filled, how commands run in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from harness.environments.worker_variables import isolated
from tests.gpu.answer import Broken, NotPossible, Unfinished
from tests.gpu.host import ROOT
from tests.gpu.nvidia_smi import NvidiaSmi, Reading, number

FRAMEWORKS = ("torch", "jax")
SCRIPTS = Path(__file__).with_name("scripts")
"""What runs in the framework's interpreter: standard library and that framework."""

_GRACE_S = 30.0
_SURVEY_S = 120.0


@dataclass(frozen=True)
class Done:
    """A command that came to its end."""

    code: int
    out: str
    err: str

    @property
    def last(self) -> str:
        """Give the last line of its complaints, or its exit code."""
        lines = self.err.strip().splitlines() or self.out.strip().splitlines()
        return lines[-1] if lines else f"exit code {self.code}"

    def json(self) -> Any:
        """Read what it printed; say its complaint where that is no JSON."""
        try:
            return json.loads(self.out)
        except ValueError:
            raise Broken(f"no answer (exit code {self.code}): {self.last}") from None


@dataclass(frozen=True)
class Day:
    """What was asked for."""

    python: str
    """The interpreter that has the frameworks."""
    out: Path
    is_dry: bool = False
    """Whether this is a rehearsal: on CPUs, with the smallest network and few windows."""
    ends_s: float = inf
    """When the day is over, on the monotonic clock."""

    @property
    def left_s(self) -> float:
        """How long the day goes on."""
        return self.ends_s - time.monotonic()

    @property
    def work(self) -> Path:
        """Everything that a step leaves, in which later calls go on."""
        return self.out / "work"

    @property
    def device(self) -> str:
        """Where steps of training compute."""
        return "cpu" if self.is_dry else "gpu"

    @property
    def identity(self) -> dict[str, Any]:
        """Give what everything in the folder is true of."""
        return {"python": self.python, "dry_run": self.is_dry}

    def bakeoff(self, *arguments: str, limit_s: float) -> Done:
        """Run a Bakeoff command as a user does, in the work folder."""
        return self.host_python("-m", "harness.cli", *arguments, limit_s=limit_s)

    def host_python(self, *arguments: str, limit_s: float) -> Done:
        """Run Python with everything that Bakeoff's own side needs."""
        path = os.pathsep.join((str(ROOT), str(self.work / "packages")))
        environment = {**os.environ, "PYTHONPATH": path}
        return self._run([sys.executable, *arguments], environment, limit_s)

    def framework_python(self, *arguments: str, limit_s: float, **variables: str) -> Done:
        """Run the framework's interpreter as ranks are run: with none of our own packages."""
        return self._run([self.python, *arguments], self.rank_environment(**variables), limit_s)

    def rank_environment(self, **variables: str) -> dict[str, str]:
        """Give what a rank begins with, and a way to our scripts."""
        path = os.pathsep.join((str(ROOT), str(SCRIPTS)))
        return {**isolated(os.environ), "PYTHONPATH": path, **variables}

    def _run(self, argv: Sequence[str], environment: Mapping[str, str], limit_s: float) -> Done:
        """Run a command to its end, or end it; what it printed is kept in ``log.txt``."""
        limit_s = max(0.0, min(limit_s, self.left_s))
        with subprocess.Popen(
            argv,
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                self.log(_entry(argv, f"ended after {limit_s:g} s", *_end(process)))
                raise Unfinished(f"not finished after {limit_s:g} s") from None
            except BaseException:
                _end(process)
                raise
        self.log(_entry(argv, f"exit code {process.returncode}", out, err))
        return Done(process.returncode, out, err)

    def framework(self, name: str) -> Mapping[str, Any]:
        """Say which version of a framework the interpreter has, and which GPUs that sees."""
        told = self._frameworks[name]
        if "problem" in told:
            raise NotPossible(f"{self.python}: {told['problem']}")
        if not self.is_dry and not told["gpus"]:
            raise NotPossible(f"{name} {told['version']} in {self.python} sees no GPU")
        return told

    def frameworks(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Name the frameworks that can be used, and say why the others cannot."""
        usable, reasons = [], []
        for name in FRAMEWORKS:
            try:
                self.framework(name)
                usable.append(name)
            except NotPossible as why:
                reasons.append(str(why))
        return tuple(usable), tuple(reasons)

    @cached_property
    def gpus(self) -> Reading:
        """Give each GPU's name, driver and memory, as `nvidia-smi` has them."""
        return NvidiaSmi(("name", "driver_version", "memory.total")).read()

    def platform(self) -> Path:
        """Write the platform that studies run on: this machine, its GPUs, the one interpreter."""
        lines = ['title = "GPU day"', "as_found = true", "nodes = 1"]
        kinds = Counter() if self.is_dry else Counter(map(_kind, self.gpus.gpus.values()))
        for (model, memory), count in kinds.items():
            lines += ["[[accelerators]]", f"model = {json.dumps(model)}", f"count = {count}"]
            lines += [] if memory is None else [f'memory = "{memory:.0f} MiB"']
        for name in FRAMEWORKS:
            lines += [f"[frameworks.{name}]", f"interpreter = {json.dumps(self.python)}"]
        path = self.work / "gpu-day.toml"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    @cached_property
    def _frameworks(self) -> dict[str, dict[str, Any]]:
        return {name: self._survey(name) for name in FRAMEWORKS}

    def _survey(self, name: str) -> dict[str, Any]:
        try:
            script = str(SCRIPTS / "frameworks.py")
            asked = self.framework_python(script, name, limit_s=_SURVEY_S)
            told: dict[str, Any] = asked.json()
        except (Broken, Unfinished) as why:
            return {"problem": f"{name}: {why}"}
        except OSError as why:
            return {"problem": f"it does not run: {why.strerror}"}
        return told

    def log(self, text: str) -> None:
        """Keep what commands and faults said."""
        with (self.work / "log.txt").open("a", encoding="utf-8") as log:
            log.write(text)


def _end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """End a command politely: Bakeoff's own then ends what it started, and keeps what finished."""
    process.terminate()
    try:
        return process.communicate(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def _entry(argv: Sequence[str], ended: str, out: str, err: str) -> str:
    return f"$ {' '.join(argv)}\n# {ended}\n{err}{out}\n"


def _kind(gpu: Mapping[str, str]) -> tuple[str, float | None]:
    return gpu["name"], number(gpu["memory.total"])
