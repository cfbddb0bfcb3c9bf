"""The results of a trial's input and of its checkpoints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InputResult:
    """What a trial's input was like, over the ranks and the epochs whose caches held the same."""

    cache: str
    """cold, warm, mixed or unknown, as proved."""
    cold_fraction: float | None = None
    """Share of the bytes that came from storage, in the epoch where it was least."""
    epochs: int = 0
    other_epochs: int = 0
    """Measured ones that were left out, for their caches held something else."""
    rate: float | None = None
    """Samples per second in whole epochs; None where phases do not end with epochs."""
    bytes_per_s: float | None = None
    epoch_s: float | None = None
    wait_share: float | None = None
    """Time spent waiting for input over all time."""
    cpu_s_per_gb: float | None = None
    """CPU time of the ranks and their readers per 10^9 bytes delivered."""
    calls_per_epoch: float | None = None
    bytes_per_call: float | None = None
    delivered: float | None = None
    """Samples that all ranks together were handed in an epoch."""
    busy_cores: float | None = None
    """Processors that a rank and its readers kept busy, on average."""
    cpus: float | None = None
    """Of so many that were its own."""
    faults: tuple[str, ...] = ()
    """What the audit over all ranks found."""


@dataclass(frozen=True)
class CheckpointResult:
    """What a trial's checkpoints cost: medians over those of the measured phase."""

    saver: str
    count: int
    state_bytes: int
    blocking_s: float
    """How long training stood still for one."""
    saved_s: float | None
    """From its start until it was whole on the tier that takes it first."""
    durable_s: float | None
    """From its start until it was whole, and synced, on the tier where it stays."""
    restore_s: float | None
    restore_bytes: int | None
    restore_cache: str
    """What the page cache held of it, as proved: cold, warm, mixed or unknown."""
    inflation: float | None
    """Step time while one is on its way, over step time while none is; None where one of
    the two was hardly seen, or saving is the work."""
    blocked_share: float
    """Share of the trial's time that training stood still."""
