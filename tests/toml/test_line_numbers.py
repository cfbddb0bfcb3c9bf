"""Hold the line finder to what tomllib reads, on texts written in every style."""

from __future__ import annotations

import tomllib
from random import Random
from typing import Any

import pytest

from harness.toml.line_numbers import find_lines

Path = tuple[str | int, ...]

SCALARS = (
    "1",
    "true",
    "-0.5e3",
    "1979-05-27 07:32:00",
    '"plain"',
    '"[ { ] # = \\" ,"',
    "'it\\'",
    "'[[x]]'",
    '""" one\n[two]\n"three" \\""" four"""',
    "'''\n''[k]\n'''",
    '""""quoted"""""',
)


class Writer:
    """Write a random document, remembering on which line everything was put."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.text = ""
        self.line = 1
        self.expected: dict[Path, int] = {}
        self.names = 0

    def put(self, text: str) -> None:
        self.text += text
        self.line += text.count("\n")

    def draw(self, *choices: str) -> str:
        return self.random.choice(choices)

    def yes(self) -> bool:
        return self.random.random() < 0.5

    def count(self, most: int) -> int:
        return self.random.randint(0, most)

    def note(self, path: Path) -> None:
        for length in range(1, len(path) + 1):
            self.expected.setdefault(path[:length], self.line)

    def name(self) -> tuple[str, str]:
        """Give a fresh key, and how it is written."""
        self.names += 1
        plain = f"k-{self.names}"
        odd = f"k.{self.names} [#]"
        return self.random.choice(
            [(plain, plain), (plain, f"'{plain}'"), (odd, f'"{odd}"'), (odd, f"'{odd}'")]
        )

    def document(self) -> None:
        self.pairs(())
        for _ in range(self.count(3)):
            self.table((), "")

    def table(self, above: Path, prefix: str) -> None:
        parts = [self.name() for _ in range(1 + self.count(1))]
        path: Path = (*above, *(key for key, _ in parts))
        dot = self.draw(".", " . ")
        spelt = prefix + dot.join(written for _, written in parts)
        if self.yes():
            for index in range(1 + self.count(2)):
                self.header((*path, index), f"[[{spelt}]]")
                if self.yes():
                    self.table((*path, index), spelt + ".")
        else:
            self.header(path, f"[ {spelt} ]")
            if self.yes():
                self.table(path, spelt + ".")

    def header(self, path: Path, text: str) -> None:
        self.blank()
        self.note(path)
        self.put(text + self.draw("\n", "  # [no] = 1\n"))
        self.pairs(path)

    def blank(self) -> None:
        self.put(self.draw("", "\n", "# a = [1, 2]\n", "  \t\n\n"))

    def pairs(self, path: Path) -> None:
        for _ in range(self.count(3)):
            self.blank()
            self.put(self.draw("", "  "))
            self.pair(path, 2)
            self.put(self.draw("\n", " # done ]\n"))

    def pair(self, path: Path, depth: int) -> None:
        parts = [self.name() for _ in range(1 + self.count(1))]
        path = (*path, *(key for key, _ in parts))
        self.note(path)
        self.put(self.draw(".", " . ").join(written for _, written in parts))
        self.put(self.draw("=", " = "))
        self.value(path, depth)

    def value(self, path: Path, depth: int) -> None:
        kind = self.draw("scalar", "array", "table") if depth else "scalar"
        if kind == "array":
            self.array(path, depth - 1)
        elif kind == "table":
            self.put(self.draw("{", "{ "))
            for number in range(self.count(2)):
                self.put(", " if number else "")
                self.pair(path, depth - 1)
            self.put("}")
        else:
            self.put(self.random.choice(SCALARS))

    def array(self, path: Path, depth: int) -> None:
        self.put("[")
        self.gap()
        size = self.count(3)
        for index in range(size):
            self.note((*path, index))
            self.value((*path, index), depth)
            self.gap()
            if index < size - 1 or self.yes():
                self.put(",")
                self.gap()
        self.put("]")

    def gap(self) -> None:
        self.put(self.draw("", " ", "\n", " # ], [\n  ", "\n\n"))


def paths(value: Any, path: Path = ()) -> set[Path]:
    inside: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    found = {path} if path else set()
    for step, one in inside:
        found |= paths(one, (*path, step))
    return found


@pytest.mark.parametrize("tens", range(20))
def test_every_key_and_item_is_found_on_its_line(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        writer = Writer(Random(seed))
        writer.document()
        lines = find_lines(writer.text)
        assert dict(lines) == writer.expected, writer.text
        assert set(lines) == paths(tomllib.loads(writer.text)), writer.text


def test_windows_line_ends_count_once() -> None:
    assert find_lines('a = 1\r\nb = [\r\n "x",\r\n]\r\n') == {("a",): 1, ("b",): 2, ("b", 0): 3}


def test_a_text_without_a_last_newline_is_found_whole() -> None:
    assert find_lines("[a]\nb = 1") == {("a",): 1, ("a", "b"): 2}
