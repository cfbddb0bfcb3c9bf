"""Read a TOML file together with where everything in it stands, and collect its faults.

A document may be overlaid (a size of a study, ``--set`` on the command line); a fault then points
to the place that the wrong value came from.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.errors import Fault, FaultyFile, UsageError
from harness.toml import line_numbers

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

_MOST_BYTES = 16 << 20
_DEEPEST = 100

Place = tuple[str | int, ...]


class Document:
    """A TOML file: its text, its values, and the faults found in it so far."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.faults: list[Fault] = []
        self._moved: dict[Place, Place | str] = {}
        try:
            self.data: dict[str, Any] = tomllib.loads(text)
            is_too_deep = _is_too_deep(self.data)
        except ValueError as error:  # TOMLDecodeError, or an integer of thousands of digits
            raise FaultyFile([_broken(file, text, str(error))]) from None
        except RecursionError:
            is_too_deep = True
        if is_too_deep:
            raise FaultyFile([Fault(file, None, "", "it is nested too deeply.")])

    @cached_property
    def _lines(self) -> Mapping[Place, int]:
        return line_numbers.find_lines(self.text)

    def fault(self, place: Place, message: str, allowed: Iterable[str] = ()) -> None:
        """Remember one thing wrong, unless it was said already."""
        message += "" if message.endswith((".", "?")) else "."
        fault = self._located(place, message, tuple(allowed))
        if fault not in self.faults:
            self.faults.append(fault)

    def where(self, place: Place) -> str:
        """Write where a value stands: file, line and key, or the option that set it."""
        return str(self._located(place, "", ())).removesuffix(": ")

    def refuse_faults(self) -> None:
        """Raise all faults together, in the order of the file; return if there are none."""
        if self.faults:
            raise FaultyFile(sorted(self.faults, key=lambda fault: fault.line or 0))

    def overlay(self, place: Place, *, whole: Place) -> None:
        """Put the table at a place over the whole document.

        Tables merge, the rest is replaced; so is the table at ``whole``, which is one value.
        """
        over: Any = self.data
        for step in place:
            over = over[step]
        self._merge(self.data, over, place, (), whole)

    def set(self, text: str) -> None:
        """Overwrite one value, written ``measure.trials=3`` as on the command line."""
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise UsageError(f"--set {text}: write it as KEY=VALUE, for example measure.trials=3")
        place = tuple(name.strip().split("."))
        table = self.data
        for step in place[:-1]:
            table = table.setdefault(step, {})
            if not isinstance(table, dict):
                raise UsageError(f"--set {text}: '{step}' is not a table")
        table[place[-1]] = _value(value.strip())
        self._moved[place] = f"--set {text}"

    def _merge(
        self, target: dict[str, Any], over: dict[str, Any], source: Place, at: Place, whole: Place
    ) -> None:
        for key, value in over.items():
            here = (*at, key)
            if isinstance(value, dict) and isinstance(target.get(key), dict) and here != whole:
                self._merge(target[key], value, source, here, whole)
            else:
                target[key] = value
                self._moved[here] = (*source, *here)

    def _located(self, place: Place, message: str, allowed: tuple[str, ...]) -> Fault:
        for length in range(len(place), 0, -1):
            origin = self._moved.get(place[:length])
            if isinstance(origin, str):
                return Fault(origin, None, spelt(place), message, allowed)
            if origin is not None:
                place = (*origin, *place[length:])
                break
        line = None
        for length in range(len(place), 0, -1):
            line = self._lines.get(place[:length])
            if line is not None:
                break
        return Fault(self.file, line, spelt(place), message, allowed)


def read_document(path: Path) -> Document:
    """Read a TOML file; a broken one is refused with the place where it breaks."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path}: this is no file, but a pipe, a socket or a device.")
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageError(f"{path}: this file is larger than {_MOST_BYTES >> 20} MiB.")
        text = data.decode("utf-8-sig")  # some editors begin with a mark
    except UnicodeDecodeError as error:
        raise FaultyFile([Fault(str(path), None, "", f"is not UTF-8 text ({error})")]) from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    return Document(str(path), text)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe does not wait until somebody writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)


def spelt(place: Place) -> str:
    """Write a place as people do: matrix.framework[1]."""
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def _broken(file: str, text: str, error: str) -> Fault:
    match = _PLACE.search(error)
    what = _PLACE.sub("", error)
    what = what[:1].lower() + what[1:]
    if match is None:  # Python's own words of a number that it refuses to read
        return Fault(file, None, "", f"not valid TOML: {what.partition(';')[0]}.")
    if match[1] is None:
        last = text.rstrip().count("\n") + 1
        return Fault(file, last, "", f"not valid TOML: {what} (at the end of the file).")
    return Fault(file, int(match[1]), "", f"not valid TOML: {what} (column {match[2]}).")


def _is_too_deep(value: Any) -> bool:
    """Tell whether tables lie deeper than any file needs: dotted keys ask for no recursion."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
