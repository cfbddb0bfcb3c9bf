"""Faults planted in how torch's ranks train together."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, counted, known
from tests.gate.proof.planted.on_torch import BACKWARD, DUE, LATE, STEP
from tests.gate.proof.planted.on_torch import FOLDER as FOLDER

DDP = "strategies/ddp.py"
ALONE = ("if not self._communicates:", "if True:")
JOINING = "        if not self._communicates:\n            return forward\n"
HOOKED = """        made = DistributedDataParallel(forward)
        made.register_comm_hook(None, lambda _, bucket: {})
        return made
"""
SUMMED = "distributed.all_reduce(bucket.buffer(), async_op=True).get_future()"
FIRST = "distributed.broadcast(bucket.buffer(), 0, async_op=True).get_future()"
HOOKS = "__import__('torch.distributed.algorithms.ddp_comm_hooks.default_hooks', fromlist=['all'])"
GIVEN = "            own.copy_(given_tensor(tensor))\n"
LOADED = "                if name in state:\n"
RANK = "torch.distributed.get_rank()"


def exchanged(how: str) -> tuple[str, tuple[str, str]]:
    """Exchange gradients in another way than averaging them."""
    return DDP, (JOINING, HOOKED.format(how))


def each_second(step: str) -> str:
    """Exchange gradients in every second step."""
    alone = (
        f"else:\n                with self.trainer.forward.no_sync():\n                    {step}"
    )
    return f"{counted('self.taken % 2', step)}\n            {alone}"


FAULTS: dict[str, Fault] = known(
    {
        "gradients that are not exchanged": (DDP, ALONE),
        "gradients that are not exchanged where it drops": (DDP, ALONE),
        "gradients that are added up, not averaged": exchanged(
            f"{SUMMED}.then(lambda one: one.value()[0])"
        ),
        "gradients that are divided twice": exchanged(
            f"{SUMMED}.then(lambda one: one.value()[0] / 4)"
        ),
        "an average by the wrong count": exchanged(
            f"{SUMMED}.then(lambda one: one.value()[0] / 3)"
        ),
        "one rank's gradient for all": exchanged(f"{FIRST}.then(lambda one: one.value()[0])"),
        "gradients exchanged in fp16": exchanged(f"{HOOKS}.fp16_compress_hook(None, bucket)"),
        "gradients exchanged in bf16": exchanged(f"{HOOKS}.bf16_compress_hook(None, bucket)"),
        "gradients exchanged in every second step": ("activity.py", (STEP, each_second(STEP))),
        "the last step before a sync alone, of ranks": ("activity.py", (DUE, LATE)),
        "a rank that starts from other weights": (
            "training.py",
            (LOADED, LOADED.replace("in state", f"in state and not {RANK}")),
        ),
        "ranks that are fed the same samples": (
            "activity.py",
            (GIVEN, f"{GIVEN}            torch.distributed.broadcast(own, 0)\n"),
        ),
        "a rank that trains on half of its batch": (
            "activity.py",
            (STEP, STEP.replace("*self.batch", f"*(one[4 * {RANK} :] for one in self.batch)")),
        ),
        "a rank whose loss weighs twice": (
            "training.py",
            (BACKWARD, BACKWARD.replace("scale(loss)", f"scale((1 + {RANK}) * loss)")),
        ),
    }
)
