"""The examination: what every framework must compute, and name alike, for the gate.

The host writes a tensor folder (``tensors.py``), starts a worker with purpose ``examine`` and
``paths = {"given": folder, "made": folder}``, and compares the folders of two frameworks. An
adapter that can be examined has ``examine(workload, precision) -> Subject`` beside its other doors;
the order of events is the same for all and stands here only.

Given, ``about`` (the request): ``precision`` "float64" (the semantics: the adapter's own lowering,
every number in float64, compiled where the cell compiles) or "timed" (precision, layout and
compilation of the job's factors); ``shallow``: whether to take the workload's smaller network, if
it has one; ``input`` a reduced sample shape or null; ``updates`` how many (0 for none);
``gradients``: whether to run the whole network, or a list of the parameters whose
gradients are to be written, and beside them output and loss only; ``layers``: whether to do that
part; ``thin`` the most items to write of a state, 0 for all (optimisers work item by item, so every
n-th item tells). Given, tensors:

    input                  batch x the network's input, channels first; tokens are int64
    target                 int64 class numbers (batch; of a sequence batch x positions) or float64
                           vectors (batch x outputs)
    initial/PARAMETER      every parameter and running statistic
    restart/T/PARAMETER    the reference's state before update T, of those that do not go on from
                           what the one before left
    layer/PATH/input       reference input of a layer          } rounded by the host
    layer/PATH/gradient    reference gradient of its output    } to the timed precision

Made, all float64 and in the canonical layouts, whatever the framework computed in:

    output, loss           the network's output in training mode, and the scalar loss
    gradient/PARAMETER     of the mean loss; without weight decay
    activation/PATH        each layer's output in the same pass, dropouts left out
    statistic/PARAMETER    running statistics after that one pass
    after/T/PARAMETER      state after update T = 1 .. updates, the first from ``initial``. Before
                           one with a ``restart/T`` parameters and statistics are set to it;
                           the optimiser's own state is always kept
    layer/PATH/output, layer/PATH/input-gradient, layer/PATH/gradient/KIND      KIND: weight, bias …
    own/T/gradient/PARAMETER       } of a subject with a door ``own_updates``, which computes in a
    own/T/after/PARAMETER          } narrow type only: what update T = 1 .. made of gradients of its
                                   own; T = 0 is what it started from. Of each so many items
    layer/PATH/statistic/KIND      running statistics after that pass of a batch norm from initial;
                           not asked of the reference: the host knows the input's moments

Naming. A layer's PATH is its name behind the names of the residuals around it, joined by "/". A
PARAMETER is PATH/KIND: ``weight`` and ``bias`` of Conv and Dense; ``weight`` of tables; ``gamma``,
``beta`` (learned) of norms, ``mean``, ``variance`` (running) of BatchNorm. A TiedDense alone gives
its table's gradient as its own ``weight``; tokens have no gradient. Layouts: activations (batch,
channels, spatial …), (batch, features) or (batch, positions, features); Conv weight (out, in /
groups, spatial …); Dense weight (out, in), its inputs in channels-first flatten order (an adapter
that works channels-last permutes on the way in and out).

Training mode throughout: batch norm normalises by the batch. Dropout is off, save when a Dropout's
own PATH is examined as a layer: then it drops, and the host checks rate and scaling. A Residual or
a Product is not examined as a layer; its parts are. The batch counts as that of a step, so an SGD
rate with ``rate_batch`` is scaled by it. Starting state: initial = fresh optimiser (moments 0, step
0).

A request with ``norms`` in ``about`` is about ranks that train together: see ``rank_equality.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Sequence, Tuple

from harness.worker.contracts import Unsupported, door
from harness.worker.gate import tensors
from harness.worker.gate.tensors import Folder, Tensor, Writer
from harness.worker.network.layers import Dropout, Layer
from harness.worker.network.shapes import with_branches
from harness.worker.network.workload import Training

if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

Made = Tuple[str, Tuple[int, ...], Any]
"""A name, a shape, and a C-ordered buffer of float64 in native byte order."""


class LayerPass(Protocol):
    """One layer alone, which may run again and again on the same numbers; it is also timed so."""

    def forward(self) -> None:
        """Enqueue the forward pass, as it is in training."""

    def both(self) -> None:
        """Enqueue the forward and the backward pass."""

    def sync(self) -> None:
        """Return when the device is idle."""

    def made(self) -> Iterator[Made]:
        """Give what ``both`` computed: output, input-gradient, gradient/…, statistic/…"""


class Subject(Protocol):
    """One network under examination; tensors come and go in the canonical names and layouts."""

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set every parameter and running statistic; leave the optimiser's state alone."""

    def reset(self) -> None:
        """Forget the optimiser's state: moments and step count."""

    def gradients(self, given: Tensor, target: Tensor) -> Iterator[Made]:
        """Run forward and backward: output, loss, gradient/PARAMETER, activation/PATH."""

    def update(self, given: Tensor, target: Tensor) -> None:
        """Run one whole training step."""

    def state(self) -> Iterator[Made]:
        """Give every parameter and running statistic as PARAMETER."""

    def layer(self, path: str, given: Tensor, gradient: Tensor, to_input: bool = True) -> LayerPass:
        """Open one layer alone, freshly loaded; with or without the gradient of its input."""

    def facts(self) -> Mapping[str, Any]:
        """Say what the examination ran with, for example its compiler or why it ran eagerly.

        ``not_shown`` are texts: what of the timed step it leaves open.
        """


OWN_UPDATES = 3
"""Momentum shows in the second one, and a moment's correction for its start in each."""
MOST_ITEMS = 65_536
"""So many of each tensor at most: optimisers work item by item."""


def examine(adapter: Any, workload: Any, given_path: str, made_path: str) -> None:
    """Run what the given folder asks for and write the made folder."""
    given = tensors.read(given_path)
    if "norms" in given.about:
        from harness.worker.gate import rank_equality  # ranks that train together are few

        plain = resized(workload, given.about.get("input"), given.about.get("shallow"))
        rank_equality.examine(adapter, plain, given, made_path, put_thinned)
        return
    opened = door(adapter, "examine")
    if opened is None:
        raise Unsupported("this adapter cannot be examined")
    small = resized(workload, given.about.get("input"), given.about.get("shallow"))
    subject = opened(small, given.about["precision"])
    made = Writer(made_path)
    initial = given.under("initial/")
    subject.load(initial)
    asked = given.about.get("gradients")
    if asked or asked == []:
        _gradients(subject, given, made, asked)
    if given.about.get("updates"):
        _updates(subject, given, made)
    if given.about.get("layers"):
        subject.load(initial)
        _layers(subject, given, made)
        _own_updates(subject, given, made)
    made.close({"request": dict(given.about), "facts": dict(subject.facts())})


def resized(workload: Training, shape: Any, shallow: Any = None) -> Training:
    """Give the workload with another sample shape; its first dense layer shrinks along.

    With ``shallow`` it is the smaller network that the workload has for this.
    """
    if shallow and workload.shallow is not None:
        workload = replace(workload, network=workload.shallow, shallow=None)
    if shape is None:
        return workload
    return replace(workload, network=replace(workload.network, input=tuple(shape)))


def undropped(layers: Sequence[Layer]) -> Tuple[Layer, ...]:
    """Take the dropouts' rates away, for adapters that cannot switch dropping off."""
    plain = []
    for layer in layers:
        if isinstance(layer, Dropout):
            layer = replace(layer, rate=0.0)
        plain.append(with_branches(layer, undropped))
    return tuple(plain)


def _put(made: Writer, prefix: str, stream: Iterator[Made], dtype: str = "float64") -> None:
    for name, shape, items in stream:
        made.put(prefix + name, shape, items, dtype)


def _gradients(subject: Subject, given: Folder, made: Writer, asked: Any) -> None:
    stream = subject.gradients(given.tensors["input"], given.tensors["target"])
    if asked is not True:
        names = {"output", "loss", *("gradient/" + name for name in asked)}
        _put(made, "", (one for one in stream if one[0] in names))
        return
    _put(made, "", stream)
    for name, shape, items in subject.state():
        if name.endswith(("/mean", "/variance")):
            made.put("statistic/" + name, shape, items)


def stride(items: int, most: int) -> int:
    """Say which items of a state are written; odd, so that it meets all remainders of a row."""
    return 1 if not most or items <= most else -(-items // most) | 1


def thinned(stream: Iterator[Made], most: int, dtype: str) -> Iterator[Made]:
    """Give a state, of each tensor at most so many items."""
    for name, shape, items in stream:
        whole = memoryview(items).cast("B").cast("f" if dtype == "float32" else "d")
        step = stride(len(whole), most)
        if step == 1:
            yield name, shape, items
        else:
            thin = whole[::step]
            yield name, (len(thin),), thin.tobytes()


def put_thinned(
    made: Writer, prefix: str, state: Iterator[Made], most: int, dtype: str = "float64"
) -> None:
    """Write a state, of each tensor at most so many items."""
    _put(made, prefix, thinned(state, most, dtype), dtype)


def _updates(subject: Subject, given: Folder, made: Writer) -> None:
    batch = given.tensors["input"], given.tensors["target"]
    subject.load(given.under("initial/"))
    subject.reset()
    for update in range(1, given.about["updates"] + 1):
        restart = given.under("restart/{}/".format(update))
        if restart:
            subject.load(restart)
        subject.update(*batch)
        prefix = "after/{}/".format(update)
        put_thinned(made, prefix, subject.state(), given.about.get("thin", 0))


def _own_updates(subject: Subject, given: Folder, made: Writer) -> None:
    opened = door(subject, "own_updates")
    if opened is None:
        return
    subject.load(given.under("initial/"))
    batch = given.tensors["input"], given.tensors["target"]
    for update, stream in enumerate(opened(*batch, OWN_UPDATES)):
        put_thinned(made, "own/{}/".format(update), stream, MOST_ITEMS)


def _layers(subject: Subject, given: Folder, made: Writer) -> None:
    parts: Dict[str, Dict[str, Tensor]] = {}
    for name, tensor in given.under("layer/").items():
        path, part = name.rsplit("/", 1)
        parts.setdefault(path, {})[part] = tensor
    for path, tensor_of in parts.items():
        x = tensor_of["input"]
        has_gradient = x.dtype != "int64"  # tokens have none
        one = subject.layer(path, x, tensor_of["gradient"], has_gradient)
        one.both()
        _put(made, "layer/{}/".format(path), one.made())
