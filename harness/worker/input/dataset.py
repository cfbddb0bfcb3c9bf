"""Open a set of files that samples are read from, as its manifest describes it.

    FOLDER/dataset.json    written last: without it the set is unfinished
    FOLDER/index           per sample three 64-bit numbers: its file, offset and length there;
                           only where a sample is a plain stretch of bytes
    FOLDER/targets         what each sample is to be taken for: class numbers (64 bits), or vectors
                           (32-bit floats); of a user's own files only pictures in folders have any
    FOLDER/imprints        eight bytes that tell each sample's stored bytes from any other's; only
                           of made sets (``imprints.py``)
    FOLDER/keys            what a user's LMDB knows its samples by: two bytes of length, the key
    FOLDER/files/…         the samples, in their order, as many in a file as the manifest says

A set that was adopted lies elsewhere: its manifest names the folder, and nothing is written there.

Of a file of tokens the manifest counts tokens, and nothing lies beside it: what a sample is follows
from the network that is fed. Of texts of n tokens the k-th (from 0) begins at token n k. The token
behind each of its tokens is what is asked for, so one token more is read, which the next text
begins with; what is left at the end is none.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

VERSION = 2  # 1: first; 2: imprints, and sums of what lies beside the files
MANIFEST = "dataset.json"
INDEX = "index"
TARGETS = "targets"
KEYS = "keys"
IMPRINTS = "imprints"
FILES = "files"
UINT16 = "uint16"
"""The format that is nothing but tokens of two bytes, the lower one first: nanoGPT's train.bin."""
TOKEN_BYTES = 2


class Stretch(NamedTuple):
    """Where the bytes of one sample lie."""

    path: str
    offset: int
    length: int


def name_of(content: str, format: str, samples: int, seed: int) -> str:  # noqa: A002 the factor's name
    """Name the folder of a made set; all that its bytes follow from is in it."""
    return "{}-{}-{}{}".format(content, format, samples, "" if seed == 1 else "-s{}".format(seed))


def texts_of(tokens: int, length: int) -> int:
    """Count the texts of a length in a file: each ends where the next begins."""
    return max(0, tokens - 1) // length


class Dataset:
    """One set of files; of tokens, with the length of the texts that they are to be."""

    def __init__(self, folder: str, text_length: Optional[int] = None) -> None:
        self.folder = folder
        with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
            self.manifest: Dict[str, Any] = json.load(file)
        if self.manifest["version"] != VERSION:
            raise ValueError(
                "{}: version {} of a data set is not {}; `bakeoff data create` it".format(
                    folder, self.manifest["version"], VERSION
                )
            )
        self.is_text: bool = self.manifest["format"] == UINT16 and text_length is not None
        """Whether its samples are texts, whose targets are the tokens behind their own."""
        if self.is_text and text_length is not None:
            self.manifest = _in_texts(self.manifest, text_length)
        root = self.manifest.get("root") or os.path.join(folder, FILES)
        listed = self.manifest["files"]
        self.format: str = self.manifest["format"]
        self.samples: int = self.manifest["samples"]
        self.paths: List[str] = [os.path.join(root, one["name"]) for one in listed]
        self.held: List[int] = [one["samples"] for one in listed]
        """How many samples each file holds."""
        self.sizes: List[int] = [one["bytes"] for one in listed]
        self.bytes: int = sum(self.sizes)
        """Of all files, whatever they hold beside samples."""
        self.first: List[int] = [0, *accumulate(self.held)]
        """The number of each file's first sample; at the end, of all samples."""
        self._index: Optional[Any] = None

    @property
    def shape(self) -> Optional[Tuple[int, ...]]:
        """One sample's shape, where all have one: channels first, as networks state it."""
        shape = self.manifest.get("shape")
        return None if shape is None else tuple(shape)

    def place(self, sample: int) -> Tuple[int, int]:
        """Say in which file a sample lies, and which one of that file's it is."""
        file = bisect_right(self.first, sample) - 1
        return file, sample - self.first[file]

    @property
    def has_index(self) -> bool:
        """Whether each sample is a plain stretch of a file."""
        return self.is_text or os.path.exists(os.path.join(self.folder, INDEX))

    def index(self) -> Any:
        """Give file, offset and length of each sample, one after the other; of texts nothing."""
        if self._index is None and not self.is_text:
            self._index = _numbers(os.path.join(self.folder, INDEX), "Q")
        return self._index

    def stretch(self, sample: int) -> Stretch:
        """Say where the bytes of one sample lie."""
        if self.is_text:
            file, number = self.place(sample)
            length = self.manifest["largest"]
            return Stretch(self.paths[file], number * (length - TOKEN_BYTES), length)
        file, offset, length = self.index()[3 * sample : 3 * sample + 3]
        return Stretch(self.paths[file], offset, length)

    def piece(self, sample: int) -> Stretch:
        """Cut a file whose samples are no plain stretches into as many pieces, of one size."""
        file, number = self.place(sample)
        size, held = self.sizes[file], self.held[file]
        start = size * number // held
        return Stretch(self.paths[file], start, size * (number + 1) // held - start)

    @property
    def is_own(self) -> bool:
        """Whether these are a user's own files, written by whatever wrote them."""
        return "root" in self.manifest

    def keys(self) -> Optional[List[bytes]]:
        """Give what an LMDB knows its samples by; None where they are their numbers."""
        if not self.is_own:
            return None
        with open(os.path.join(self.folder, KEYS), "rb") as file:
            packed = file.read()
        found, at = [], 0
        while at < len(packed):
            length = int.from_bytes(packed[at : at + 2], "little")
            found.append(packed[at + 2 : at + 2 + length])
            at += 2 + length
        return found

    def targets(self) -> Any:
        """Give all targets, one after the other."""
        kind = "f" if self.manifest["target_length"] else "q"
        return _numbers(os.path.join(self.folder, TARGETS), kind)


def _in_texts(manifest: Dict[str, Any], length: int) -> Dict[str, Any]:
    """State a set of tokens as one of texts."""
    files = [{**one, "samples": texts_of(one["samples"], length)} for one in manifest["files"]]
    return {
        **manifest,
        "files": files,
        "samples": sum(one["samples"] for one in files),
        "largest": TOKEN_BYTES * (length + 1),
        "shape": [length],
    }


def _numbers(path: str, kind: str) -> Any:
    """Read a file of little-endian numbers, as every machine that trains has them."""
    numbers = array(kind)
    with open(path, "rb") as file:
        numbers.frombytes(file.read())
    return numbers
