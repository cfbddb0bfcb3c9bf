"""Hold the proof of what was timed to its purpose: each planted fault is caught and named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.gate.proof import judging
from harness.gate.proof.untrained import Untrained
from harness.gate.tensors import folders
from harness.store.contained import Contained
from tests.adapters.interpreter import told, work
from tests.gate.proof import adam, dropping, inverting
from tests.gate.proof.conftest import BATCH
from tests.gate.proof.free_checks import seen
from tests.gate.proof.planted import (
    on_jax,
    on_torch,
    subtle_on_jax,
    subtle_on_keras,
    subtle_on_tensorflow,
    subtle_on_tinygrad,
    subtle_on_torch,
)
from tests.gate.proof.planted.fault import counted
from workloads import tinybert, tinycnn, tinygpt, tinyllama, tinyvit

pytestmark = pytest.mark.framework

NETWORKS = {"tinycnn": tinycnn, "dropping": dropping, "inverting": inverting}
TEXTS = {"tinygpt": tinygpt, "tinybert": tinybert}
PLANTED_IN = {**NETWORKS, **TEXTS, "adam": adam, "tinyvit": tinyvit}
PLANTED: dict[str, ModuleType] = {
    "torch": subtle_on_torch,
    "jax": subtle_on_jax,
    "tensorflow": subtle_on_tensorflow,
    "keras": subtle_on_keras,
    "tinygrad": subtle_on_tinygrad,
}
IN_CI = {
    "torch": {
        "a step that does nothing",
        "every second step skipped",
        "the first eight samples",
        "a memoised forward",
        "momentum lost",
        "dropout off",
        "a second moment that is halved behind each update",
        "a count of updates that stands still",
        "a head with a copy of its table",
    },
    "jax": {
        "a step that does nothing",
        "every second step skipped",
        "the first eight samples",
        "momentum lost",
        "dropout off",
        "a running variance without Bessel's correction",
    },
    "tensorflow": {"the first batch for ever", "half the batch"},
    "keras": {"momentum lost", "a convolution that is skipped"},
    "tinygrad": {"the first batch for ever", "half the batch"},
}
"""The others are left to the long form: each takes a worker of its own."""

COUNTED = {
    "a step that does nothing",
    "every second step skipped",
    "training that stops after twelve steps",
    "forward only",
    "half the batch",
    "half of the texts",
    "the second half of each text left out",
    "the first eight samples",
    "the first eight samples where it drops",
    "pictures of half the size",
    "a convolution that is skipped",
}
"""Those that each trial's own count shows, whether it carries a proof or not."""
IDLE = {
    "a step that does nothing",
    "every second step skipped",
    "training that stops after twelve steps",
    "no update",
    "forward only",
}
"""Those that one more step shows where the measured phase ended, before anything is examined."""
MASKED = {"dropout off", "inference where it drops", "one mask for all steps"}
"""Those that the same loss twice shows."""
ONE_OF_TWO = {("torch", "dropout off")}
"""Where the other dropout still drops, and makes another loss."""


LAST_LEFT_OUT = "*(one[:-1] for one in self.batch)"


def every_fault() -> Iterator[Any]:
    """Name each framework with each of its faults."""
    for name, faults in PLANTED.items():
        for fault in faults.FAULTS:
            marks = [] if fault in IN_CI[name] else [pytest.mark.long]
            yield pytest.param(name, fault, id=f"{name}: {fault}", marks=marks)


@pytest.mark.planted
@pytest.mark.parametrize(("name", "fault"), list(every_fault()))
def test_a_fault_of_the_timed_step_is_caught_and_named(name, fault, prove, places, planted) -> None:
    network, file, change, words = PLANTED[name].FAULTS[fault]
    named = None
    try:
        prove(name, PLANTED_IN[network], {PLANTED[name].FOLDER + file: change})
    except Untrained as why:
        named = str(why)
    except AssertionError as why:
        stood_still = re.search("one more step changes nothing", str(why))
        if stood_still is None:
            raise
        assert fault in IDLE
        planted(name, fault, "one more step", stood_still.group())
        return
    shown = seen(places[-1])
    planted(name, fault, ", ".join(["the proof", *shown]), named)
    assert named is not None
    assert fault not in COUNTED or "multiplications" in shown
    assert (name, fault) in ONE_OF_TWO or fault not in MASKED or "masks" in shown
    assert re.search(words, named), named


WAIT = "self._jax.block_until_ready((self.trained, self._loss))"
EARLY = {
    "a sync that does not wait": "pass",
    "a sync that waits every second time": counted("self.taken % 2", WAIT),
}


@pytest.mark.planted
@pytest.mark.parametrize("fault", EARLY)
def test_a_sync_that_does_not_wait_is_refused(fault, prove, planted) -> None:
    words = "sync returned before the steps were done"
    with pytest.raises(AssertionError, match=words):
        prove("jax", tinycnn, {on_jax.FOLDER + "adapter.py": (WAIT, EARLY[fault])})
    planted("jax", fault, "the proof", words)


@pytest.mark.long
@pytest.mark.parametrize("name", PLANTED)
def test_what_adam_trains_is_proved(name, prove) -> None:
    assert prove(name, adam).error < 1e-3


@pytest.mark.long
@pytest.mark.parametrize("network", NETWORKS)
def test_what_the_first_tensorflow_trains_is_proved(network, given, tmp_path) -> None:
    start = given(NETWORKS[network], 1)
    (tmp_path / "gated.py").write_text(Path(NETWORKS[network].__file__ or "").read_text())
    events = work(
        "tensorflow@1.15",
        tmp_path,
        workload_module="gated",
        factors={"batch": BATCH, "precision": "fp32", "threads": 1},
        paths={"proof": str(start), "proved": str(tmp_path / "made")},
    )
    assert told(events, "finished")
    asked = folders.open_folder(start)
    made = folders.open_made(Contained(tmp_path), tmp_path / "made")
    assert judging.judge(NETWORKS[network].WORKLOAD, "fp32", asked, made).error < 1e-3


def test_in_bf16_a_fault_of_the_optimiser_is_as_plain_as_in_fp32(prove) -> None:
    sgd = on_torch.SGD
    change = {on_torch.FOLDER + "training.py": (sgd, sgd.replace("lr=rate", "lr=2 * rate"))}
    with pytest.raises(Untrained, match=re.escape("2 times as far as its rate says")):
        prove("torch", tinycnn, change, precision="bf16")


EXCHANGED = "self.batch[0], torch.cat([self.batch[1][:2].flip(0), self.batch[1][2:]])"


@pytest.mark.planted
@pytest.mark.parametrize("precision", ["bf16", pytest.param("bf16-pure", marks=pytest.mark.long)])
def test_in_bf16_two_texts_with_the_targets_of_each_other_are_seen(
    precision, prove, planted
) -> None:
    step = on_torch.STEP
    change = {on_torch.FOLDER + "activity.py": (step, step.replace("*self.batch", EXCHANGED))}
    with pytest.raises(Untrained, match=r"the gradient of ") as caught:
        prove("torch", tinyllama, change, precision=precision)
    planted("torch", f"targets of two texts exchanged, {precision}", "the proof", str(caught.value))


def test_no_share_that_is_as_it_should_be_is_named(prove) -> None:
    step = on_torch.STEP
    change = {on_torch.FOLDER + "activity.py": (step, step.replace("*self.batch", LAST_LEFT_OUT))}
    with pytest.raises(Untrained, match=r"the gradient of .* is wrong"):
        prove("torch", tinycnn, change, precision="bf16")
