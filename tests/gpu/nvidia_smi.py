"""Ask `nvidia-smi`, NVIDIA's own reader, and understand what it prints."""

from __future__ import annotations

import csv
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.gpu.answer import NotPossible

_PATIENCE_S = 60.0  # without persistence mode the driver starts anew for every question
_UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')


@dataclass(frozen=True)
class Reading:
    """One answer: when it was asked for and given, and each GPU's fields by its UUID."""

    before_ns: int
    after_ns: int
    gpus: dict[str, dict[str, str]]


class NvidiaSmi:
    """The program, and the fields that its version knows of those that are wanted."""

    def __init__(self, fields: Sequence[str]) -> None:
        self.fields = ["uuid", *fields]
        self.unknown: list[str] = []

    def read(self) -> Reading:
        """Ask once; a field that this driver does not know is left out from then on."""
        while True:
            before_ns = time.monotonic_ns()
            asked = _ask(f"--query-gpu={','.join(self.fields)}", "--format=csv,noheader,nounits")
            after_ns = time.monotonic_ns()
            if asked.returncode == 0:
                break
            told = asked.stdout + asked.stderr
            unknown = _UNKNOWN_FIELD.search(told)
            if unknown is None or unknown[1] not in self.fields[1:]:
                last = told.strip().splitlines()[-1:] or [f"exit code {asked.returncode}"]
                raise NotPossible(f"nvidia-smi does not answer: {last[0]}")
            self.fields.remove(unknown[1])
            self.unknown.append(unknown[1])
        rows = csv.reader(asked.stdout.splitlines(), skipinitialspace=True)
        gpus = {row[0]: dict(zip(self.fields, row, strict=True)) for row in rows if row}
        return Reading(before_ns, after_ns, gpus)


def number(text: str | None) -> float | None:
    """Read a field; None where it says "[N/A]" or the like."""
    try:
        return float(text or "")
    except ValueError:
        return None


def _ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["nvidia-smi", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_S,
        )
    except FileNotFoundError:
        raise NotPossible("nvidia-smi is no program here: is there an NVIDIA driver?") from None
    except subprocess.TimeoutExpired:
        raise NotPossible(f"nvidia-smi did not answer within {_PATIENCE_S:g} s") from None
