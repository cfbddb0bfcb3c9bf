"""Say, before anything is fetched, how large it is and how much is here already."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.environments.package_index.pip import Item
from harness.units import decimal_size

_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Amount:
    """What an installation has to move; an unknown size is counted, never guessed."""

    files: int
    total_bytes: int
    here_bytes: int
    """On a local disk or in pip's cache."""
    unknown: int
    """How many files have a size that nobody said."""

    @property
    def fetch_bytes(self) -> int:
        """What comes over the network, as far as it is known."""
        return self.total_bytes - self.here_bytes

    def __str__(self) -> str:
        more = f", and {self.unknown} of unknown size" if self.unknown else ""
        return (
            f"{self.files} packages, {decimal_size(self.total_bytes)}: "
            f"{decimal_size(self.here_bytes)} here already, "
            f"{decimal_size(self.fetch_bytes)} to fetch{more}"
        )


def amount(items: Sequence[Item], cache: Path | None) -> Amount:
    """Look up every file's size, in pip's cache first, then with its server."""
    cached = [_cached_bytes(item.url, cache) for item in items]
    asked = [item.url for item, known in zip(items, cached, strict=True) if known is None]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(_served_bytes, asked))
    here = sum(known for known in cached if known is not None)
    fetched = sum(answer for answer in answers if answer is not None)
    return Amount(len(items), here + fetched, here, answers.count(None))


def _cached_bytes(url: str, cache: Path | None) -> int | None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        return Path(urllib.request.url2pathname(parts.path)).stat().st_size
    if cache is None:
        return None
    # pip keeps an answer under the hash of its address: http-v2/ since 23.3, http/ before.
    digest = hashlib.sha224(url.encode()).hexdigest()
    for name in (
        Path("http-v2", *digest[:5], f"{digest}.body"),
        Path("http", *digest[:5], f"{digest}.body"),
        Path("http", *digest[:5], digest),
    ):
        if (cache / name).is_file():
            return (cache / name).stat().st_size
    return None


def _served_bytes(url: str) -> int | None:
    if not url.startswith(("https://", "http://")):
        return None
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310  scheme checked above
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            length = answer.headers.get("Content-Length")
    except (OSError, urllib.error.URLError):
        # No network, another certificate store than pip's: the size stays unknown.
        return None
    return int(length) if length else None
