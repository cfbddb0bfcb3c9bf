"""The steps of a GPU day, in their order. A new one is a module in ``steps/`` and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.gpu.answer import Answer
from tests.gpu.day import FRAMEWORKS, Day
from tests.gpu.steps import (
    attribution,
    ceilings,
    doctor,
    figures,
    gate,
    nvml,
    observer,
    plain,
    probe,
    study,
    windows,
)


@dataclass(frozen=True)
class Step:
    """One thing that a GPU day shows; each takes less than eight minutes."""

    name: str
    shows: str
    run: Callable[[Day], Answer]


STEPS = (
    Step("doctor", "what is missing here and what would spoil numbers", doctor.look),
    Step("probe", "whether the probe finds the GPUs that nvidia-smi lists", probe.probe),
    Step("nvml", "whether the collector reads what nvidia-smi reads", nvml.read),
    Step("observer", "what observing costs with GPUs to read", observer.cost),
    *(
        Step(
            f"gate-{name}",
            f"whether {name} computes on the GPU what the workloads say",
            partial(gate.prove, framework=name),
        )
        for name in FRAMEWORKS
    ),
    *(
        Step(
            f"ceilings-{session}",
            "what kernels and copies reach at most, against what the vendor states",
            partial(ceilings.measure, session=session),
        )
        for session in ceilings.SESSIONS
    ),
    *(
        Step(
            f"study-{name}",
            f"the study {name}, small, from start to page",
            partial(study.run, study=name),
        )
        for name in study.STUDIES
    ),
    Step("figures", "utilisation by three conventions, energy, figures", figures.draw),
    *(
        Step(
            f"windows-{name}",
            f"whether the loop's windows around {name} are as long as the device's work",
            partial(windows.compare, framework=name),
        )
        for name in FRAMEWORKS
    ),
    *(
        Step(
            f"attribution-{name}",
            f"which layer and pass of {name} the device's time goes to, and how much to none",
            partial(attribution.divide, framework=name),
        )
        for name in FRAMEWORKS
    ),
    *(
        Step(
            f"plain-{name}",
            f"whether a timed step of {name} takes as long as in a plain script",
            partial(plain.compare, framework=name),
        )
        for name in FRAMEWORKS
    ),
)
