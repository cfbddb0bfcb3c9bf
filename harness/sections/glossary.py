"""The section of the words that a report uses."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.sections.contract.blocks import Block, Facts, Fold
from harness.sections.contract.section import Section

_GLOSSARY: tuple[tuple[str, str], ...] = (
    ("block", "one pass over all cells, in random order"),
    ("cannot tell", "the data allow faster as well as slower; more blocks would be needed"),
    ("cell", "one point of the study: workload, framework, strategy and settings on a machine"),
    ("ceiling", "the most that a kernel was measured to reach on the machine"),
    (
        "compute-bound",
        "most of the step is what its multiplications need at the quickest seen here",
    ),
    ("contended", "somebody else used the machine in so many trials that too few are left"),
    ("counted", "the trial stands behind the numbers of its cell"),
    (
        "equivalent",
        "the network as lowered for the gate has the reference's outputs, loss, gradients, updates",
    ),
    ("examination failed", "the gate's examination of this cell crashed; it is not ranked"),
    ("host gap", "a moment of the step in which no operation ran; on a GPU no kernel"),
    ("interval", "where the true value plausibly lies; its level is given beside it"),
    (
        "kernel-bound",
        "most of the step is what operations (kernels) take beyond multiplying and memory",
    ),
    ("layout copy", "an operation that only brings a tensor into another order of its dimensions"),
    ("memory-bound", "most of the step is what its tensors need through the memory"),
    ("n", "how many trials stand behind a number"),
    ("not checked", "nobody has proved yet that this cell computes the same as the others"),
    ("origin", "measured, simulated, stand-in or replayed; only measured trials are ranked"),
    ("p50, p95, p99", "half, 95 % and 99 % of the step windows were faster than this"),
    ("plain copy", "a tensor copied as it lies, since it is overwritten while it is still read"),
    ("proved in part", "layers as timed were examined, in fp32 or less; no gradients, no updates"),
    ("reference", "the cell that all others of its workload are compared with"),
    ("same", "the ratio lies, with its whole interval, within the band agreed beforehand"),
    ("round", "one turn of every cell that takes turns in a block, in random order"),
    ("triad", "a kernel that reads two arrays and writes a third: it measures the memory"),
    ("trial", "one fresh execution of a cell; the unit of repetition"),
    ("turn", "a second or so in which one of the living trials works and the others stand still"),
    ("verdict", "may this trial be believed: valid, noisy, unsteady, contended, throttled …"),
    ("× reference", "rate of the cell divided by the rate of the reference, within blocks"),
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    yield Fold("What the words mean", (Facts(_GLOSSARY, is_prose=True),), is_printed=True)


SECTION = Section("Glossary", 1800, _blocks)
