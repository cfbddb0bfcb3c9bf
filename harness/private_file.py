"""Hand a command what others may not read: a file without a name, which only it has open.

The words of a command and its variables' names are for all users of a machine to see.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

NUMBER = "{number of the private file}"
"""Stands in the words of a command where it takes the number of the open file."""


@contextmanager
def opened(argv: Sequence[str], content: str) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Give a command's words with the number, and the descriptors that it has to inherit."""
    if not content:
        yield tuple(argv), ()
        return
    with os.fdopen(os.memfd_create("private"), "wb", buffering=0) as file:
        file.write(os.fsencode(content))
        file.seek(0)
        number = file.fileno()
        yield tuple(word.replace(NUMBER, str(number)) for word in argv), (number,)
