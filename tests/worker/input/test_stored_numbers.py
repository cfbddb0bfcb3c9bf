"""What a network is fed is held to the numbers that files hold, whatever framework fed it."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.data.catalogue import CONTENTS
from harness.data.contents import sample
from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.worker.input.dataset import Dataset
from harness.worker.input.evidence.stored_numbers import differs

SAMPLES = [5, 0, 3]
PLAIN = ("raw", "npy", "tar", "tfrecord", "hdf5")


def made(place: Path, content: str, form: str) -> Dataset:
    create(DataSetSpec(content, form, 8), place / form, doing=lambda _: None)
    return Dataset(str(place / form))


def batch(content: str, how: Callable[[np.ndarray], np.ndarray]) -> memoryview:
    """Give a batch as a network receives it, from the samples themselves."""
    known = CONTENTS[content]
    stored = [np.frombuffer(sample(known, 1, one).data, known.dtype) for one in SAMPLES]
    inputs = how(np.stack(stored).reshape(-1, *known.shape) / known.scale)
    return memoryview(array("f", inputs.astype(np.float32).tobytes()))


@pytest.mark.parametrize("form", PLAIN)
@pytest.mark.parametrize("content", ["tiny-pictures", "traces"])
def test_numbers_of_the_files_are_fine(content, form, tmp_path) -> None:
    dataset = made(tmp_path, content, form)
    assert differs(dataset, SAMPLES, batch(content, lambda x: x)) is None
    rounded = batch(content, lambda x: (x * 256).round() / 256)
    assert differs(dataset, SAMPLES, rounded) is None


FAULTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "channels": lambda x: x[:, ::-1],
    "columns": lambda x: x[..., ::-1],
    "scale": lambda x: 128 * x,
    "mean": lambda x: x - 0.5,
    "nothing": lambda x: 0 * x,
    "no numbers": lambda x: x * np.nan,
    "other samples": lambda x: x[::-1],
    "resolution": lambda x: x[..., ::2, ::2].repeat(2, 2).repeat(2, 3),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_other_numbers_are_told_with_their_sample(fault, tmp_path) -> None:
    told = differs(
        made(tmp_path, "tiny-pictures", "npy"), SAMPLES, batch("tiny-pictures", FAULTS[fault])
    )
    assert told is not None
    assert told.startswith("what was fed is not what the files hold: sample 5 is ")


def test_samples_of_another_size_are_told(tmp_path) -> None:
    half = batch("tiny-pictures", lambda x: x[..., ::2, ::2])
    told = differs(made(tmp_path, "tiny-pictures", "npy"), SAMPLES, half)
    assert told == "what was fed has 768 numbers a sample, and the files hold 3072"


@pytest.mark.parametrize(("content", "form"), [("tiny-pictures", "npz"), ("small-pictures", "raw")])
def test_what_is_no_plain_stretch_of_numbers_is_left_to_the_gate(content, form, tmp_path) -> None:
    dataset = made(tmp_path, content, form)
    assert differs(dataset, SAMPLES, batch("tiny-pictures", lambda x: 2 * x)) is None
