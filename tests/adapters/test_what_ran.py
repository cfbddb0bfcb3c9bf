"""Confirm on real frameworks that factors have the effect they claim, by the probe."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.verdicts.asked_vs_ran import contradictions
from harness.worker import job as jobs
from harness.worker.scale import Scale
from tests import needs, payloads

pytestmark = pytest.mark.framework

ROOT = Path(__file__).parents[2]
USUAL = {
    "device": "cpu",
    "precision": "fp32",
    "compile": False,
    "layout": "default",
    "deterministic": False,
}
CAREFUL = {
    "threads": 1,
    "interop_threads": 1,
    "onednn": False,
    "deterministic": True,
}
TAKEN = {"threads": 1, "interop_threads": 1, "deterministic": True}


def changed(folder: Path, file: str, old: str, new: str) -> Path:
    """Copy the payload and change one of its sources."""
    source = folder / "payload"
    payloads.lay_out(source)
    text = (source / file).read_text()
    assert text.count(old) == 1, f"{file} has changed: {old}"
    (source / file).write_text(text.replace(old, new))
    return source


def probe(
    framework: str,
    folder: Path,
    factors: dict[str, Any],
    source: Path = ROOT,
    **environment: str,
) -> tuple[dict[str, Any], list[str]]:
    """Probe a cell of tinycnn; give its facts and what they deny of its factors."""
    asked = {**USUAL, **factors}
    ended = probing(framework, folder, asked, source, **environment)
    assert ended.returncode == 0, ended.stderr
    lines = (folder / "events.0.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    facts = next(event["facts"] for event in events if event["event"] == "facts")
    return facts, [str(one) for one in contradictions(asked, facts)]


def probing(
    framework: str, folder: Path, asked: dict[str, Any], source: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the job that probes a cell of tinycnn."""
    job = jobs.Job(
        purpose="probe",
        cell_key="k",
        trial="probe",
        workload="tinycnn",
        workload_module="workloads.tinycnn",
        framework=framework,
        adapter_module=f"harness.worker.adapters.{framework}.adapter",
        environment=framework,
        strategy="none",
        scale=Scale(batch_per_device=16),
        factors=asked,
        options={},
        warmup=jobs.Span(steps=1),
        until=jobs.Span(steps=1),
        seed=7,
        directory=str(folder),
    )
    (folder / "job.json").write_text(jobs.text(job), encoding="utf-8")
    return subprocess.run(
        [needs.framework(framework), "-m", "harness.worker", folder / "job.json"],
        cwd=folder,
        env={**os.environ, **environment, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_layout_that_torch_s_tensors_do_not_have_is_seen(tmp_path: Path) -> None:
    source = changed(
        tmp_path,
        "harness/worker/adapters/torch/settings.py",
        'return None if self.layout == "channels-first" else LAYOUTS.get(spatial)',
        "return None",
    )
    facts, denied = probe("torch", tmp_path, {"layout": "channels-last"}, source)
    words = "the layout of its activations"
    assert denied == [f"asked for channels-last, ran channels-first ({words})"]
    assert facts["device"] == "cpu"


def test_graphs_that_torch_captured_and_ran_eagerly_are_seen(tmp_path: Path) -> None:
    source = changed(
        tmp_path,
        "harness/worker/adapters/torch/training.py",
        "torch.compile(module, mode=self.settings.mode, ",
        "torch.compile(module, backend='eager', ",
    )
    facts, denied = probe("torch", tmp_path, {"compile": True}, source)
    assert (facts["compiler"], facts["compiled_graphs"]) == (None, 1)
    assert denied == ["asked for compile, nothing was compiled (the framework's count)"]


def test_torch_does_not_go_on_in_eager_mode_where_it_compiled_too_often(tmp_path: Path) -> None:
    source = changed(
        tmp_path,
        "harness/worker/adapters/torch/training.py",
        "return torch.compile(module, mode=self.settings.mode, ",
        """torch._dynamo.config.recompile_limit = 1
        calls = [0]

        def forward(*given: Any) -> Any:
            calls[0] += 1
            return module(*given)

        return torch.compile(forward, backend='eager', """,
    )
    ended = probing("torch", tmp_path, {**USUAL, "compile": True}, source)
    assert ended.returncode == 3
    assert "FailOnRecompileLimitHit" in ended.stderr


def test_a_step_that_tensorflow_did_not_compile_is_seen(tmp_path: Path) -> None:
    source = changed(
        tmp_path,
        "harness/worker/adapters/tensorflow/settings.py",
        "return tf.function(function, autograph=False, jit_compile=True)",
        "return tf.function(function, autograph=False)",
    )
    facts, denied = probe("tensorflow", tmp_path, {"compile": True}, source)
    assert denied == ["asked for compile, nothing was compiled (the framework's count)"]
    assert (facts["device"], facts["layout"]) == ("cpu", "channels-last")


def test_a_layout_that_xla_did_not_take_is_seen(tmp_path: Path) -> None:
    source = changed(
        tmp_path,
        "harness/worker/adapters/jax/settings.py",
        'channels_last=factors.get("layout") != "channels-first"',
        "channels_last=True",
    )
    facts, denied = probe("jax", tmp_path, {"layout": "channels-first", "compile": True}, source)
    words = "the layout of its activations"
    assert denied == [f"asked for channels-first, ran channels-last ({words})"]
    assert facts["device"] == "cpu"


def test_torch_takes_threads_layout_determinism_and_no_onednn(tmp_path: Path) -> None:
    facts, denied = probe("torch", tmp_path, {**CAREFUL, "layout": "channels-first"})
    assert denied == []
    taken = {**TAKEN, "layout": "channels-first", "onednn": False, "busy_threads": 1}
    assert {name: facts[name] for name in taken} == taken
    assert facts["onednn_primitives"] == {}


def test_torch_computes_in_bfloat16_channels_last_with_onednn(tmp_path: Path) -> None:
    needs.capability("avx512f", "torch leaves bf16 to oneDNN only where it has that")
    asked = {"precision": "bf16", "onednn": True, "layout": "channels-last"}
    facts, denied = probe("torch", tmp_path, asked)
    assert facts["onednn_layouts"].get("acdb")
    kind = "bfloat16" if "bfloat16" in (facts["onednn_isa"] or "") else None
    if kind:
        assert facts["computed"][kind] > 0.9
        assert denied == []


def test_tensorflow_takes_threads_determinism_and_no_onednn(tmp_path: Path) -> None:
    facts, denied = probe("tensorflow", tmp_path, CAREFUL)
    assert denied == []
    assert {name: facts[name] for name in TAKEN} == TAKEN
    assert set(facts["onednn_primitives"]) <= {"gemm_api"}


@pytest.mark.parametrize("threads", [1, 2])
def test_the_threads_of_xla_s_pool_are_counted(threads: int, tmp_path: Path) -> None:
    facts, _ = probe("jax", tmp_path, {"threads": threads})
    assert facts["threads"] == threads


def test_a_pool_of_one_thread_where_two_were_asked_for_is_seen(tmp_path: Path) -> None:
    source = changed(
        tmp_path,
        "harness/worker/adapters/jax/settings.py",
        "os.environ[name] = str(threads(factors))",
        'os.environ[name] = "1"',
    )
    _, denied = probe("jax", tmp_path, {"threads": 2, "compile": True}, source)
    assert denied == ["asked for 2 threads, ran 1 (the size of its pool)"]


def test_tensorflow_runs_onednn_s_primitives_when_asked(tmp_path: Path) -> None:
    facts, denied = probe("tensorflow", tmp_path, {"onednn": True})
    assert denied == []
    assert any(name.startswith("convolution") for name in facts["onednn_primitives"])


def test_xla_on_a_cpu_computes_bfloat16_in_float32_and_is_found_out(tmp_path: Path) -> None:
    facts, denied = probe("tensorflow", tmp_path, {"precision": "bf16", "compile": True})
    assert (facts["compiler"], facts["compiled_graphs"]) == ("xla", 1)
    assert facts["compile_s"] > 0
    work = "convolutions and products of XLA's optimised step"
    ran = "ran float32 kernels, to which XLA widens it on this CPU"
    assert denied == [f"asked for bf16, {ran} (100 % of the {work})"]


def test_bfloat16_without_its_instructions_is_seen_in_what_onednn_says(tmp_path: Path) -> None:
    asked = {"precision": "bf16"}
    facts, _ = probe("torch", tmp_path, asked, ONEDNN_MAX_CPU_ISA="AVX2")
    assert "bfloat16" not in (facts["onednn_isa"] or "")
    assert not any("avx512" in name for name in facts["onednn_primitives"])
