"""State what the worker side expects of an adapter: the doors, and nothing behind them.

An adapter module has one function, ``open(job, place) -> Adapter``, which is not told what the job
is for. Where libraries have to be asked before they are imported to say what they do, it also has
``PROBED``: variables that the worker sets for a probe. Nothing here is needed at run
time; the Protocols exist for type checkers and readers (``typing.Protocol`` came with Python 3.8).

Optional doors. Of an Activity, each called outside the clock:

    parameters() -> int             trainable ones of the lowered model, asserted before timing
    fetch() -> None                 wait for the next batch of input; called by the loop before each
                                    step, within the clock, and timed apart
    epochs                          an object with whole, left() and turn(): passes over the files
                                    that are read; see ``input/epochs.py``
    saver() -> Saver                saves and restores what is trained, with the framework's own
                                    means; needs ``checkpoint_every`` in the adapter's ``.toml``
    device_steps() -> [seconds]     the device's own time of each step since the last call, or of as
                                    many of the latest as the adapter holds (CUDA events)

    fed()                           yields (name, shape, buffer of float32) of the batch that the
                                    next step takes, ``input`` and ``target``, channels first
    multiplications() -> Count      those of the convolutions and products of one step, counted
                                    where it runs, after all that is timed, and by what; raises
                                    Uncounted with the reason (``facts/multiplications.py``). It
                                    may step
    load(state), give(input, target), state()      all three or none: what is timed is opened, and
                                    afterwards examined, through them (``gate/timed_updates.py``).
                                    ``load`` sets, in place, what a mapping from names to tensors
                                    has; ``give`` replaces the batch by one of the same shape;
                                    ``state`` yields (name, shape, buffer of float32) of everything
                                    that a step changes and a gradient reaches
    programs() -> int or None       how many programs the step was compiled to so far, if it can
                                    tell; with more than one another may be examined than was timed
    replicas, replica(number)       of a rank that drives several devices: how many, and ``state``
                                    of each of them

An Activity whose steps happen in another program has ``marks`` instead of step and sync; see
``external_loop.py``.

Of an Adapter, for workloads that are no network:

    exchange(operation, message) -> Exchange            messages between ranks: ``collective.py``
    loaders(options) -> Own                             its own readers of files: ``input/open.py``

Of an Adapter, each used outside any timed trial, by a job with that purpose:

    examine(workload, precision) -> Subject             see ``harness/worker/gate/subject.py``
    probe(workload, feed, options) -> {name: fact}      what really ran; needs ``probe = true`` in
                                                        the adapter's ``.toml``

    attribute(workload, feed, options) -> Attribution   which layer and pass took which share of a
                                                        step (``attribution/account.py``); needs
                                                        ``attributes = true`` in its ``.toml``

Facts have the same names in every adapter; one that an adapter cannot tell is absent or null, and
what only one framework knows goes under a name of its own. After every trial (``facts``), what the
framework's own switches and counters say:

    device, device_name     "cpu" or "gpu", of what was computed or is held (of JAX and TensorFlow
                            from the probe alone); what the framework calls it
    peak_device_bytes       most memory held on the device
    threads                 size of the pool that one operation is spread over
    interop_threads         size of the pool that runs operations side by side
    deterministic, onednn   whether the framework's own switch is on
    weights_held, optimiser_held        the types of what is trained, and of what is kept of it
    tf32_products, tf32_convolutions    whether float32 may be computed in TF32 on the GPU
    compiler                "inductor", "xla", null for none, by what it compiled (of TensorFlow
                            from the probe alone)
    compile_s               seconds spent compiling in this process
    compiled_graphs, graph_breaks, graph_break_reasons      one graph and no break is a whole step
    compile_cache_hits, compile_cache_misses
    start                   digests of the weights and the batch that it started from, and the name
                            of a tensor that was not as given (``gate/starting_point.py``)
    restarts                losses of one step, again from the starting weights and the first batch
                            (of several ranks, the first one's part of it), where dropouts drop:
                            other masks give another one
    multiplications         of the step that was timed: asked for by the network, of those again
                            where blocks are computed twice, and counted by something, or why
                            uncounted (``facts/multiplications.py``)

Of every trial of several ranks, whatever the framework (``facts/network_use.py``):

    network                 interface -> sent, received (bytes), connections and retransmits of
                            this rank's TCP; empty where something else carried the messages

From the probe alone, watched from inside and from below, per step:

    computed                type -> share of the convolutions and products done in it
    computed_by             what that share is a share of: time, or a count
    operations              "name type" -> times
    kernels                 name -> times, on a GPU
    fusions                 how many XLA made
    attention               "fused" or "plain", of a network with any: whether a fused kernel ran
    layout                  "channels-last" or "channels-first", of most activations at
                            convolutions: by the strides of tensors, oneDNN's tags, the traced
                            operations or XLA's optimised ones; absent where none of them tells
    onednn_isa              the instructions that oneDNN says it takes; null if it said nothing
    onednn_primitives       "kind implementation" -> times
    onednn_layouts          layout of the source of a convolution or product -> times
    onednn_reorders         times that a tensor was brought into another layout
    busy_threads            threads of this process that computed
    exchange_hooks          of ranks that exchange gradients: steps, step_s, exposed_s (medians of
                            the first rank's), messages, bytes of a step
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional

if TYPE_CHECKING:
    from typing import Protocol

    from harness.worker.feed import Feed
    from harness.worker.network.workload import Workload
else:
    Protocol = object


def door(behind: Any, name: str) -> Any:
    """Give an optional door of an Activity, an Adapter or a Subject; None where it has none."""
    return getattr(behind, name, None)


class Unsupported(Exception):
    """Say why this framework cannot do what the cell asks; the cell becomes an honest hole."""


class Refused(Exception):
    """Say to a user why a trial counts for nothing: what is timed is not what it is called."""


class OutOfMemory(Exception):
    """Carry the framework's own words about memory it could not get."""


class Activity(Protocol):
    """What an adapter hands to the timed loop."""

    units: Mapping[str, float]
    """Work done per step by this rank, for example ``{"images": 16}``."""

    def step(self) -> None:
        """Enqueue one step; never read a clock, never wait."""

    def sync(self) -> None:
        """Return when the device is idle."""

    def values(self) -> Mapping[str, float]:
        """Give the loss and the like; called outside the clock."""

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers; called outside the clock, only if size > 1."""


class Saver(Protocol):
    """How a framework writes a checkpoint and reads it back; others make it durable."""

    name: str
    """What does it: torch.save, tf.train.Checkpoint …"""
    bytes: int
    """Of what it saves, in memory."""
    together: bool
    """Whether every rank takes part; else the first one saves for all."""

    def save(self, folder: str) -> Optional[Callable[[], None]]:
        """Write the state into an empty folder; None when written, else what waits until it is.

        What is written is the state of this moment, whatever training changes meanwhile.
        """

    def restore(self, folder: str) -> None:
        """Put a saved state back into what is trained, and wait until it is there."""

    def digest(self) -> str:
        """Hash everything that restoring must bring back."""


class Adapter(Protocol):
    """One framework, opened in its own interpreter."""

    def versions(self) -> Mapping[str, str]:
        """Name the framework and every library below it that decides its speed."""

    def activity(self, workload: Workload, feed: Feed, options: Mapping[str, Any]) -> Activity:
        """Lower a network, or a kernel, to this framework; raise Unsupported with the reason.

        Messages, files to read and checkpoints are opened by the worker, through further doors.
        """

    def facts(self) -> Mapping[str, Any]:
        """Say what was used, after the last window: peak_device_bytes, graph breaks, threads."""

    def close(self) -> None:
        """Give back what was opened."""
