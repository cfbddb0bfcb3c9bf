"""Find the line on which each key and array item of a TOML text stands.

``tomllib`` reads values and forgets where they were. The text is known to be valid TOML when it
comes here, so this scanner checks nothing; it only follows brackets, quotes and dots.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}\n#]*")
_STRINGS = (
    # The longest string of a kind comes first; a multi-line string may end in two more quotes.
    re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""(?:"(?!")|""(?!"))?', re.DOTALL),
    re.compile(r"'''(?:[^']|'(?!''))*'''(?:'(?!')|''(?!'))?", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        self._line = 1
        self._counted = 0
        self._tables: dict[Path, int] = {}

    def line(self) -> int:
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None, "every pattern here also matches nothing, or is known to match"
        self.at = match.end()
        return match[0]

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def note(self, path: Path, line: int) -> None:
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def document(self) -> None:
        table: Path = ()
        self.skip(_BLANK)
        while self.at < len(self.text):
            if self.peek() == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip(_BLANK)

    def header(self) -> Path:
        line = self.line()
        repeated = self.text.startswith("[[", self.at)
        self.at += 2 if repeated else 1
        keys = self.keys()
        self.at += 2 if repeated else 1
        path: Path = ()
        for key in keys[:-1]:
            path = self.entered((*path, key))
        path = (*path, keys[-1])
        if repeated:
            index = self._tables.get(path, -1) + 1
            self._tables[path] = index
            path = (*path, index)
        else:
            path = self.entered(path)
        self.note(path, line)
        return path

    def entered(self, path: Path) -> Path:
        """Follow a name that stands for the newest table of an array."""
        return (*path, self._tables[path]) if path in self._tables else path

    def keys(self) -> list[str]:
        keys = []
        while True:
            self.skip(_SPACE)
            if self.peek() in ("'", '"'):
                keys.append(next(iter(tomllib.loads(f"{self.string()} = 0"))))
            else:
                keys.append(self.skip(_BARE_KEY))
            self.skip(_SPACE)
            if self.peek() != ".":
                return keys
            self.at += 1

    def string(self) -> str:
        for pattern in _STRINGS:
            match = pattern.match(self.text, self.at)
            if match is not None:
                self.at = match.end()
                return match[0]
        raise AssertionError("an unclosed string is not valid TOML")

    def pair(self, table: Path) -> None:
        line = self.line()
        path: Path = (*table, *self.keys())
        self.at += 1
        self.note(path, line)
        self.value(path)

    def value(self, path: Path) -> None:
        self.skip(_SPACE)
        opening = self.peek()
        if opening in ("'", '"'):
            self.string()
        elif opening == "[":
            self.at += 1
            self.skip(_BLANK)
            index = 0
            while self.peek() != "]":
                item = (*path, index)
                self.note(item, self.line())
                self.value(item)
                self.separator()
                index += 1
            self.at += 1
        elif opening == "{":
            self.at += 1
            self.skip(_BLANK)
            while self.peek() != "}":
                self.pair(path)
                self.separator()
            self.at += 1
        else:
            self.skip(_BARE_VALUE)

    def separator(self) -> None:
        self.skip(_BLANK)
        if self.peek() == ",":
            self.at += 1
            self.skip(_BLANK)


def find_lines(text: str) -> Mapping[Path, int]:
    """Give the line of every key and array item of a valid TOML text, by its path."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines
