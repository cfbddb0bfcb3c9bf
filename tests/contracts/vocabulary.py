"""Read, importing no framework, where each word of the network vocabulary is written down.

A word is a layer, a loss or an optimiser. Each place that dispatches by words keeps one table,
``{word: what it means here}``, at the top level of a module; a table that lacks a word is a fault,
and the fault names the file. A word that a place cannot serve stands there all the same, with what
says so (``None``, or a lowering that raises ``Unsupported``).
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NETWORK = "harness/worker/network/layers.py"
SEQUENCES = "harness/worker/network/sequence_layers.py"
WORKLOAD = "harness/worker/network/workload.py"
RULES = "harness/worker/network/layer_rules.py"
SEQUENCE_RULES = "harness/worker/network/sequence_rules.py"
ADAPTERS = "harness/worker/adapters"


@dataclass(frozen=True)
class Table:
    """A table outside the adapters, and what its entries say."""

    file: str
    name: str
    says: str


LAYERS = (
    Table("harness/exact/layers.py", "LAYERS", "what it computes, in numpy and float64"),
    Table("harness/gate/tensors/sums.py", "SUMMED", "how many terms its largest sum adds up"),
    Table(
        "harness/gate/tensors/sensitive_inputs.py",
        "SENSITIVE",
        "which inputs show its constants, or None",
    ),
)
LOSSES = (
    Table("harness/exact/training.py", "LOSSES", "its value and gradient, in float64"),
    Table("harness/worker/feed.py", "TARGETS", "what it compares an output with"),
    Table("harness/gate/tensors/draws.py", "TARGETS", "how the gate draws its targets"),
)
OPTIMISERS = (
    Table("harness/exact/training.py", "OPTIMISERS", "its update, in float64"),
    Table("harness/worker/checkpoints/plain.py", "MOMENTS", "how much it keeps of a parameter"),
)
KINDS = (
    Table("harness/worker/adapters/caffe/subject.py", "BLOBS", "where Caffe keeps it"),
    Table("harness/worker/adapters/keras/lowering.py", "KINDS", "what Keras calls it"),
    Table("harness/worker/adapters/singa/subject.py", "KINDS", "what SINGA calls it"),
)


@dataclass(frozen=True)
class Sources:
    """The tree's files, some of them replaced by another text."""

    changed: Mapping[str, str] = field(default_factory=dict)

    def text(self, file: str) -> str:
        return self.changed.get(file) or (ROOT / file).read_text(encoding="utf-8")

    def tree(self, file: str) -> ast.Module:
        return _parsed(self.text(file))


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def faults(sources: Sources) -> Iterator[str]:
    """Say of each word where it is missing, and what has to be said of it there."""
    layers, composed = layer_words(sources)
    simple = [word for word in layers if word not in composed]
    counted = Table(RULES, "RULES", "its shape, what it holds, its MACs, its branches")
    yield from _lacking(sources, [counted], layers)
    yield from _lacking(sources, LAYERS, simple)
    yield from _lacking(sources, LOSSES, losses(sources))
    yield from _lacking(sources, OPTIMISERS, optimisers(sources))
    yield from _lacking(sources, KINDS, kinds(sources))
    for folder in adapters():
        yield from _adapter(sources, folder, "LAYERS", simple)
        yield from _adapter(sources, folder, "LOSSES", losses(sources))
        yield from _adapter(sources, folder, "OPTIMISERS", optimisers(sources))
    yield from _walks(sources, composed)


def layer_words(sources: Sources) -> tuple[list[str], list[str]]:
    """Give all layer words, and those of them that have layers inside."""
    found, composed = [], []
    for node in [*sources.tree(NETWORK).body, *sources.tree(SEQUENCES).body]:
        if isinstance(node, ast.ClassDef) and node.name != "Network":
            if not any(ast.unparse(one.target) == "name" for one in _fields(node)):
                continue  # part of a word
            found.append(node.name)
            if "Layer" in "".join(ast.unparse(one.annotation) for one in _fields(node)):
                composed.append(node.name)
    return found, composed


def listed(sources: Sources, file: str, union: str) -> list[str]:
    """Give the members of ``union = Union[…]``."""
    value = _assigned(sources.tree(file), union)
    assert isinstance(value, ast.Subscript), f"{file}: {union} is no Union"
    return [one.id for one in ast.walk(value.slice) if isinstance(one, ast.Name)]


def optimisers(sources: Sources) -> list[str]:
    return listed(sources, WORKLOAD, "Optimiser")


def losses(sources: Sources) -> list[str]:
    value = _assigned(sources.tree(WORKLOAD), "LOSSES")
    assert value is not None
    return list(ast.literal_eval(value))


def kinds(sources: Sources) -> list[str]:
    """Give the kinds of what layers hold: weight, bias …"""
    trees = [sources.tree(file) for file in (RULES, SEQUENCE_RULES)]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [one.args[0] for one in calls if ast.unparse(one.func) == "Parameter"]
    assert all(isinstance(one, ast.Constant) for one in named), f"{RULES}: a kind is a literal"
    return list(dict.fromkeys(ast.literal_eval(one) for one in named))


def adapters() -> list[str]:
    """Name the folders of the adapters that lower networks; the null adapter has none."""
    found = []
    for declared in sorted((ROOT / ADAPTERS).glob("*.toml")):
        kinds = tomllib.loads(declared.read_text(encoding="utf-8")).get("kinds", ())
        if "train" in kinds and declared.with_suffix("").is_dir():
            found.append(f"{ADAPTERS}/{declared.stem}")
    return found


def isinstance_words(sources: Sources, file: str, words: Sequence[str]) -> set[str]:
    """Give the words that a module asks for one by one, outside its tables."""
    found = set()
    for node in ast.walk(sources.tree(file)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            found |= {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
    return found & set(words)


def users() -> Iterator[str]:
    """Name the modules that import the vocabulary."""
    files = (NETWORK, SEQUENCES, WORKLOAD)
    vocabulary = tuple(file.removesuffix(".py").replace("/", ".") for file in files)
    for room in ("harness", "reports"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if any(f"from {one} import" in path.read_text("utf-8") for one in vocabulary):
                yield str(path.relative_to(ROOT))


def _lacking(sources: Sources, tables: Sequence[Table], words: Sequence[str]) -> Iterator[str]:
    for table in tables:
        keys = _keys(sources, table.file, table.name)
        if keys is None:
            yield f"{table.file}: there is no table {table.name}"
            continue
        for word in words:
            if word not in keys:
                yield f"{table.file}: {table.name} lacks {word}: {table.says}"
        for key in keys:
            if key not in words:
                yield f"{table.file}: {table.name} has {key}, which is no word (any more)"


def _adapter(sources: Sources, folder: str, name: str, words: Sequence[str]) -> Iterator[str]:
    files = [str(path.relative_to(ROOT)) for path in sorted((ROOT / folder).rglob("*.py"))]
    holding = [file for file in files if _keys(sources, file, name) is not None]
    if len(holding) != 1:
        yield f"{folder}: one module has to hold a table {name}, {len(holding)} do"
    says = "its lowering, or what raises Unsupported"
    yield from _lacking(sources, [Table(file, name, says) for file in holding], words)


def _walks(sources: Sources, composed: Sequence[str]) -> Iterator[str]:
    """Demand that who goes into one word with layers inside goes into each."""
    for file in users():
        asked = isinstance_words(sources, file, composed)
        for word in composed:
            if asked and word not in asked:
                yield f"{file}: it goes into {min(asked)}, and not into {word}"


def _keys(sources: Sources, file: str, name: str) -> list[str] | None:
    value = _assigned(sources.tree(file), name)
    if not isinstance(value, ast.Dict):
        return None
    found: list[str] = []
    for key, held in zip(value.keys, value.values, strict=True):
        if key is not None:
            found.append(key.value if isinstance(key, ast.Constant) else ast.unparse(key))
        elif isinstance(held, ast.Name):  # **GROUP
            found += _keys(sources, _home(sources, file, held.id), held.id) or []
        else:
            found += _holes(sources, held)
    return found


def _home(sources: Sources, file: str, name: str) -> str:
    """Name the module that a module has a name from."""
    for node in sources.tree(file).body:
        if isinstance(node, ast.ImportFrom) and any(one.name == name for one in node.names):
            return f"{str(node.module).replace('.', '/')}.py"
    return file


def refused(sources: Sources, folder: str) -> set[str]:
    """Give the words that an adapter's tables hold as holes."""
    found: set[str] = set()
    for path in sorted((ROOT / folder).rglob("*.py")):
        for name in ("LAYERS", "LOSSES", "OPTIMISERS"):
            table = _assigned(sources.tree(str(path.relative_to(ROOT))), name)
            if isinstance(table, ast.Dict):
                for key, held in zip(table.keys, table.values, strict=True):
                    if key is None and isinstance(held, ast.Call):
                        found.update(_holes(sources, held))
    return found


def _holes(sources: Sources, value: ast.expr) -> list[str]:
    """Give the words of ``**holes((…), why)``, or of ``**holes(GROUP, why)``."""
    assert isinstance(value, ast.Call), ast.unparse(value)
    assert ast.unparse(value.func) == "holes", ast.unparse(value)
    words: ast.expr | None = value.args[0]
    if isinstance(words, ast.Name):
        words = _assigned(sources.tree(SEQUENCES), words.id)
    assert isinstance(words, ast.Tuple), ast.unparse(value)
    return [
        str(one.value) if isinstance(one, ast.Constant) else ast.unparse(one) for one in words.elts
    ]


def _assigned(tree: ast.Module, name: str) -> ast.expr | None:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(one, ast.Name) and one.id == name for one in targets):
            return node.value
    return None


def _fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    return [one for one in node.body if isinstance(one, ast.AnnAssign)]
