"""Every reader of every framework feeds its network what the files hold."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest

from harness.study.framework import framework_info, framework_names
from tests.contracts.gate_coverage import readers

pytestmark = pytest.mark.framework

ARRAYS = ("raw", "npy", "npz", "tar", "tfrecord", "hdf5", "lmdb", "leveldb")
ENCODED = ("raw", "tar", "tfrecord", "lmdb", "leveldb")
SHUFFLES = ("global", "file", "none")
PLAIN = (("threads", ARRAYS), ("async-thread", ARRAYS), ("pread", ("raw", "npy")))
PLAIN += (("mmap", ("npy",)), ("direct", ("raw",)))
READERS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "torch": (("dataloader", ARRAYS), ("async-process", ARRAYS), *PLAIN),
    "tensorflow": (("tf-data", ("raw", "tfrecord")), *PLAIN),
    "keras": (("tf-data", ("raw", "tfrecord")), *PLAIN),
    "jax": PLAIN,
}
IN_CI = {
    ("torch", "dataloader", "raw"),
    ("torch", "async-process", "lmdb"),
    ("torch", "threads", "leveldb"),
    ("jax", "threads", "npz"),
}


def every_reader() -> Iterator[Any]:
    """Name each framework with its readers and their formats; most are of the long form."""
    shuffles = cycle(SHUFFLES)
    for framework, own in READERS.items():
        for reader, forms in own:
            for form in forms:
                marks = [] if (framework, reader, form) in IN_CI else [pytest.mark.long]
                shuffle = next(shuffles)
                if (reader, form, shuffle) == ("tf-data", "tfrecord", "global"):
                    shuffle = "file"  # shards are read whole
                yield pytest.param(framework, reader, form, shuffle, marks=marks)


def test_every_reader_that_the_page_names_is_among_them() -> None:
    named = {name: {*readers(framework_info(name))} for name in framework_names()}
    assert {name: {one for one, _ in READERS.get(name, ())} for name in named} == named


def held(part: Any, tolerance: float = 1e-6) -> None:
    assert part.finding is not None, part.why
    print(part.finding)
    assert part.finding.differs is None
    assert part.finding.error < tolerance


@pytest.mark.parametrize(("framework", "reader", "form", "shuffle"), list(every_reader()))
def test_a_reader_feeds_what_the_files_hold(framework, reader, form, shuffle, fed) -> None:
    held(fed(framework, format=form, reader=reader, shuffle=shuffle))


@pytest.mark.long
@pytest.mark.parametrize(
    ("framework", "reader", "form", "shuffle"),
    [
        *(("torch", "dataloader", form, "file") for form in ENCODED),
        *(("tensorflow", "tf-data", form, "file") for form in ("raw", "tfrecord")),
        ("tensorflow", "tf-data", "raw", "none"),
        ("keras", "tf-data", "raw", "file"),
    ],
)
def test_decoded_pictures_are_the_files_within_two_levels(
    framework, reader, form, shuffle, fed
) -> None:
    how = {"format": form, "reader": reader, "decode": True, "shuffle": shuffle}
    held(fed(framework, "alexnet-chien", **how), 2 / 127.5)


@pytest.mark.long
@pytest.mark.parametrize("framework", ["torch", "tensorflow", "keras", "jax"])
def test_traces_come_with_their_vectors(framework, fed) -> None:
    held(fed(framework, "neuron-inverter", format="npy", reader="threads", shuffle="file"))


@pytest.mark.long
def test_volumes_are_compared_in_part_of_their_numbers(fed) -> None:
    held(fed("torch", "cosmoflow", format="raw", reader="dataloader", shuffle="none"))
