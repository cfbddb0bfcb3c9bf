"""Write down the batches that the network receives: the examination of what feeds a training.

The activity is the one that a trial steps, on a small set of files whose content the host knows.
``fetch`` brings a batch, ``fed`` shows what the next step takes: after decoding, scaling, layout
and transfer. Nothing is stepped. Given, ``about``: ``epochs``, how many; ``thin``, the most items
to write of a sample. Made, by each rank in a folder of its own (``path_of``), all float32:

    EPOCH/BATCH/input     batch x items, of each sample every n-th item; both count from 0
    EPOCH/BATCH/target    as the loss takes it

and in ``about``: ``shapes``, one sample's shape in each batch; ``refused``, why the audit of an
epoch refused what came, or null.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from harness.worker.contracts import Unsupported, door
from harness.worker.gate import tensors
from harness.worker.gate.rank_equality import path_of
from harness.worker.gate.subject import stride
from harness.worker.gate.tensors import Writer
from harness.worker.input.evidence.audit import WrongDelivery


def examine(activity: Any, given_path: str, made_path: str, rank: int) -> None:
    """Fetch whole epochs and write what the network is handed."""
    fetch, fed, epochs = (door(activity, name) for name in ("fetch", "fed", "epochs"))
    if fetch is None or fed is None or epochs is None:
        raise Unsupported("this adapter does not show the batches that it trains on")
    asked = tensors.read(given_path).about
    made = Writer(path_of(made_path, rank))
    shapes: Dict[str, List[int]] = {}
    refused: Optional[str] = None
    try:
        for epoch in range(asked["epochs"]):
            epochs.turn()
            for batch in range(epochs.left()):
                fetch()
                place = "{}/{}".format(epoch, batch)
                shapes[place] = _write(fed(), made, place, asked["thin"])
        epochs.turn()  # which audits the last one
    except WrongDelivery as fault:
        refused = str(fault)
    made.close({"shapes": shapes, "refused": refused})


def _write(parts: Any, made: Writer, place: str, thin: int) -> List[int]:
    """Write a batch; give the shape of one input."""
    shape: List[int] = []
    for name, whole, items in parts:
        values = memoryview(items).cast("B").cast("f")
        count = whole[0]
        each = len(values) // count
        step = stride(each, thin)
        rows = [values[row * each : (row + 1) * each : step].tobytes() for row in range(count)]
        made.put("{}/{}".format(place, name), (count, -(-each // step)), b"".join(rows), "float32")
        if name == "input":
            shape = list(whole[1:])
    return shape
