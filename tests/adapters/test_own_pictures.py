"""Train on somebody's own pictures in folders by class: audited, and never touched."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from harness.data.user_data import UserData, adopt
from harness.worker.input.evidence.audit import digest
from harness.worker.input.order import epoch_order
from harness.worker.job import Span
from tests.adapters.interpreter import losses, python, told, work_with
from tests.data.test_user_data import quiet, state

pytestmark = pytest.mark.framework
CLASSES, EACH, BATCH = ("daisy", "rose", "tulip"), 18, 8
SAMPLES = len(CLASSES) * EACH
TAKEN = SAMPLES // BATCH * BATCH
MODES = {0: "L", 1: "CMYK", 2: "P", 3: "RGBA"}
"""Kinds of pictures that people have beside plain colours."""


def flowers(folder: Path) -> Path:
    draws = np.random.default_rng(1)
    for number, name in enumerate(CLASSES):
        (folder / name / "more").mkdir(parents=True)
        for one in range(EACH):
            colours = draws.integers(0, 120, (40 + one, 50, 3), dtype=np.uint8)
            colours[:, :, number] += 120
            picture = Image.fromarray(colours).convert(MODES.get(one, "RGB"))
            inside, ending = "more/" * (one % 2), "png" if one in (2, 3) else "JPEG"
            picture.save(folder / name / f"{inside}{one}.{ending}")
    return folder


def interpreter(environment: str, folder: Path) -> Path:
    """Give an environment's interpreter; torch's with the Pillow that the tests run with."""
    found = importlib.util.find_spec("PIL")
    if environment != "torch" or found is None or found.origin is None:
        return python(environment)
    packages = Path(found.origin).parents[1]
    (folder / "lent").mkdir()
    for name in ("PIL", "pillow.libs"):
        if (packages / name).exists():
            (folder / "lent" / name).symlink_to(packages / name)
    program = folder / "python"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH{os.pathsep}{folder}/lent"'
        f' exec "{python(environment)}" "$@"\n'
    )
    program.chmod(0o755)
    return program


def trained(environment: str, reader: str, own: UserData, place: Path) -> list[dict[str, Any]]:
    factors = {"batch": BATCH, "threads": 1, "deterministic": True, "cache": "cold"}
    factors |= {"device": "cpu", "precision": "fp32", "layout": "default", "decode": True}
    factors |= {"shuffle": "global", "format": "raw", "reader": reader, "reader_threads": 2}
    return work_with(
        interpreter(environment, place),
        environment,
        place / "work",
        factors={**factors, "prefetch": 1},
        options={"compile_mode": "default", "backend": "default"} if reader != "tf-data" else {},
        paths={"data": str(own.folder)},
        warmup=Span(steps=3),
        until=Span(steps=26),
    )


@pytest.mark.parametrize(
    ("environment", "reader"), [("torch", "dataloader"), ("tensorflow", "tf-data")]
)
def test_classes_are_learnt_from_folders_and_every_epoch_is_audited(
    environment: str, reader: str, tmp_path: Path
) -> None:
    there = flowers(tmp_path / "theirs")
    before = state(there)
    own = adopt(there, tmp_path / "ours", doing=quiet)
    assert own.classes == CLASSES
    said = trained(environment, reader, own, tmp_path)
    assert told(said, "finished")
    epochs = [one for one in said if one["event"] == "epoch"]
    assert len(epochs) > 2
    for number, epoch in enumerate(epochs):
        order = epoch_order([1] * SAMPLES, shuffle="global", seed=7, epoch=number)
        assert epoch["digest"] == f"{digest(order[:TAKEN]):016x}"
        assert (epoch["left_out"], epoch["bytes"] < 10**6) == (SAMPLES - TAKEN, True)
    assert sum(losses(said)[-5:]) < 0.5 * sum(losses(said)[:5])
    assert state(there) == before


@pytest.mark.parametrize(
    ("environment", "reader"), [("torch", "dataloader"), ("tensorflow", "tf-data")]
)
def test_a_picture_that_is_none_ends_the_trial_with_its_name(
    environment: str, reader: str, tmp_path: Path
) -> None:
    there = flowers(tmp_path / "theirs")
    (there / "rose" / "5.JPEG").write_bytes(b"no picture at all")
    own = adopt(there, tmp_path / "ours", doing=quiet)
    failed = told(trained(environment, reader, own, tmp_path), "failed")
    assert failed["kind"] == "refused"
    assert "5.JPEG cannot be decoded" in failed["message"]
    assert "\n" not in failed["message"]
