"""Record what a trial starts from, read back through the activity's doors, and what it is fed.

Trials of one network, batch and seed start from the same weights and the same batch, whatever the
framework. Where batches come from files, two of them in a row differ, their numbers are those that
are stored, and their targets those that stand beside the samples.
"""

from __future__ import annotations

import hashlib
from array import array
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple

from harness.worker.contracts import door
from harness.worker.gate.losses import are_equal, is_narrow
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.input.evidence.audit import WrongDelivery

LETTERS = 16
_BATCHES = 3


def read(
    activity: Any, initial: Mapping[str, Tensor], first: Mapping[str, Tensor]
) -> Dict[str, Optional[str]]:
    """Digest weights and batch, and name the first tensor that is not as it was given, if any."""
    fed = door(activity, "fed")
    weights, wrong = _digest(activity.state(), initial)
    batch, other = (None, None) if fed is None else _digest(fed(), first)
    return {"weights": weights, "batch": batch, "differs": wrong or other}


def require_fresh_batches(activity: Any, weights: Mapping[str, Tensor]) -> None:
    """Fetch some batches, where there are files: refuse the same one again, other targets, other
    numbers than those of the files, and steps that do not take what was fetched.

    From the same weights another batch has another loss; two may agree by chance.
    """
    fetch, fed, epochs = (door(activity, name) for name in ("fetch", "fed", "epochs"))
    if fetch is None or fed is None or epochs is None or epochs.left() < _BATCHES:
        return
    inputs, losses = [], []
    for _ in range(_BATCHES):
        activity.load(weights)
        fetch()
        batch = {name: items for name, _, items in fed()}
        inputs.append(hashlib.sha256(batch["input"]).digest())
        if bytes(batch["target"]) != array("f", epochs.targets()).tobytes():
            raise WrongDelivery("what was fed has other targets than the samples in the files")
        how = epochs.differs(memoryview(batch["input"]).cast("B").cast("f"))
        if how is not None:
            raise WrongDelivery(how)
        activity.step()
        activity.sync()
        losses.append(activity.values()["loss"])
    if len(set(inputs)) < _BATCHES:
        raise WrongDelivery("the same batch was fed again, where the next one was to come")
    if are_equal(losses) and not all(map(is_narrow, losses)):
        raise WrongDelivery(
            "from the same weights the loss is {:.7g} for each of {} batches that were fetched: "
            "what the step takes is another one".format(losses[0], _BATCHES)
        )


def _digest(made: Iterable[Made], given: Mapping[str, Tensor]) -> Tuple[str, Optional[str]]:
    """Digest the tensors that were given, by name, as they are now; name one that is another."""
    found: Dict[str, bytes] = {}
    wrong = None
    for name, _, items in made:
        if name in given:
            found[name] = hashlib.sha256(items).digest()
            asked: Any = given[name].items()
            if given[name].dtype != "float32":  # class numbers are given as such
                asked = array("f", asked)
            if wrong is None and found[name] != hashlib.sha256(asked).digest():
                wrong = name
    lacking = sorted(set(given) - set(found))
    whole = hashlib.sha256()
    for name in sorted(found):
        whole.update(name.encode("utf-8") + found[name])
    return whole.hexdigest()[:LETTERS], wrong or (lacking[0] if lacking else None)
