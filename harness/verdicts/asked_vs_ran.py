"""Compare what a cell asked for with what really ran, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.units import counted
from harness.verdicts.results import Contradiction
from harness.worker.input.evidence.page_cache import COLD_HERE
from harness.worker.network.precisions import PRECISIONS

MOST = 0.5
"""A type ran if it had at least this share of the convolutions and products."""
BORROWED = "gemm_api"
"""The one routine of oneDNN that other kernels borrow, whatever is switched off."""


def contradictions(
    factors: Mapping[str, Any], facts: Mapping[str, Any]
) -> tuple[Contradiction, ...]:
    """List the factors whose value the facts contradict.

    A factor is compared only where a fact speaks of it: an adapter that reports nothing of a thing
    does not contradict it. Each function below holds one factor's rule. Grave is what makes a cell
    another one than it is called: device, precision, whether anything was compiled, whether
    attention was fused, and micro-batches.
    """
    return (
        *_device(factors, facts),
        *_precision(factors, facts),
        *_held(factors, facts),
        *_threads(factors, facts),
        *_layout(factors, facts),
        *_compiler(factors, facts),
        *_attention(factors, facts),
        *_micro_batches(factors, facts),
        *_onednn(factors, facts),
        *_deterministic(factors, facts),
        *_cache(factors, facts),
    )


def _device(factors: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    asked, ran = factors.get("device"), facts.get("device")
    if asked and ran and asked != ran:
        yield Contradiction(
            f"a {asked}", f"ran on a {ran}", "as the framework reports", is_grave=True
        )


def _precision(factors: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    precision = factors.get("precision")
    shares: Mapping[str, float] = facts.get("computed") or {}
    known = PRECISIONS.get(str(precision))
    wanted = known and known.compute
    if wanted and shares and shares.get(wanted, 0.0) < MOST:
        most = max(shares, key=lambda name: shares[name])
        evidence = f"{shares[most] * 100:.0f} % of the {facts.get('computed_by') or 'work'}"
        ran = f"ran {most} kernels"
        is_xla_s = facts.get("compiler") == "xla" and facts.get("device") != "gpu"
        if is_xla_s and (wanted, most) == ("bfloat16", "float32"):
            ran += ", to which XLA widens it on this CPU"
        yield Contradiction(str(precision), ran, evidence, is_grave=True)
    if precision in ("fp32", "tf32") and facts.get("device") == "gpu":
        for what in ("products", "convolutions"):
            is_on = facts.get(f"tf32_{what}")
            if is_on is not None and is_on != (precision == "tf32"):
                ran = "TF32" if is_on else "fp32"
                yield Contradiction(
                    str(precision),
                    f"{what} may run in {ran}",
                    "the framework's setting",
                    is_grave=True,
                )


def _held(factors: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    precision = PRECISIONS.get(str(factors.get("precision")))
    for what in ("weights", "optimiser"):
        held = facts.get(f"{what}_held")
        if precision and held and held != precision.held:
            asked, evidence = str(factors["precision"]), "the types of its tensors after the steps"
            ran = {"weights": "weights are", "optimiser": "the optimiser's state is"}[what]
            yield Contradiction(asked, f"{ran} held in {held}", evidence, is_grave=True)


def _threads(factors: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    asked = factors.get("threads")
    pool, busy = facts.get("threads"), facts.get("busy_threads")
    if asked and pool is not None and pool != asked:
        yield Contradiction(counted(asked, "thread"), f"ran {pool}", "the size of its pool")
    elif asked and busy is not None and busy < asked:
        evidence = "threads that computed in the probe's steps"
        yield Contradiction(counted(asked, "thread"), f"ran {busy}", evidence)
    asked, pool = factors.get("interop_threads"), facts.get("interop_threads")
    if asked and pool is not None and pool != asked:
        yield Contradiction(counted(asked, "interop thread"), f"ran {pool}", "the size of its pool")


def _layout(factors: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    asked, ran = factors.get("layout"), facts.get("layout")
    if asked not in (None, "default") and ran and asked != ran:
        yield Contradiction(asked, f"ran {ran}", "the layout of its activations")


def _compiler(factors: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    if "compiler" not in facts:
        return
    compiler = facts["compiler"]
    if not factors.get("compile"):
        if compiler:
            evidence = "as the framework reports"
            yield Contradiction("no compilation", f"ran {compiler}", evidence, is_grave=True)
        return
    breaks = facts.get("graph_breaks")
    if compiler is None or facts.get("compiled_graphs") == 0:
        evidence = "the framework's count"
        yield Contradiction("compile", "nothing was compiled", evidence, is_grave=True)
    elif breaks:
        reasons = facts.get("graph_break_reasons") or ["no reason was given"]
        yield Contradiction("compile", f"{counted(breaks, 'graph break')}", str(reasons[0]))


def _attention(factors: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    asked, ran = factors.get("attention"), facts.get("attention")
    if asked and ran and asked != ran:
        evidence = "the operators that the framework dispatched"
        how = {"fused": "a fused kernel ran", "plain": "no fused kernel ran"}[ran]
        yield Contradiction(f"{asked} attention", how, evidence, is_grave=True)


def _micro_batches(factors: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    asked = factors.get("accumulate") or 1
    told = facts.get("multiplications") or {}
    parts = told.get("parts")
    if parts and parts % asked:
        evidence = f"how often each product of a step comes, by {told.get('by')}"
        ran = f"a step ran in {counted(parts, 'part')}"
        yield Contradiction(f"{asked} micro-batches", ran, evidence, is_grave=True)


def _onednn(factors: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    asked = factors.get("onednn")
    primitives: Mapping[str, float] | None = facts.get("onednn_primitives")
    if asked is None or primitives is None:
        return
    own = {name: count for name, count in primitives.items() if not name.startswith(BORROWED)}
    if asked and not own:
        evidence = "oneDNN printed none while being watched"
        yield Contradiction("oneDNN", "none of its primitives ran", evidence)
    if not asked and own:
        count = f"{sum(own.values()):.0f}"
        yield Contradiction("no oneDNN", f"{count} of its primitives ran a step", next(iter(own)))


def _deterministic(factors: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    if factors.get("deterministic") and facts.get("deterministic") is False:
        yield Contradiction(
            "deterministic", "the switch is off", "as the framework reports after the steps"
        )


def _cache(factors: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    asked, found = factors.get("cache"), facts.get("cache")
    if (asked, found) == ("cold", COLD_HERE):
        return  # cold as far as it can be measured there
    if asked in ("cold", "warm") and found and asked != found:
        share = facts.get("cold_fraction")
        evidence = (
            "the share from storage is unknown"
            if share is None
            else f"{share * 100:.0f} % of the bytes from storage"
        )
        yield Contradiction(f"{asked} epochs", f"they were {found}", evidence)
