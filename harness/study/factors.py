"""The one vocabulary of factors: what studies vary, with type, default, meaning.

A factor that is ``framework``-bound is used by the adapter: a value other than the default needs
that adapter's ``<name>.toml`` to list it. The others are carried out by the harness itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.toml.values import Value, shown
from harness.worker.network.precisions import PRECISIONS


@dataclass(frozen=True)
class Factor:
    """One thing that can differ between cells; an adapter's own option has the same form."""

    name: str
    type: str
    """choice, flag, count (an integer from ``least`` to ``most``), number, or name."""
    default: Value
    meaning: str
    allowed: tuple[Value, ...] = ()
    least: int = 1
    framework: bool = False
    most: int = 2**31 - 1
    kinds: tuple[str, ...] = ()
    """Kinds of workload that it says something of; empty: of all."""
    declined: Mapping[Any, str] = field(default_factory=dict, hash=False)
    """Values that no framework is asked for yet, with the reason."""

    def wrong(self, value: Any) -> str | None:
        """Say why a value cannot be one of this factor's; None if it can."""
        if self.type == "flag":
            return None if isinstance(value, bool) else f"{shown(value)} must be true or false"
        if self.type == "count":
            if not isinstance(value, int) or isinstance(value, bool) or value < self.least:
                return f"{shown(value)} must be an integer from {self.least} up"
            return None if value <= self.most else f"{shown(value)} is more than {self.most}"
        if self.type == "number":
            if isinstance(value, int | float) and not isinstance(value, bool):
                return None
            return f"{shown(value)} must be a number"
        if not isinstance(value, str) or not value:
            return f'{shown(value)} must be a name in quotes, for example "{self.example()}"'
        return None

    def example(self) -> str:
        """Give a value that a message can show."""
        return str(self.allowed[0] if self.allowed else self.default or self.name)


def _factors(*factors: Factor) -> Mapping[str, Factor]:
    return {factor.name: factor for factor in factors}


_COMPUTING = ("train", "layer", "nothing", "ceiling", "checkpoint", "collective")
"""Kinds of workload where a framework computes: not where reading is the work."""

FACTORS: Mapping[str, Factor] = _factors(
    Factor("workload", "name", None, "what a step does"),
    Factor("framework", "name", None, "a framework, or framework@environment"),
    Factor("strategy", "name", "none", "how several ranks train together"),
    Factor("nodes", "count", 1, "how many nodes a trial uses"),
    Factor(
        "node",
        "count",
        None,
        "which of the nodes at hand a trial takes, counted from 1, or begins with; absent: any",
    ),
    Factor("ranks_per_node", "count", 1, "how many ranks run on each node"),
    Factor("devices_per_rank", "count", 1, "how many devices one rank drives"),
    Factor("device", "choice", "cpu", "where the step computes", ("cpu", "gpu")),
    Factor("batch", "count", 32, "samples per step and device"),
    Factor("global_batch", "count", None, "samples per step over all devices; instead of batch"),
    Factor(
        "sequence",
        "count",
        None,
        "tokens of a sample; absent: as many as the workload is described at",
        kinds=("train", "layer"),
    ),
    Factor(
        "accumulate",
        "count",
        1,
        "micro-batches that a device's batch is computed in, one after another, for one update",
        framework=True,
        kinds=("train",),
    ),
    Factor(
        "recompute",
        "flag",
        False,
        "keep what enters a network's blocks, and compute the rest anew for the gradients",
        framework=True,
        kinds=("train",),
    ),
    Factor(
        "attention",
        "choice",
        None,
        "how attention is computed: by the framework's fused kernel, or by two products and a "
        "softmax; absent: as the adapter does",
        ("fused", "plain"),
        framework=True,
        kinds=("train", "layer"),
    ),
    Factor(
        "precision",
        "choice",
        "fp32",
        "the arithmetic of the step; bf16-pure: weights, gradients and optimiser are bf16 too",
        (*PRECISIONS, "fp8"),
        framework=True,
        kinds=_COMPUTING,
        declined={
            "fp8": "fp8 is left out: no GPU has shown yet that what bakeoff makes of it is right"
        },
    ),
    Factor(
        "compile", "flag", False, "compile the step as a whole", framework=True, kinds=_COMPUTING
    ),
    Factor(
        "layout",
        "choice",
        "default",
        "order of an activation's dimensions in memory; default: the framework's best",
        ("default", "channels-first", "channels-last"),
        framework=True,
        kinds=_COMPUTING,
    ),
    Factor(
        "threads",
        "count",
        None,
        "threads of one operator in each rank; absent: all CPUs that the rank is given",
        framework=True,
    ),
    Factor(
        "interop_threads", "count", None, "operators that may run at the same time", framework=True
    ),
    Factor(
        "cell_seed",
        "count",
        None,
        "seed of weights, masks and order of samples; absent: the study's",
        least=0,
        kinds=("train", "read"),
    ),
    Factor(
        "deterministic",
        "flag",
        False,
        "only operators that repeat exactly",
        framework=True,
        kinds=_COMPUTING,
    ),
    Factor(
        "allocator",
        "name",
        None,
        "memory allocator preloaded: jemalloc, tcmalloc …, or a library's path",
        framework=True,
    ),
    Factor("onednn", "flag", None, "use oneDNN's operators on CPUs", framework=True),
    Factor(
        "compile_cache",
        "choice",
        "warm",
        "whether compilers find what they compiled in an earlier trial of the run",
        ("warm", "cold"),
        kinds=_COMPUTING,
    ),
    Factor(
        "input",
        "choice",
        "synthetic",
        "batches made once and kept on the device, or read from files",
        ("synthetic", "files"),
        framework=True,
        kinds=("train",),
    ),
    Factor("format", "name", None, "file format of the input"),
    Factor(
        "samples",
        "count",
        None,
        "samples in the files, of texts their tokens; absent: as many as the workload says",
    ),
    Factor("reader", "name", None, "what reads the input", framework=True),
    Factor("reader_threads", "count", None, "threads or processes that read", framework=True),
    Factor("prefetch", "count", None, "batches read ahead; 0: none", least=0, framework=True),
    Factor("buffers", "count", None, "buffers of the asynchronous reader", framework=True),
    Factor("buffer_samples", "count", None, "samples that one buffer holds"),
    Factor(
        "shuffle",
        "choice",
        "none",
        "how samples are reordered in each epoch; file: files, then samples within each buffer",
        ("none", "global", "file"),
    ),
    Factor("decode", "flag", False, "decode pictures and resize them", framework=True),
    Factor("tier", "name", None, "storage tier that the input lies on"),
    Factor(
        "cache",
        "choice",
        "as-found",
        "what the page cache holds of the files as an epoch begins; what it held is proved",
        ("as-found", "cold", "warm"),
    ),
    Factor(
        "compute",
        "choice",
        "none",
        "what stands for a model where reading is the work: CPU time, or sleep",
        ("none", "burn", "sleep"),
    ),
    Factor("compute_ms", "number", None, "milliseconds that it takes per batch"),
    Factor("checkpoint_every", "count", None, "steps between checkpoints", framework=True),
    Factor("checkpoint_to", "name", None, "storage tier that checkpoints stay on"),
    Factor(
        "checkpoint_through",
        "name",
        None,
        "fast storage tier that takes checkpoints first and drains them to where they stay",
    ),
    Factor(
        "stripe_count",
        "count",
        None,
        "servers of a Lustre file system that each file lies on; absent: its own default",
    ),
    Factor("stripe_mb", "count", None, "mebibytes of a file that lie together on one of them"),
    Factor(
        "memory_policy",
        "choice",
        None,
        "from where ranks allocate, as the platform's binding.memory; absent: as that says",
        ("any", "local", "fast-first", "fast-only", "interleave"),
    ),
    Factor("container", "flag", False, "run the ranks in the platform's container"),
    Factor(
        "communicate",
        "flag",
        True,
        "exchange gradients; false: do not, which shows what exchanging costs",
        framework=True,
        kinds=_COMPUTING,
    ),
    Factor(
        "peer",
        "flag",
        True,
        "exchange between devices of a node directly: over NVLink or PCIe, between CPUs in shared "
        "memory; false: through host memory, between CPUs over the loopback network",
        kinds=("train", "collective"),
    ),
    Factor("bucket_mb", "count", None, "megabytes of gradients exchanged at once", framework=True),
    Factor(
        "message_bytes",
        "count",
        None,
        "bytes of a collective's message",
        framework=True,
        most=2**40,
    ),
)

IN_CELL = tuple(name for name in FACTORS if name not in ("workload", "framework", "strategy"))
"""What a cell holds as its factors: all but the three that are fields of their own."""

_ALWAYS_SAID = frozenset(
    {"workload", "framework", "strategy", "device", "batch", "precision", "input"}
)
"""What a cell is looked for by, at its default too."""


def goes_without_saying(name: str, value: Any) -> bool:
    """Whether a value is one that nobody asks about: a factor's default, but for those above."""
    return name in FACTORS and name not in _ALWAYS_SAID and value == FACTORS[name].default


OF_INPUT = (
    *("format", "samples", "reader", "reader_threads", "prefetch", "buffers", "buffer_samples"),
    *("shuffle", "decode", "tier", "cache", "compute", "compute_ms"),
)
"""What says something of cells that read files, and nothing of others."""
