"""Hold each word of the network vocabulary to being written down wherever it is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.store.record_readers.run_reader import FLAGS, NUMBERS
from harness.study.factors import FACTORS
from harness.worker.adapters.caffe.lowering import Lowering
from harness.worker.contracts import Unsupported
from harness.worker.network.layers import Network, ReLU
from harness.worker.network.rule import ImpossibleNetwork
from harness.worker.network.shapes import count
from harness.worker.network.words import holes, lowering_of
from tests.contracts import vocabulary
from tests.contracts.vocabulary import ADAPTERS, NETWORK, RULES, WORKLOAD, Sources

NOW = Sources()

# Modules outside the adapters that ask for single words, and what becomes of a word they do not
# know. One that would make such a word vanish in silence needs a table in `vocabulary.py` instead.
ASKING = {
    "harness/analysis/limits/floors.py": "it is held to what products reached, not to convolutions",
    "harness/analysis/limits/model_flops.py": "it computes all that it computes, masked or not",
    "harness/exact/dropouts.py": "a dropout of what it gives is told, one inside it is not",
    "harness/exact/roundings.py": "what it rounds to bf16 is caught, but not named",
    "harness/exact/update_slips.py": "its update has the slips of clipping and of decay, if it "
    "does either",
    "harness/gate/layers.py": "it is compared with the reference as it is, without any allowance",
    "harness/gate/own_updates.py": "an optimiser other than SGD keeps moments, and has an epsilon",
    "harness/gate/proof/expected_updates.py": "it is taken to be smooth, and its gradients are "
    "held more closely",
    "harness/gate/proof/masks.py": "a dropout behind which it stands has no mask to be read",
    "harness/gate/proof/moments.py": "its moments are asked for by name in MOMENTS, which lacks it",
    "harness/gate/proof/narrow_weights.py": "an optimiser other than SGD keeps two moments, and "
    "is asked for both by name",
    "harness/gate/proof/request.py": "behind the last dense layer it leaves no start for a proof",
    "harness/gate/proof/running_variances.py": "it has no running variance to be corrected",
    "harness/gate/proof/start.py": "it is walked through as it is; behind a dropout it leaves no "
    "start for a proof",
    "harness/gate/proof/starting_moments.py": "an optimiser other than SGD has its second moment "
    "drawn as a square",
    "harness/gate/reference.py": "the reference computes it as it does any other",
    "harness/gate/result.py": "an optimiser other than SGD may declare its epsilon to differ",
    "harness/gate/semantics.py": "no slack is given to it, or by it: it differs",
    "harness/gate/tensors/draws.py": "weights before it are drawn as before any other: one that "
    "saturates loses its slope to rounding, and the gate says that frameworks differ",
    "harness/gate/tensors/requests.py": "its inputs are the network's own; behind the last dense "
    "layer it counts as a kink, so that layer's gradients are compared in float64 only",
    "harness/plan/rules/network_rules.py": "a framework's file may lack it by its own name",
    "harness/worker/gate/rank_equality.py": "it stays where batch norms are left out: one whose "
    "result depends on other samples differs between ranks",
    "harness/worker/gate/subject.py": "it is not switched off for the gate: one that draws differs",
    "harness/worker/network/alone.py": "alone it is as it is in its network",
    "harness/worker/network/shapes.py": "it is counted as drawing no masks, as fed no tokens, and "
    "as multiplying by what it holds alone",
    "harness/worker/network/workload.py": "the rate of an optimiser without a batch for it stays "
    "as it is, and its gradients are not clipped",
    "harness/worker/network/asked_workload.py": "a text of another length leaves it as it is",
}


def planted(file: str, before: str, after: str) -> list[str]:
    """Change one source in mind, and give the faults that this makes."""
    text = NOW.text(file)
    assert text.count(before) == 1
    return list(vocabulary.faults(Sources({file: text.replace(before, after)})))


def files(faults: list[str]) -> list[str]:
    return sorted(fault.partition(":")[0] for fault in faults)


def outside(faults: list[str]) -> set[str]:
    return {file for file in files(faults) if not file.startswith(ADAPTERS)}


def adapters(faults: list[str]) -> list[str]:
    """Give the folders of the adapters that faults are found in, once for each fault."""
    inside = [file for file in files(faults) if file.startswith(ADAPTERS)]
    return [f"{ADAPTERS}/{file.removeprefix(ADAPTERS).split('/')[1]}" for file in inside]


def test_every_word_is_written_down_wherever_it_is_needed() -> None:
    assert list(vocabulary.faults(NOW)) == []


def test_every_layer_word_belongs_to_what_a_network_may_state() -> None:
    assert sorted(vocabulary.layer_words(NOW)[0]) == sorted(
        vocabulary.listed(NOW, NETWORK, "Layer")
    )


def test_a_new_layer_is_demanded_of_each_file_by_name() -> None:
    word = 'class PReLU:\n    """max(x, slope * x)."""\n\n    name: str\n\n\nLayer = Union['
    faults = planted(NETWORK, "Layer = Union[", word)
    assert all("PReLU" in fault for fault in faults)
    assert outside(faults) == {RULES, *(table.file for table in vocabulary.LAYERS)}
    assert adapters(faults) == vocabulary.adapters()


def test_a_new_layer_with_layers_inside_is_demanded_of_all_who_walk_into_layers() -> None:
    word = 'class Both:\n    name: str\n    parts: Tuple["Layer", ...]\n\n\nLayer = Union['
    faults = planted(NETWORK, "Layer = Union[", word)
    walking = [fault for fault in faults if "goes into" in fault]
    assert outside(walking) == {
        "harness/exact/passes.py",
        "harness/gate/proof/start.py",
        "harness/worker/network/shapes.py",
    }
    assert sorted(set(adapters(walking))) == vocabulary.adapters()
    assert [fault for fault in faults if fault not in walking] == [
        f"{RULES}: RULES lacks Both: its shape, what it holds, its MACs, its branches"
    ]


def test_a_new_loss_is_demanded_of_each_file() -> None:
    faults = planted(WORKLOAD, "LOSSES = (\n", 'LOSSES = (\n    "hinge",\n')
    assert len(faults) == len(vocabulary.LOSSES) + len(vocabulary.adapters())
    assert "harness/exact/training.py: LOSSES lacks hinge: its value and gradient, in float64" in (
        faults
    )


def test_a_new_optimiser_is_demanded_of_each_file() -> None:
    faults = planted(WORKLOAD, "Optimiser = Union[SGD, ", "Optimiser = Union[Lars, SGD, ")
    assert len(faults) == len(vocabulary.OPTIMISERS) + len(vocabulary.adapters())
    assert adapters(faults) == vocabulary.adapters()


def test_a_new_kind_of_parameter_is_demanded_of_who_names_them_otherwise() -> None:
    faults = planted(RULES, 'Parameter("gamma", ', 'Parameter("slope", ')
    assert [fault for fault in faults if "lacks slope" in fault] == [
        f"{ADAPTERS}/caffe/subject.py: BLOBS lacks slope: where Caffe keeps it",
        f"{ADAPTERS}/keras/lowering.py: KINDS lacks slope: what Keras calls it",
        f"{ADAPTERS}/singa/subject.py: KINDS lacks slope: what SINGA calls it",
    ]


def test_words_that_fall_into_one_hole_count_as_written_down() -> None:
    file = f"{ADAPTERS}/caffe/solver.py"
    faults = planted(
        file,
        '    **holes((AdamW,), "Caffe\'s decay enters the moments"),\n',
        "",
    )
    assert faults == [f"{file}: OPTIMISERS lacks AdamW: its lowering, or what raises Unsupported"]


def test_a_hole_is_unsupported_for_its_reason() -> None:
    with pytest.raises(Unsupported, match=re.escape("no lowering of ReLU (layer 'act'): too new")):
        lowering_of(holes((ReLU,), "too new"), ReLU, "torch", "act")


def test_an_adapter_without_a_table_is_named() -> None:
    faults = planted(f"{ADAPTERS}/torch/losses.py", "LOSSES: Dict", "FORMULAS: Dict")
    assert faults == [f"{ADAPTERS}/torch: one module has to hold a table LOSSES, 0 do"]


def test_a_word_that_is_gone_is_named_where_it_stayed() -> None:
    (fault,) = planted(
        "harness/exact/layers.py", "    Dropout: _dropout,\n", "    Drop: _dropout,\n"
    )[1:]
    assert fault == "harness/exact/layers.py: LAYERS has Drop, which is no word (any more)"


def test_whoever_asks_for_single_words_says_what_becomes_of_the_others() -> None:
    layers, composed = vocabulary.layer_words(NOW)
    words = [*(word for word in layers if word not in composed), *vocabulary.optimisers(NOW)]
    asking = {
        file
        for file in vocabulary.users()
        if not file.startswith(ADAPTERS) and vocabulary.isinstance_words(NOW, file, words)
    }
    assert asking == set(ASKING), "see ASKING"


@dataclass(frozen=True)
class Unheard:
    """A layer that nobody has heard of."""

    name: str


def test_a_network_with_an_unknown_layer_cannot_be_counted() -> None:
    network = Network((3,), (Unheard("act"),))  # type: ignore[arg-type]
    with pytest.raises(ImpossibleNetwork, match=r"layer 'act': nothing counts a Unheard"):
        count(network)


def test_an_unknown_word_is_unsupported_by_its_name_and_place() -> None:
    with pytest.raises(Unsupported, match=re.escape("no lowering of Unheard (layer 'block/act')")):
        lowering_of({ReLU: "relu"}, Unheard, "torch", "block/act")
    with pytest.raises(Unsupported, match="torch adapter: no lowering of hinge"):
        lowering_of({"cross-entropy": 1}, "hinge", "torch")


def test_an_adapter_refuses_a_layer_it_has_no_lowering_of(monkeypatch: Any) -> None:
    from harness.worker.adapters.caffe import lowering

    monkeypatch.delitem(lowering.LAYERS, ReLU)
    layers = (ReLU("act"),)
    with pytest.raises(Unsupported, match="caffe adapter: no lowering of ReLU"):
        Lowering(Network((3, 8, 8), layers)).row(layers, "", "data")


def test_every_place_exists() -> None:
    tables = (*vocabulary.LAYERS, *vocabulary.LOSSES, *vocabulary.OPTIMISERS, *vocabulary.KINDS)
    for file in (*(table.file for table in tables), *ASKING):
        assert Path(vocabulary.ROOT, file).is_file()


def test_the_factors_that_are_numbers_are_read_back_as_numbers() -> None:
    numbers = {name for name, one in FACTORS.items() if one.type in ("count", "number")}
    assert numbers == NUMBERS


def test_the_factors_that_are_on_or_off_are_read_back_as_such() -> None:
    assert {name for name, one in FACTORS.items() if one.type == "flag"} == FLAGS
