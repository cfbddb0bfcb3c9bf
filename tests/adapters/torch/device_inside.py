"""Move what torch's operators did on a CPU to a device's track: shares must stay as they were.

No GPU is needed: each operator's own time is a kernel that it launched.
"""

from harness.worker import place
from harness.worker.adapters.torch import settings
from harness.worker.adapters.torch.activity import TrainingActivity
from harness.worker.adapters.torch.strategies.strategy import Strategy
from harness.worker.adapters.torch.tracing import attribution
from harness.worker.adapters.torch.tracing.events import Kernel
from harness.worker.adapters.torch.tracing.operators import divided
from harness.worker.adapters.torch.tracing.profiled import traced
from harness.worker.adapters.torch.training import Trainer
from harness.worker.attribution.marks import GAPS, OTHER, Marks
from tests.scales import fed
from workloads.tinycnn import WORKLOAD

STEPS = 5


def kernels(host):
    """Give each stretch in which an operator was the innermost one, as a kernel of its own."""
    counted = [one for one in host if is_counted(one.name)]
    for thread in {one.thread for one in counted}:
        open_ones, since = [], 0
        turns = [(one.start, 1, one) for one in counted if one.thread == thread]
        turns += [(one.end, 0, one) for one in counted if one.thread == thread]
        for at, begins, one in sorted(turns, key=lambda turn: (*turn[:2], -turn[2].end)):
            if open_ones and at > since:
                inner = open_ones[-1]
                yield Kernel(inner.name, since, at, inner.number, since)
            since = at
            if begins:
                open_ones.append(one)
            else:
                open_ones.remove(one)


def is_counted(name):
    return name.startswith("Optimizer.") or ("::" in name and "autograd::" not in name)


def test_kernels_belong_where_their_operators_do():
    alone = place.find({})
    applied = settings.apply({"threads": 1}, {}, alone)
    trainer = Trainer(WORKLOAD, applied, 1, Strategy())
    trainer.start_optimiser(4)
    activity = TrainingActivity(trainer, fed(WORKLOAD, {"batch": 4}, alone), "images")
    activity.step()
    marks = Marks(WORKLOAD.network)
    with attribution.marked(activity, marks):
        (one,), _ = traced(activity, 1, with_shapes=True, is_gpu=False)
    made, _ = traced(activity, STEPS, with_shapes=False, is_gpu=False)
    moved = [step._replace(device=list(kernels(step.host))) for step in made]
    on_cpu = shares(divided(one, made, marks, [], [], is_gpu=False))
    on_device = shares(divided(one, moved, marks, [], [], is_gpu=True))
    assert set(on_cpu) == set(on_device), set(on_cpu) ^ set(on_device)
    for where, share in on_cpu.items():
        assert abs(on_device[where] - share) < 0.001, (where, share, on_device[where])
    assert on_device["conv1", "backward"] > 0, on_device
    assert on_device["", GAPS] > 0, on_device
    assert on_device.get(("", OTHER), 0) < 0.02, on_device


def shares(found):
    return {tuple(part.place): sum(part.shares) / len(part.shares) for part in found.parts}
