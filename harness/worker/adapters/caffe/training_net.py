"""Write a Caffe net that trains: what it reads or draws, the network, and the loss.

Files are read by Caffe's own Data layer, from a database of its own messages. Else the batch is
drawn anew in every step: DummyData redraws all but constants, and constant inputs make the loss
degenerate. What that takes is measured (``input_s``) and part of the step.
"""

from __future__ import annotations

from typing import Callable, Dict, Optional, Tuple

from harness.worker.adapters.caffe.database import BACKENDS
from harness.worker.adapters.caffe.engines import Engines
from harness.worker.adapters.caffe.lowering import Lowering
from harness.worker.adapters.caffe.prototxt import Message, Word
from harness.worker.contracts import Unsupported
from harness.worker.feed import Classes, Feed
from harness.worker.input.open import opened
from harness.worker.network.layers import Network
from harness.worker.network.words import holes, lowering_of
from harness.worker.network.workload import Training

GAUSSIAN: Message = [("type", "gaussian"), ("std", 1.0)]
LARGEST_SMALLER = 1 - 2.0**-20


def lower(
    workload: Training, feed: Feed, engines: Engines, source: Optional[str] = None
) -> Tuple[Message, Dict[str, str]]:
    """Write a training net; beside it, which layer makes the final value of each path.

    ``source`` is the folder of a database that it reads; None: its batches are drawn.
    """
    net = Lowering(workload.network, engines.of_sum())
    if source is None:
        _data(net, feed)
    else:
        _files(net, feed, source)
    last = net.row(workload.network.layers, "", "data")
    lower_loss(net, workload.loss, workload.network, last)
    layers = [("layer", layer) for layer in net.layers]
    return [("name", workload.name), *engines.of_net(), *layers], net.tops


def lower_loss(net: Lowering, kind: str, network: Network, last: str) -> float:
    """Append the mean loss of ``last`` against ``label``; give what its blob counts."""
    return lowering_of(LOSSES, kind, "caffe")(
        net, last, net.sites[network.layers[-1].name].output[0]
    )


def _cross_entropy(net: Lowering, last: str, _outputs: int) -> float:
    net.add("loss", "SoftmaxWithLoss", [last, "label"], "loss")
    return 1.0


def _mean_squared_error(net: Lowering, last: str, outputs: int) -> float:
    # EuclideanLoss is half the sum of squares over the samples only.
    weight = 2 / outputs
    net.add("loss", "EuclideanLoss", [last, "label"], "loss", ("loss_weight", weight))
    return weight


def _data(net: Lowering, feed: Feed) -> None:
    picture = (feed.input[0], *net.size(feed.input)) if len(feed.input) > 1 else feed.input
    if isinstance(feed.targets, Classes):
        # Truncated to class numbers; the largest must not be reached.
        highest = feed.targets.count * LARGEST_SMALLER
        filler: Message = [("type", "uniform"), ("min", 0), ("max", highest)]
        label: Tuple[int, ...] = ()
    else:
        assert feed.targets is not None
        filler, label = GAUSSIAN, (feed.targets.length,)
    own: Message = [("data_filler", GAUSSIAN), ("data_filler", filler)]
    batch = feed.scale.batch_per_device  # each GPU runs a net of its own
    for shape in ((batch, *picture), (batch, *label)):
        own.append(("shape", [("dim", size) for size in shape]))
    net.add("input", "DummyData", [], "data", ("top", "label"), ("dummy_data_param", own))


def _files(net: Lowering, feed: Feed, folder: str) -> None:
    """Let Caffe's own Data layer read, as many batches ahead as asked; it divides as we do."""
    dataset, files = opened(feed)
    if dataset.shape != tuple(feed.input):
        raise Unsupported(
            "the files hold samples of {}, and the network takes {}".format(
                dataset.shape or "encoded pictures", tuple(feed.input)
            )
        )
    source: Message = [
        ("source", folder),
        ("batch_size", feed.scale.batch_per_device),
        ("backend", Word(BACKENDS[dataset.format])),
    ]
    source += [("prefetch", files.prefetch)]
    scale: Message = [("scale", 1 / float(dataset.manifest["scale"]))]
    own = [("top", "label"), ("transform_param", scale), ("data_param", source)]
    net.add("input", "Data", [], "data", *own)


LOSSES: Dict[str, Callable[[Lowering, str, int], float]] = {
    "cross-entropy": _cross_entropy,
    "mean-squared-error": _mean_squared_error,
    **holes(
        ("token-cross-entropy", "token-and-pair-cross-entropy"),
        "Caffe has no layer for sequences of vectors",
    ),
}
