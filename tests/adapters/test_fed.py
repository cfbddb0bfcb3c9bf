"""Train on made files in TensorFlow, Keras and JAX: each epoch audited, losses alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.worker.input.evidence.audit import digest
from harness.worker.input.order import epoch_order
from harness.worker.job import Span
from tests.adapters.interpreter import answers, checks, losses, told, work

pytestmark = pytest.mark.framework
HERE = Path(__file__).parent
SAMPLES, BATCH, BUFFER = 200, 16, 64
TAKEN = SAMPLES // BATCH * BATCH


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    for name in ("raw", "tfrecord", "npy"):
        spec = DataSetSpec("tiny-pictures", name, SAMPLES)
        create(spec, folder / f"tiny-pictures-{name}", doing=lambda _: None)
    create(
        DataSetSpec("small-pictures", "raw", 8), folder / "small-pictures-raw", doing=lambda _: None
    )
    create(DataSetSpec("traces", "tfrecord", 16), folder / "traces-tfrecord", doing=lambda _: None)
    return folder


def trained(environment: str, place: Path, sets: Path, form: str, **how: Any) -> Any:
    factors = {"batch": BATCH, "threads": 1, "deterministic": True, "cache": "warm", **how}
    factors |= {"shuffle": "file", "buffer_samples": BUFFER, "format": form, "prefetch": 1}
    return work(
        environment,
        place,
        factors=factors,
        paths={"data": str(sets / f"tiny-pictures-{form}")},
        warmup=Span(steps=3),
        until=Span(steps=40),
    )


def asked(held: list[int], epoch: int) -> list[int]:
    order = epoch_order(held, shuffle="file", seed=7, epoch=epoch, buffer_samples=BUFFER)
    return order[:TAKEN]


def epochs(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert told(events, "finished")
    found = [event for event in events if event["event"] == "epoch"]
    assert len(found) == 3  # 43 steps of 12 an epoch
    assert {one["samples"] for one in found} == {TAKEN}
    assert {one["left_out"] for one in found} == {SAMPLES - TAKEN}
    return found


def audited(events: list[dict[str, Any]], held: list[int]) -> None:
    """Hold a trial to the samples that were asked for; it waited for them, and learnt."""
    for number, epoch in enumerate(epochs(events)):
        assert epoch["digest"] == f"{digest(asked(held, number)):016x}"
    windows = [event for event in events if event["event"] == "window"]
    assert all(0 < one["waited"] < one["end"] - one["start"] for one in windows)
    first, last = losses(events)[:5], losses(events)[-5:]
    assert sum(last) < 0.8 * sum(first)


@pytest.mark.parametrize(
    ("environment", "form", "held"),
    [
        ("tensorflow", "raw", [1] * SAMPLES),
        ("tensorflow@1.15", "tfrecord", [SAMPLES]),
        ("keras", "tfrecord", [SAMPLES]),
    ],
    ids=["raw", "1.15", "keras"],
)
def test_tinycnn_learns_from_tf_data_and_every_epoch_is_audited(
    tmp_path: Path, sets: Path, environment: str, form: str, held: list[int]
) -> None:
    audited(trained(environment, tmp_path, sets, form, reader="tf-data", reader_threads=2), held)


def test_jax_learns_alike_from_the_plain_threads_and_from_the_asynchronous_reader(
    tmp_path: Path, sets: Path
) -> None:
    plain = trained("jax", tmp_path / "plain", sets, "npy", reader="threads", reader_threads=2)
    audited(plain, [64, 64, 64, 8])
    read = trained("jax", tmp_path / "read", sets, "npy", reader="async-thread", buffers=2)
    assert [one["order"] for one in epochs(plain)] == [one["order"] for one in epochs(read)]
    alike = [
        {one["step"]: one["values"] for one in events if one["event"] == "values"}
        for events in (plain, read)
    ]
    common = alike[0].keys() & alike[1].keys()  # two trials may choose other windows
    assert len(common) > 10
    assert {step: alike[0][step] for step in common} == {step: alike[1][step] for step in common}


@pytest.mark.parametrize(
    ("environment", "file", "name"),
    [
        (environment, file, name)
        for environment, file in (
            ("tensorflow", "tensorflow/feeding_inside.py"),
            ("jax", "jax/feeding_inside.py"),
        )
        for name in checks(HERE / file)
    ],
)
def test_beside_the_framework(
    environment: str, file: str, name: str, sets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FED_SETS", str(sets))
    found = answers(environment, HERE / file)
    answer = found[str(HERE / file)][name]
    assert answer is None, answer
